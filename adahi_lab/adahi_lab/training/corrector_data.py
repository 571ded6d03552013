# SPDX-License-Identifier: Apache-2.0
"""Examples for a corrector: the actions of a fresh plan of the target, at every age of an old plan.

In simulation they come from rounds of rollouts with the corrector itself (DAgger; Ross et al., 2011), so that
it learns from the states that it reaches.

For a real robot they come from recorded episodes (`recorded_examples`). The target plans at every recorded
observation. An earlier plan's action is compared with the plans at the later step that agree with it, as in
simulation. The robot may have executed other actions. So the earlier plan nearest to the executed actions
counts, and the observations are its consequences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.calibration.target_plans import Planned, fresh_plans
from adahi_lab.history import History
from adahi_lab.tasks.episodes import World, episodes, seen_by_target
from adahi_lab.training.rows import Rows
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.policies.corrector.corrector import Correction
from adahi_ros.policies.corrector.corrector_features import FeatureScales, PlanView, features
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.corrector import plan_view

BATCH = 50  # episodes side by side
AGES = 4  # number of plan ages with examples at every step


@dataclass(frozen=True)
class Moment:
    """A step of E robots.

    Attributes:
        observation: (E, O).
        action: (E, A), executed.
        plans: (E, S, T, A), fresh ones.
    """

    observation: np.ndarray
    action: np.ndarray
    plans: np.ndarray


def recorded_examples(
    planned: Planned, numbers: Sequence[int], scales: FeatureScales, seed: int, weight: int = 1
) -> Examples:
    """Return examples of plans with an age up to T - 1 steps, four at every step except an episode's first.

    Args:
        planned: observations and the target's plans, of at least 2 actions.
        numbers: of the episodes to take, at least one of them with more than one step.
        scales: of the features.
        seed: of the drawn ages; those of an episode depend on its number.
        weight: how often a step counts that a person drove.
    """
    parts: list[Examples] = []
    for start in range(0, len(numbers), BATCH):
        parts += _examples(planned, list(numbers[start : start + BATCH]), scales, seed, weight)
    return Examples.joined(parts)


def _examples(
    planned: Planned, numbers: list[int], scales: FeatureScales, seed: int, weight: int
) -> list[Examples]:
    spans = np.array(list(planned.data.spans()))[numbers]
    world = RecordedWorld(planned.data.episodes(numbers))
    goal = world.goal[:, : len(scales.goal_mean)]
    own = EpisodeStreams(seed, "ages", numbers, 1)
    moments = deque[Moment](maxlen=planned.horizon)
    parts: list[Examples] = []
    for step, active in enumerate(episodes(world, seed, numbers)):
        rows = np.minimum(spans[:, 0] + step, spans[:, 1] - 1)
        plans, goes_on = planned.plans[rows], np.flatnonzero(active)
        counted = goes_on[planned.weighted(rows[goes_on], weight)]
        moments.append(Moment(world.observation, world.action, plans))
        oldest, at = len(moments) - 1, own.next()[:, 0]
        for each in range(AGES if oldest else 0):
            age = 1 + (oldest * (each + at) / AGES).astype(np.int64)  # one from each quarter of the range
            view = _view(moments, age, goal, scales.action_scale)
            action = agreeing(plans, view.ahead, view.left, scales.action_scale)
            wanted = ((action - view.ahead[:, 0]) / scales.action_scale).astype(np.float32)
            parts.append(Examples(features(view, scales), wanted).rows(counted))
        world.step(world.action)
    return parts


def _view(moments: deque[Moment], age: np.ndarray, goal: np.ndarray, scale: np.ndarray) -> PlanView:
    """Return a corrector's inputs from plans made so many steps (E,) ago."""
    now, who = len(moments) - 1, np.arange(len(age))
    requested = [moments[now - steps] for steps in age.tolist()]
    plans = np.stack([moment.plans[robot] for robot, moment in enumerate(requested)])
    done = np.stack([moment.action for moment in moments], axis=1)[:, :-1]  # (E, now, A)
    plan = plans[who, nearest(plans, done, age, scale)]
    horizon = plan.shape[1]
    return PlanView(
        observation=moments[now].observation,
        previous=moments[now - 1].observation,
        at_request=np.stack([moment.observation[robot] for robot, moment in enumerate(requested)]),
        goal=goal,
        ahead=plan[who[:, None], np.minimum(age[:, None] + np.arange(horizon), horizon - 1)],
        left=horizon - age,
        age=age,
    )


