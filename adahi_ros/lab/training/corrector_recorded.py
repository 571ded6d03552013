# SPDX-License-Identifier: Apache-2.0
"""Examples for a corrector from recorded episodes: of a robot that is not simulated there is nothing else.

The target plans at every recorded observation. What an earlier plan says of a later step is compared with the
plans made there that agree with it, as in simulation (`corrector_data`). The robot may have been following
anything: of the plans made earlier, that one is taken which is nearest to what was done since, so that what
was observed is what became of this plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.lab.calibration.recorded_world import RecordedWorld
from adahi_ros.lab.calibration.target_plans import Planned
from adahi_ros.lab.training.corrector_data import Examples, agreeing
from adahi_ros.policies.corrector.corrector_features import FeatureScales, PlanView, features

BATCH = 50  # episodes side by side
AGES = 4  # plans of so many ages are examples at every step


@dataclass(frozen=True)
class Moment:
    """A step that E robots have seen.

    Attributes:
        observation: (E, O).
        action: (E, A), done then.
        plans: (E, S, T, A), fresh then.
    """

    observation: np.ndarray
    action: np.ndarray
    plans: np.ndarray


def recorded_examples(planned: Planned, numbers: Sequence[int], scales: FeatureScales, seed: int) -> Examples:
    """Return examples of plans of up to T - 1 steps of age, four of every step but an episode's first.

    Args:
        planned: what was observed, and what the target plans there, at least 2 actions.
        numbers: of the episodes to take, at least one of them of more than a step.
        scales: of the features.
        seed: of the ages, which are drawn; those of an episode by its number.
    """
    parts: list[Examples] = []
    for start in range(0, len(numbers), BATCH):
        parts += _examples(planned, list(numbers[start : start + BATCH]), scales, seed)
    return Examples.joined(parts)


def _examples(planned: Planned, numbers: list[int], scales: FeatureScales, seed: int) -> list[Examples]:
    spans = np.array(list(planned.data.spans()))[numbers]
    world = RecordedWorld(planned.data.episodes(numbers))
    goal = world.goal[:, : len(scales.goal_mean)]
    own = EpisodeStreams(seed, "ages", numbers, 1)
    moments = deque[Moment](maxlen=planned.horizon)
    parts: list[Examples] = []
    step = 0
    while not world.done.all():
        plans = planned.plans[np.minimum(spans[:, 0] + step, spans[:, 1] - 1)]
        moments.append(Moment(world.observation, world.action, plans))
        oldest, at = len(moments) - 1, own.next()[:, 0]
        for each in range(AGES if oldest else 0):
            age = 1 + (oldest * (each + at) / AGES).astype(np.int64)  # one of every quarter there is
            view = _view(moments, age, goal, scales.action_scale)
            action = agreeing(plans, view.ahead, view.left, scales.action_scale)
            wanted = ((action - view.ahead[:, 0]) / scales.action_scale).astype(np.float32)
            parts.append(Examples(features(view, scales), wanted).rows(~world.done))
        world.step(world.action)
        step += 1
    return parts


def _view(moments: deque[Moment], age: np.ndarray, goal: np.ndarray, scale: np.ndarray) -> PlanView:
    """Return what a corrector would read of plans that were made so many steps (E,) ago."""
    now, who = len(moments) - 1, np.arange(len(age))
    asked = [moments[now - steps] for steps in age.tolist()]
    plans = np.stack([moment.plans[robot] for robot, moment in enumerate(asked)])
    done = np.stack([moment.action for moment in moments], axis=1)[:, :-1]  # (E, now, A)
    plan = plans[who, nearest(plans, done, age, scale)]
    horizon = plan.shape[1]
    return PlanView(
        observation=moments[now].observation,
        previous=moments[now - 1].observation,
        at_request=np.stack([moment.observation[robot] for robot, moment in enumerate(asked)]),
        goal=goal,
        ahead=plan[who[:, None], np.minimum(age[:, None] + np.arange(horizon), horizon - 1)],
        left=horizon - age,
        age=age,
    )


def nearest(plans: np.ndarray, done: np.ndarray, age: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return which plan (E,) is nearest to what was done since it was made.

    Args:
        plans: (E, S, T, A).
        done: (E, N, A), the last actions, N at least the greatest age.
        age: (E,), how many of them were done since, at most T.
        scale: (A,) of the actions.
    """
    steps = done.shape[1]
    since = np.arange(steps)  # steps after the plan was made
    at = np.minimum(steps - age[:, None] + since, steps - 1)
    squared = (plans[:, :, :steps] - done[np.arange(len(age))[:, None], at][:, None]) / scale
    squared = squared**2 * (since < age[:, None])[:, None, :, None]
    which: np.ndarray = squared.sum(axis=(2, 3)).argmin(axis=1)
    return which
