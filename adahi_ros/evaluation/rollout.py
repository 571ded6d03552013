"""Many episodes side by side, in one process: the verifier is a function call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

import numpy as np

from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.scores import Trigger
from adahi_ros.policy.history import History
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.signature import GOAL, OBSERVATION
from adahi_ros.randomness import EpisodeStreams
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationDraws
from adahi_ros.wire.request import VerificationRequest


class World(Protocol):
    """What a rollout needs of a task, or of a recording that stands in for one."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers."""

    @property
    def observation(self) -> np.ndarray:
        """(E, O) float32."""

    @property
    def goal(self) -> np.ndarray:
        """(E, G)."""

    @property
    def done(self) -> np.ndarray:
        """(E,) bool."""

    def step(self, action: np.ndarray) -> None:
        """Advance every episode by one control period with actions (E, A)."""


@dataclass(frozen=True)
class Log:
    """What happened in E episodes of at most T steps; rows past an episode's end are not `active`.

    Attributes:
        active: (T, E) bool.
        transmitted: (T, E) bool.
        deviation: (T, E) float64.
        score: (T, E) float64, the gate's.
        accepted: (T, E, N) bool, whether the target keeps each drafted code. Of skipped steps too:
            the evaluation asks the target about every draft, the robot only hears of what it sent.
            N is 0 where nothing is drafted.
        draft_action: (T, E, A) float32, what the draft alone would have executed.
        action: (T, E, A) float32, executed.
        refused: (T, E) bool, a policy proposed no action there: not finite, or out of its decoder's range.
            Of a reply, the draft was executed; of a draft or a plan, what had been executed last
            (nothing, at the start).
    """

    active: np.ndarray
    transmitted: np.ndarray
    deviation: np.ndarray
    score: np.ndarray
    accepted: np.ndarray
    draft_action: np.ndarray
    action: np.ndarray
    refused: np.ndarray

    @classmethod
    def side_by_side(cls, logs: Sequence[Log]) -> Log:
        """Join logs of different episodes of one method; shorter ones get rows that are not active."""
        steps = max(len(log.active) for log in logs)

        def joined(name: str) -> np.ndarray:
            columns = [getattr(log, name) for log in logs]
            filled = [
                np.concatenate([column, np.zeros((steps - len(column), *column.shape[1:]), column.dtype)])
                for column in columns
            ]
            return np.concatenate(filled, axis=1)

        return cls(*(joined(field.name) for field in fields(cls)))


L = TypeVar("L", bound="Logged")


@dataclass(frozen=True)
class Logged:
    """A log of E episodes, and beside it arrays that go on where other episodes are joined.

    Attributes:
        log: step by step.
    """

    log: Log

    @classmethod
    def side_by_side(cls: type[L], parts: Sequence[L]) -> L:
        """Join different episodes of one method."""
        arrays = [field.name for field in fields(cls) if field.name != "log"]
        return cls(
            Log.side_by_side([part.log for part in parts]),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in arrays),
        )


class Draws(Protocol):
    """Uniform draws of a verifier."""

    def next(self) -> np.ndarray:
        """Return the next draws (E, N, 2)."""


class PlanDraws:
    """Draws of a target that plans, counted by its plans and not by the steps.

    Args:
        seed: of all draws.
        episodes: the E episode numbers.
        count: N.
    """

    def __init__(self, seed: int, episodes: list[int], count: int) -> None:
        self._streams = EpisodeStreams(seed, "open_loop", episodes, count)

    def next(self) -> np.ndarray:
        """Return the draws (E, N, 2) of the next plan; nothing is tested by the first of each pair."""
        return np.repeat(self._streams.next()[..., None], 2, axis=-1)


def rollout(
    world: World,
    controller: Controller,
    verifier: TargetVerifier,
    seed: int,
    episodes: Sequence[int],
    on_step: Callable[[int], None] = lambda step: None,
    draws: Draws | None = None,
    robot_id: str = "robot",
) -> Log:
    """Run episodes to their end.

    What is no action is refused as a robot refuses it, and ends nothing.

    Args:
        world: is reset, and left at the end of the episodes.
        controller: is reset.
        verifier: verifies what the gate transmits.
        seed: of the world's, the controller's and the verifier's draws.
        episodes: their numbers.
        on_step: called with the number of steps done.
        draws: of the verifier; None takes those that it would have over the air.
        robot_id: names the verifier's stream of draws.
    """
    numbers = list(episodes)
    world.reset(seed, numbers)
    controller.reset(seed, numbers)
    if draws is None:
        draws = VerificationDraws(seed, robot_id, numbers, verifier.policy.draws)
    seen = History(verifier.policy.signature, len(numbers))
    everyone = np.arange(len(numbers))
    action = np.zeros((len(numbers), controller.policy.signature.action_dim), dtype=np.float32)
    rows = []
    while not world.done.all():
        active = ~world.done
        observed = {OBSERVATION: world.observation, GOAL: world.goal}
        step, observations = controller.begin(observed, stand_in=action), seen.push(observed)
        drafted = step.proposal is not None
        asked = everyone if drafted else np.flatnonzero(step.transmit)
        accepted = np.zeros((len(numbers), 0), dtype=bool)
        refused, verdict = ~step.sound, None
        if len(asked):
            request = VerificationRequest(observations.rows(asked), step.draft(asked))
            verdict = verifier.verify_each(request, draws.next()[asked])
            refused[asked] |= step.transmit[asked] & ~controller.policy.sound(verdict.actions)
            if drafted:
                accepted, verdict = verdict.accepted, verdict.rows(step.transmit)
        stand_in = step.intended if drafted else action
        action = controller.finish(step, verdict, step.transmit, stand_in)
        controller.executed(action)
        intended = step.intended if drafted else action
        world.step(action)
        rows.append((active, step.transmit, step.deviation, step.score, accepted, intended, action, refused))
        on_step(len(rows))
    return Log(*(np.stack(column) for column in zip(*rows, strict=True)))


def plan_rollout(
    world: World,
    target: Policy,
    executed: int,
    seed: int,
    episodes: Sequence[int],
    on_step: Callable[[int], None] = lambda step: None,
) -> Log:
    """Run episodes by the target's plans alone, the first actions of each executed blindly.

    Args:
        world: is reset, and left at the end of the episodes.
        target: proposes plans.
        executed: actions of each plan.
        seed: of the world's and the target's draws.
        episodes: their numbers.
        on_step: called with the number of steps done.

    Raises:
        ValueError: a plan has not so many actions.
    """
    horizon = target.signature.horizon
    if not 1 <= executed <= horizon:
        raise ValueError(f"executed: {executed}, must be 1 to {horizon}, the target's horizon")
    controller = Controller(target, ControllerConfig(Trigger("age", executed - 1)), "plan")
    verifier = TargetVerifier(target, "replace", sendable=True)
    draws = PlanDraws(seed, list(episodes), target.draws)
    return rollout(world, controller, verifier, seed, episodes, on_step, draws)
