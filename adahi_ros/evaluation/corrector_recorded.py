"""Examples for a corrector from recorded episodes: of a robot that is not simulated there is nothing else.

The target plans at every recorded observation. What an earlier plan says of a later step is compared with the
plans made there that agree with it, as in simulation (`corrector_data`). The robot may have been following
anything: of the plans made earlier, that one is taken which is nearest to what was done since, so that what
was observed is what became of this plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.evaluation.corrector_data import Examples, agreeing, fresh_plans
from adahi_ros.evaluation.recorded import RecordedWorld
from adahi_ros.evaluation.rollout import for_target
from adahi_ros.policy.corrector.features import FeatureScales, PlanView, features
from adahi_ros.policy.history import History
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.signature import GOAL, OBSERVATION
from adahi_ros.randomness import EpisodeStreams
from adahi_ros.trajectories import Trajectories

BATCH = 50  # episodes side by side; bounds the plans that are kept
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


def recorded_examples(
    target: Policy,
    data: Trajectories,
    numbers: Sequence[int],
    scales: FeatureScales,
    samples: int,
    seed: int,
    on_episodes: Callable[[int], None] = lambda episodes: None,
) -> Examples:
    """Return examples of plans of up to T - 1 steps of age, four of every step but an episode's first.

    Args:
        target: makes the plans, of T actions, at least 2.
        data: what was observed.
        numbers: of the episodes of `data` to take, at least one of them of more than a step.
        scales: of the features.
        samples: S, fresh plans at every step.
        seed: of all draws; those of an episode are by its number.
        on_episodes: called with how many more episodes are done.
    """
    parts: list[Examples] = []
    for start in range(0, len(numbers), BATCH):
        batch = list(numbers[start : start + BATCH])
        parts += _examples(target, data.episodes(batch), batch, scales, samples, seed)
        on_episodes(len(batch))
    return Examples.joined(parts)


def _examples(
    target: Policy,
    data: Trajectories,
    numbers: list[int],
    scales: FeatureScales,
    samples: int,
    seed: int,
) -> list[Examples]:
    world = RecordedWorld(data)
    world.reset(seed, numbers)
    horizon, goal = target.signature.horizon, world.goal[:, : len(scales.goal_mean)]
    draws = EpisodeStreams(seed, "teacher", numbers, samples * target.draws)
    own = EpisodeStreams(seed, "ages", numbers, 1)
    history, moments = History(target.signature, len(numbers)), deque[Moment](maxlen=horizon)
    parts: list[Examples] = []
    while not world.done.all():
        observed = {OBSERVATION: world.observation, GOAL: world.goal}
        drawn = draws.next().reshape(len(numbers), samples, target.draws)
        plans = fresh_plans(target, history.push({**observed, **for_target(world)}), drawn)
        moments.append(Moment(world.observation, world.action, plans))
        oldest, at = len(moments) - 1, own.next()[:, 0]
        for each in range(AGES if oldest else 0):
            age = 1 + (oldest * (each + at) / AGES).astype(np.int64)  # one of every quarter there is
            view = _view(moments, age, goal, scales.action_scale)
            planned = view.ahead[:, 0]
            action = agreeing(plans, view.ahead, view.left, scales.action_scale)
            wanted = ((action - planned) / scales.action_scale).astype(np.float32)
            parts.append(Examples(features(view, scales), wanted).rows(~world.done))
        world.step(world.action)
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
