# SPDX-License-Identifier: Apache-2.0
"""Pending requests of robots in a rollout, and when their replies arrive.

`RequestsAhead` (`robot/prefetch.py`) keeps those of one robot, which measures its link and may have several.
Here B robots share a step, the link is known, and each has at most one request. Both use `is_due`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adahi_lab.evaluation.step_link import LinkCourse
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.plan import Plan
from adahi_ros.robot.controller import Controller, Step
from adahi_ros.robot.prefetch import is_due


class Arrived(NamedTuple):
    """Replies for the present step, and the mask (B,) of their robots."""

    verdict: Verdict | None
    rows: np.ndarray


@dataclass(frozen=True)
class _Reply:
    """Replies to requests of one step, for some of B robots.

    Attributes:
        requested_at: that step.
        due: (B,) steps at which it arrives, or the request is abandoned.
        lost: (B,) bool.
        rows: (B,) bool, the robots.
        verdict: for them.
    """

    requested_at: int
    due: np.ndarray
    lost: np.ndarray
    rows: np.ndarray
    verdict: Verdict


class InFlight:
    """Replies that take control steps; a robot has at most one pending request.

    Across a link every request has its delay and loss, also an episode's first one: the robot is held until
    it has a reply, and its world goes on. Without a link a robot without a plan gets the reply at once, as in
    lockstep (`robot/lockstep_loop.py`), where robot and world rest until it arrives.

    A robot with plans continues with its current plan. Across a link it requests as the robot's node does
    (`robot/prefetch.py`): if its gate says so, or if the plan is not longer than a usual reply time. A lost
    request is sent again as late as the node does, which waits twice as long after each lost one.
    A robot with drafts is held from the request on. It executes the reply for one control period, then drafts
    again. If the reply is lost, it times out and requests with a new draft.

    Args:
        controller: gets the replies.
        batch: B.
        late: control steps from request to reply, at least; 0 for within the step.
        course: of the link; None without a link.
        patience: control steps until another request for a lasting reply, at least.
    """

    def __init__(
        self, controller: Controller, batch: int, late: int, course: LinkCourse | None, patience: int = 0
    ) -> None:
        self._controller = controller
        self._late = late
        self._course = course
        self._waits = course is not None and controller.drafts
        self._patience = 0 if controller.held.steps is None else patience
        self._usual = late if course is None else max(late, course.link.usual)
        self._replies: list[_Reply] = []
        self._come: list[Arrived] = []  # replies to drafts at the present step
        self._waiting = np.zeros(batch, dtype=bool)
        self._tries = np.zeros(batch, dtype=np.int64)  # requests in a row that were lost
        self._owed = np.zeros(batch, dtype=bool)  # robots with drafts that wait for a reply
        self._plan = Plan(batch, controller.policy.signature.action_dim)
        self._cancelled = False

    @property
    def held(self) -> np.ndarray:
        """Robots held at the present step, (B,) bool, because they wait for the reply to their draft."""
        return self._waiting & self._waits

    def committed(self, step: Step, rows: np.ndarray) -> np.ndarray | None:
        """Return the actions that some robots, by mask, execute before a reply arrives; see `Sampling`."""
        if not self._usual or self._waits:
            return None
        return self._plan.coming(step.index, self._usual)[rows]

    @property
    def notice_steps(self) -> int:
        """Control steps until robots get a verifier's notice: half a round trip, at least one."""
        return max(1, -(-self._usual // 2))

    def cancel(self) -> None:
        """Drop pending requests and plans, because the task has changed; worlds rest no more."""
        self._replies, self._cancelled = [], True
        self._waiting[:] = self._owed[:] = self._tries[:] = 0
        self._plan = Plan(len(self._waiting), self._controller.policy.signature.action_dim)

    def arrive(self, step: int) -> None:
        """Deliver the replies due at a step; call with steps in order."""
        self._come = []
        for reply in self._replies:
            ended = reply.rows & (reply.due == step)
            here = ended & ~reply.lost
            if here.any():
                self._deliver(reply.verdict.rows(here[reply.rows]), reply.requested_at, here)
            self._owed |= ended & reply.lost
            self._tries = np.where(ended, np.where(reply.lost, self._tries + 1, 0), self._tries)
            self._waiting &= ~ended
        self._replies = [reply for reply in self._replies if (reply.rows & (reply.due > step)).any()]
        self._plan.forget_before(step)

    def _deliver(self, verdict: Verdict, requested_at: int, rows: np.ndarray) -> None:
        if self._waits:
            self._come.append(Arrived(verdict, rows))
            return
        sound = self._controller.receive(verdict, requested_at, rows)
        self._take_in(verdict, requested_at, np.flatnonzero(rows), sound)

    def asks(self, step: Step, notified: bool = False) -> np.ndarray:
        """Return the robots that send a request at a step, (B,) bool: those that wait for none.

        Args:
            step: the present one.
            notified: all robots send one, because of a notice.
        """
        transmit = step.transmit | (step.sound & notified)
        if self._waits:
            wanted = (transmit | (step.sound & self._owed)) & ~self._waiting
        else:  # without a link, only the gate decides
            left = np.where(step.sound & (self._course is not None), step.plan_left, np.inf)
            wanted = np.asarray(is_due(transmit, left, self._usual, self._waiting))
        for _, rows in self._come:
            wanted = wanted & ~rows
        return wanted

    def send(self, transmit: np.ndarray, verdict: Verdict | None, step: Step) -> Arrived:
        """Send the replies for some robots, by mask; return those that arrive in this step."""
        come = list(self._come)
        if verdict is not None and not self._usual and self._course is None:
            return Arrived(verdict, transmit)
        if verdict is not None:
            taken, lost = self._round_trip(step.index)
            at_once = transmit & (self._rests(step) | ((taken == 0) & ~lost))
            later = transmit & ~at_once
            if later.any():
                due = step.index + taken
                self._replies.append(_Reply(step.index, due, lost, later, verdict.rows(later[transmit])))
            self._waiting |= later
            self._owed &= ~transmit
            if at_once.any():
                come.append(Arrived(verdict.rows(at_once[transmit]), at_once))
                self._remember(come[-1], step.index)
        return _joined(come, len(transmit))

    def _round_trip(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        if self._course is None:
            count = len(self._waiting)
            return np.full(count, self._late), np.zeros(count, dtype=bool)
        taken, lost = self._course.round_trip(step)
        again = np.maximum(taken, self._patience) * 2**self._tries
        return np.maximum(np.where(lost & (not self._waits), again, taken), self._late), lost

    def _rests(self, step: Step) -> np.ndarray:
        """Return the robots (B,) that rest with their worlds until the reply; see the class."""
        if self._course is not None or self._cancelled:
            return np.zeros(len(self._waiting), dtype=bool)
        idle: np.ndarray = np.isnan(step.intended).any(axis=1)
        return idle

    def _remember(self, come: Arrived, step: int) -> None:
        assert come.verdict is not None
        sound = self._controller.policy.sound(come.verdict.actions)
        self._take_in(come.verdict, step, np.flatnonzero(come.rows), sound)

    def _take_in(self, verdict: Verdict, requested_at: int, who: np.ndarray, sound: np.ndarray) -> None:
        """Store the plans of robots, by index, where they are sound."""
        self._plan.splice(verdict.actions[sound], requested_at, requested_at, who[sound])


def _joined(come: list[Arrived], batch: int) -> Arrived:
    """Join the replies for different robots of so many."""
    rows = np.zeros(batch, dtype=bool)
    for each in come:
        rows |= each.rows
    verdicts = [each.verdict for each in come if each.verdict is not None]
    if not verdicts:
        return Arrived(None, rows)
    intents = [verdict.intent for verdict in verdicts if verdict.intent is not None]
    order = np.argsort(np.concatenate([np.flatnonzero(each.rows) for each in come]))
    actions = np.concatenate([verdict.actions for verdict in verdicts])
    accepted = np.concatenate([verdict.accepted for verdict in verdicts])
    intent = np.concatenate(intents)[order] if intents else None
    return Arrived(Verdict(actions[order], accepted[order], intent), rows)
