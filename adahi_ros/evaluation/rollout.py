"""Many episodes side by side, in one process: the verifier is a function call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

import numpy as np

from adahi_ros.acceptance.verifier import TargetVerifier, VerificationDraws
from adahi_ros.robot.controller import Controller


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
            Of an answer, the draft was executed; of a draft or a plan, what had been executed last
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


def rollout(
    world: World,
    controller: Controller,
    verifier: TargetVerifier,
    seed: int,
    episodes: Sequence[int],
    on_step: Callable[[int], None] = lambda step: None,
    robot_id: str = "robot",
) -> Log:
    """Run episodes to their end.

    What is no action is refused as a robot refuses it, and ends nothing.

    Args:
        world: is reset, and left at the end of the episodes.
        controller: is reset.
        verifier: answers what the gate transmits.
        seed: of the world's, the controller's and the verifier's draws.
        episodes: their numbers.
        on_step: called with the number of steps done.
        robot_id: names the verifier's stream of draws.
    """
    numbers = list(episodes)
    world.reset(seed, numbers)
    controller.reset(seed, numbers)
    draws = VerificationDraws(seed, robot_id, numbers, verifier.policy.spec.codebooks)
    decoder = controller.policy.decoder
    action = np.zeros((len(numbers), decoder.action_dim), dtype=np.float32)
    rows = []
    while not world.done.all():
        active = ~world.done
        step = controller.begin(world.observation, world.goal.astype(np.float32), stand_in=action)
        everyone = verifier.verify_each(step.request(np.arange(len(numbers))), draws.next())
        corrected = step.transmit & decoder.sound(everyone.chunks(decoder))
        action = controller.finish(step, everyone.rows(corrected), corrected)[:, 0]
        controller.executed(action)
        world.step(action)
        rows.append(
            (
                active,
                step.transmit,
                step.deviation,
                step.score,
                everyone.accepted,
                step.draft.action,
                action,
                ~step.draft.sound | (step.transmit & ~corrected),
            )
        )
        on_step(len(rows))
    return Log(*(np.stack(column) for column in zip(*rows, strict=True)))
