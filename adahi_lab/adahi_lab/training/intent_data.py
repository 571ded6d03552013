# SPDX-License-Identifier: Apache-2.0
"""Examples for intents: the target's action at every step, and the requests that a robot may have sent.

A robot acts by the replies to requests at any earlier step. So an example has no fixed age: the requests are
drawn when a batch is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adahi_lab.calibration.target_plans import fresh_plans
from adahi_lab.history import History
from adahi_lab.tasks.episodes import episodes, seen_by_target
from adahi_lab.tasks.rests import Rests
from adahi_lab.tasks.task_interface import Task
from adahi_lab.training.rows import Rows
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.policies.intent.intent import extra_of
from adahi_ros.policies.intent.intent_features import RepliesView
from adahi_ros.policies.interface import Policy

FIRST_ALONE = 0.35  # share of episodes with one request, at their first step
PERIODS = (2.0, 64.0)  # steps between the requests of the others, drawn evenly on a logarithmic scale
NEVER = 1 << 30
NOISY_SHARE = 0.3  # of the actions
Act = Callable[[np.ndarray, np.ndarray, RepliesView], np.ndarray]
"""From the newest observation (B, O), the one before and the replies to actions (B, A)."""


@dataclass(frozen=True)
class IntentExamples(Rows):
    """N steps; those of an episode follow each other.

    Attributes:
        step: (N,) of the episode, from 0.
        observation: (N, O) float32, as the robot measures it.
        exact: (N, O) float32, as the target does.
        extra: (N, E) float32, what only the target reads.
        plan: (N, T, A) float32, a fresh one.
    """

    step: np.ndarray
    observation: np.ndarray
    exact: np.ndarray
    extra: np.ndarray
    plan: np.ndarray


class _SeenStep(NamedTuple):
    """What E robots saw at a step; attributes as of `IntentExamples`."""

    active: np.ndarray
    observation: np.ndarray
    exact: np.ndarray
    extra: np.ndarray
    plan: np.ndarray


def drawn_requests(uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the period and the second request of robots, from draws (B, 3); `NEVER` for a single request."""
    least, most = np.log(PERIODS)
    period = np.exp(least + (most - least) * uniforms[:, 1]).astype(np.int64)
    second = 1 + (uniforms[:, 2] * period).astype(np.int64)
    alone = uniforms[:, 0] < FIRST_ALONE
    return np.where(alone, NEVER, period), np.where(alone, NEVER, second)


def newest_requests(step: np.ndarray, period: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
    """Return the steps of the newest requests up to a step, the newest first, (B, count); -1 where none.

    Args:
        step: (B,), from 0; the first request is at step 0.
        period: (B,), of all others.
        second: (B,), the step of the second, at most `period`.
        count: number of requests to return.
    """
    number = ((step - second) // period)[:, None] - np.arange(count)
    later = second[:, None] + number * period[:, None]
    return np.where(number >= 0, later, np.where(number == -1, 0, -1))


def lesson(
    world: Task,
    target: Policy,
    seed: int,
    numbers: Sequence[int],
    act: Act | None,
    replies: int,
    noise: float,
    rests: float = 0.0,
) -> IntentExamples:
    """Run episodes to their end; return every step of them.

    Args:
        world: is reset.
        target: makes a fresh plan at every step.
        seed: of all draws.
        numbers: of the episodes.
        act: acts on the replies to drawn requests; None executes the target's first actions.
        replies: M, number of the newest replies that it gets.
        noise: in action scales, added to 3 of 10 actions.
        rests: share of the steps in which the robot is held, see `Rests`.
    """
    action_dim, scale = target.signature.action_dim, target.action_scale
    draws = EpisodeStreams(seed, "teacher", numbers, target.draws)
    own = EpisodeStreams(seed, "lesson", numbers, 3 + 1 + action_dim)
    held = Rests(rests, world.spec.command_field)
    held.reset(seed, list(numbers), action_dim)
    history, robots = History(target.signature, len(numbers)), np.arange(len(numbers))
    seen: list[_SeenStep] = []
    period = second = np.zeros(0, dtype=np.int64)
    for active in episodes(world, seed, numbers):
        mine = own.next()
        if not seen:
            period, second = drawn_requests(mine[:, :3])
        observations = history.push(seen_by_target(world))
        plan = fresh_plans(target, observations, draws.next()[:, None], active)[:, 0]
        exact = observations.features[OBSERVATION][:, -1].copy()
        seen.append(_SeenStep(active, world.observation.copy(), exact, extra_of(observations), plan))
        action = plan[:, 0]
        if act is not None:
            at = newest_requests(np.full(len(numbers), len(seen) - 1), period, second, replies)
            action = act(world.observation, seen[max(-2, -len(seen))].observation, _replies(seen, at, robots))
        shaken = (mine[:, 3] < NOISY_SHARE)[:, None] * (mine[:, 4:] - 0.5) * np.sqrt(12.0)
        world.step(held.applied(action + noise * scale * shaken))
    active, *columns = (np.stack(column, axis=1) for column in zip(*seen, strict=True))
    step = np.broadcast_to(np.arange(len(seen)), active.shape)  # (E, steps), as all of them
    return IntentExamples(step[active], *(column[active] for column in columns))


def _replies(seen: Sequence[_SeenStep], at: np.ndarray, robots: np.ndarray) -> RepliesView:
    """Return the replies to requests at some steps (B, M); negative where there is none."""

    def column(name: str, steps: np.ndarray) -> np.ndarray:
        return np.stack([getattr(seen[step], name)[robot] for robot, step in zip(robots, steps, strict=True)])

    columns = np.maximum(at, 0).T
    exact, plan = (np.stack([column(name, each) for each in columns], axis=1) for name in ("exact", "plan"))
    return RepliesView(exact, plan, at, column("extra", columns[0]))