def nearest(plans: np.ndarray, done: np.ndarray, age: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return which plan (E,) is nearest to the actions executed since it was made.

    Args:
        plans: (E, S, T, A).
        done: (E, N, A), the last actions, N at least the greatest age.
        age: (E,), how many of them were executed since, at most T.
        scale: (A,) of the actions.
    """
    steps = done.shape[1]
    since = np.arange(steps)  # steps after the plan was made
    at = np.minimum(steps - age[:, None] + since, steps - 1)
    squared = (plans[:, :, :steps] - done[np.arange(len(age))[:, None], at][:, None]) / scale
    squared = squared**2 * (since < age[:, None])[:, None, :, None]
    which: np.ndarray = squared.sum(axis=(2, 3)).argmin(axis=1)
    return which


NOISY_SHARE = 0.3  # of the actions
AGREEMENT = 0.7  # in action scales: plans further than this from the old one have little weight
Correct = Callable[[PlanView], Correction]


@dataclass(frozen=True)
class Examples(Rows):
    """N examples.

    Attributes:
        features: (N, F) float32.
        wanted: (N, A) float32, corrections in action scales.
    """

    features: np.ndarray
    wanted: np.ndarray


def agreeing(plans: np.ndarray, ahead: np.ndarray, left: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the target's current action, as far as it agrees with the existing plan.

    A target with two ways round an obstacle must not teach their mean: each of its plans is weighted by its
    distance to the rest of the old one.

    Args:
        plans: (B, S, T, A), fresh ones, S of each robot.
        ahead: (B, T, A), the rest of the old plan, the last action repeated.
        left: (B,), its length.
        scale: (A,) of the actions.

    Returns:
        (B, A) in action units.
    """
    counted = (np.arange(plans.shape[2]) < left[:, None])[:, None, :, None]
    squared = (((plans - ahead[:, None]) / scale) ** 2 * counted).sum(axis=(2, 3))
    distance = squared / (left[:, None] * plans.shape[3])
    weight = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / (2.0 * AGREEMENT**2))
    weight /= weight.sum(axis=1, keepdims=True)
    action: np.ndarray = (weight[..., None] * plans[:, :, 0]).sum(axis=1)
    return action


class Teacher:
    """Executes plans requested at random, and records a fresh plan's action at every step.

    Args:
        target: makes the plans.
        scales: of the features.
        samples: S, fresh plans at every step.
        hides_plan: hides the plan, to teach a policy the target's average action.
    """

    def __init__(self, target: Policy, scales: FeatureScales, samples: int, hides_plan: bool = False) -> None:
        self._target = target
        self._scales = scales
        self._samples = samples
        self._hides_plan = hides_plan

    def lesson(
        self,
        world: World,
        seed: int,
        numbers: Sequence[int],
        rate: float,
        correct: Correct | None,
        noise: float,
        on_step: Callable[[int], None] = lambda step: None,
    ) -> Examples:
        """Run episodes to their end; return an example of every step.

        Args:
            world: is reset.
            seed: of all draws.
            numbers: of the episodes.
            rate: of steps that request a new plan, in addition to those without one.
            correct: corrects the plans; None executes them unchanged.
            noise: in action scales, added to 3 of 10 actions.
            on_step: called with the number of steps done.
        """
        target = self._target
        horizon, action_dim = target.signature.horizon, target.signature.action_dim
        scale = self._scales.action_scale
        count = target.draws
        draws = EpisodeStreams(seed, "teacher", numbers, (self._samples + 1) * count)
        own = EpisodeStreams(seed, "lesson", numbers, 2 + action_dim)
        history, plan = History(target.signature, len(numbers)), Plan(len(numbers), action_dim)
        memory = ObservationBuffer(2 * horizon)
        parts: list[Examples] = []
        for step, active in enumerate(episodes(world, seed, numbers)):
            observations = history.push(seen_by_target(world))
            drawn, mine = draws.next(), own.next()
            drawn = drawn.reshape(len(numbers), self._samples + 1, count)
            memory.keep(step, {OBSERVATION: world.observation, GOAL: world.goal})
            plan.forget_before(step)
            asks = (mine[:, 0] < rate) | (plan.left(step) == 0)
            if asks.any():
                requested = target.propose(observations.rows(asks), drawn[asks, 0]).actions
                plan.splice(requested, step, step, asks)
            goal = world.goal[:, : len(self._scales.goal_mean)]
            view = plan_view(memory, plan, step, goal, horizon)
            fresh = fresh_plans(target, observations, drawn[:, 1:], active)
            planned = view.ahead[:, 0]
            if self._hides_plan:
                view, wanted = view.without_plan(), fresh[:, :, 0].mean(axis=1) / scale
            else:
                wanted = (agreeing(fresh, view.ahead, view.left, scale) - planned) / scale
            parts.append(Examples(features(view, self._scales), wanted.astype(np.float32)).rows(active))
            action = planned if correct is None else correct(view).actions
            shaken = (mine[:, 1] < NOISY_SHARE)[:, None] * (mine[:, 2:] - 0.5) * np.sqrt(12.0)
            world.step(action + noise * scale * shaken)
            on_step(step + 1)
        return Examples.joined(parts)
