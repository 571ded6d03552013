# SPDX-License-Identifier: Apache-2.0
"""Many episodes side by side, in one process: the verifier is a function call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from adahi_lab.evaluation.in_flight import InFlight
from adahi_lab.evaluation.metrics import transmission_rate, true_skip_ratio
from adahi_lab.evaluation.step_link import Across, LinkCourse
from adahi_lab.figures import Figures
from adahi_lab.history import History
from adahi_lab.tasks.episodes import World, episodes, for_target
from adahi_ros.acceptance.interface import DataRule
from adahi_ros.core.proposal import rows_of
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, verification_stream

ROBOT_ID = "robot"  # names the verifier's draws: those of a robot's node with this name


def pushed_at(world: World) -> int | None:
    """Return the step at which a world's goals change and robots get a notice; None for never."""
    step: int | None = getattr(world, "pushed_at", None)
    return step


@dataclass(frozen=True)
class Log:
    """What happened in E episodes of at most T steps; rows past an episode's end are not `active`.

    Attributes:
        active: (T, E) bool.
        transmitted: (T, E) bool.
        deviation: (T, E) float64.
        score: (T, E) float64, the gate's.
        accepted: (T, E, N) bool, whether the target keeps each drafted code. Also of skipped steps: the
        evaluation verifies every draft, the robot only gets replies to its requests. N is 0 without
        drafts.
        draft_action: (T, E, A) float32, the action of the draft alone.
        action: (T, E, A) float32, executed.
        refused: (T, E) bool, a policy's proposal was invalid: not finite, or outside its decoder's range.
            Instead of an invalid reply the robot executes the draft or the current plan. Instead of an
            invalid draft it repeats the last action (none, at the start).
        age: (T, E) float64, control steps since the request of what the robot acts by, its plan, intent or
            verified draft; infinite without a reply.
        held: (T, E) bool, the robot stood still because it waited for a reply.
    """

    active: np.ndarray
    transmitted: np.ndarray
    deviation: np.ndarray
    score: np.ndarray
    accepted: np.ndarray
    draft_action: np.ndarray
    action: np.ndarray
    refused: np.ndarray
    age: np.ndarray
    held: np.ndarray

    def rates(self) -> Figures:
        """Return the rates of requests, of rightly skipped requests, and of the rejection of each code."""
        return {
            "transmission_rate": transmission_rate(self.transmitted, self.active),
            "true_skip_ratio": true_skip_ratio(self.transmitted, self.accepted, self.active),
            "true_skip_ratio_primary": true_skip_ratio(self.transmitted, self.accepted[..., :1], self.active),
            "rejection_rate": (1.0 - self.accepted[self.active].mean(axis=0)).tolist(),
        }

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
    """A log of E episodes, and arrays that are joined with those of other episodes.

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


class VerificationDraws:
    """`verification_uniforms` for E episodes in parallel, step by step."""

    def __init__(self, seed: int, robot_id: str, episodes: list[int], count: int) -> None:
        self._streams = EpisodeStreams(seed, verification_stream(robot_id), episodes, 2 * count)
        self._count = count

    def next(self) -> np.ndarray:
        """Return the next step's draws (E, count, 2)."""
        draws = self._streams.next()
        return draws.reshape(len(draws), self._count, 2)


def _answered(rule: DataRule, request: VerificationRequest, asks: Sequence[bytes]) -> VerificationRequest:
    """Return requests with the data of drafts that a rule asks for, as robots send them again."""
    data = {name: each.copy() for name, each in request.draft.data.items()}
    for row, asked in enumerate(asks):
        if asked:
            for name, each in rule.answered(rows_of(data, np.array([row])), asked).items():
                data[name][row] = each[0]
    return replace(request, draft=replace(request.draft, data=data))


def rollout(
    world: World,
    controller: Controller,
    verifier: TargetVerifier,
    seed: int,
    numbers: Sequence[int],
    on_step: Callable[[], None] = lambda: None,
    late: int = 0,
    across: Across | None = None,
) -> Log:
    """Run episodes to their end.

    Invalid actions are refused as on a robot, and do not end the episode.

    Args:
        world: is reset, and left at the end of the episodes.
        controller: is reset.
        verifier: verifies what the gate transmits.
        seed: of the world's, the controller's and the verifier's draws.
        numbers: of the episodes.
        on_step: called after each step.
        late: control steps until a reply arrives. Meanwhile the robot executes its plan, which the request
            contains; after the plan's end it repeats its last action. It sends no further request. Without a
            link, robot and world rest before its first plan.
        across: a link to the target with later or lost replies, see `InFlight`; a robot with nothing to
            execute is held, from the episode's start on. None without a link.
    """
    numbers = list(numbers)
    steps = episodes(world, seed, numbers, controller)
    draws = VerificationDraws(seed, ROBOT_ID, numbers, verifier.policy.draws)
    action = np.zeros((len(numbers), controller.policy.signature.action_dim), dtype=np.float32)
    course = None if across is None else LinkCourse(across.link, seed, numbers)
    in_flight = InFlight(controller, len(numbers), late, course, across.patience if across else 0)
    pushed, notice = pushed_at(world), np.inf
    if pushed is not None:
        notice = pushed + in_flight.notice_steps
    run = object()  # the same episode again is another one to a target with a memory
    identities = tuple((run, number) for number in numbers)
    target_seen = History(verifier.policy.signature, len(numbers))
    rows: list[tuple[np.ndarray, ...]] = []
    for active in steps:
        observed = {OBSERVATION: world.observation, GOAL: world.goal}
        in_flight.arrive(len(rows))
        notified = len(rows) == notice
        if notified:
            in_flight.cancel()
            controller.forget_plan()
        beside = for_target(world)
        step = controller.begin(observed, stand_in=action, beside=beside)
        observations = replace(target_seen.push({**observed, **beside}), episodes=identities)
        transmit = in_flight.asks(step, notified)
        rest = action if across is None else across.hold(action)
        requested = np.ones(len(numbers), dtype=bool) if controller.drafts else transmit
        accepted, uniforms = np.zeros((len(numbers), 0), dtype=bool), draws.next()
        refused, verdict = ~step.sound, None
        if requested.any():
            committed = in_flight.committed(step, requested)
            request = VerificationRequest(observations.rows(requested), step.draft(requested), committed)
            verdict = verifier.verdict(request, uniforms[requested])
            if any(verdict.asks):
                assert isinstance(verifier.acceptance, DataRule)
                again = _answered(verifier.acceptance, request, verdict.asks)
                verdict = verifier.verdict(again, uniforms[requested])
            verdict = controller.understood(step, verdict, requested)
            refused[requested] |= transmit[requested] & ~controller.policy.sound(verdict.actions)
            if controller.drafts:
                accepted, verdict = verdict.accepted, verdict.rows(transmit)
        intended = np.where(np.isnan(step.intended), rest, step.intended)
        now = in_flight.send(transmit, verdict, step)
        action = controller.finish(step, now.verdict, now.rows, intended)
        idle = np.isnan(step.intended).any(axis=1) & (controller.held.left(step.index) == 0)
        action = np.where(in_flight.held[:, None], rest, action)
        controller.executed(action)
        if step.proposal is None:
            intended = action
        world.step(action)
        of_step = active, transmit, step.deviation, step.score, accepted, intended, action, refused
        rows.append((*of_step, controller.held.age(step.index), in_flight.held | idle))
        on_step()
    return Log(*(np.stack(column) for column in zip(*rows, strict=True)))
