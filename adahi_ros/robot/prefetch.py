# SPDX-License-Identifier: Apache-2.0
"""Requests for plans that nobody waits for: the robot goes on by the plan that it has.

A request is due when the reply could else come too late for the plan to go on without a gap. What a reply
takes is expected as TCP expects it (RFC 6298): the smoothed round trip and a margin by its deviation, the
target's compute included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_ros.protocol.request import Request
from adahi_ros.robot.session import VerifierSession
from adahi_ros.robot.steps import Outcome, PendingRequest

AT_ONCE_S = 1e-3
UNDER_WAY_MOST = 4  # requests; of more than that none would be in time


def is_due(
    wanted: bool | np.ndarray,
    left: float | np.ndarray,
    delay_steps: int,
    in_flight: int | np.ndarray,
    overdue: bool = False,
) -> bool | np.ndarray:
    """Return whether to request the next plan, of one robot or (B,) of several.

    Args:
        wanted: the gate says so.
        left: for how many control steps, this one included, there is a plan.
        delay_steps: so many control steps pass until a reply is there, as a rule.
        in_flight: requests without a reply; where there is one, another is due only if it is overdue.
        overdue: the newest of them is.
    """
    return (wanted | (left <= delay_steps)) & ((in_flight == 0) | overdue)


@dataclass(eq=False)
class _Asked:
    """A request for the plan from a control step on."""

    step: int
    at_s: float
    pending: PendingRequest | None = None


class RequestsAhead:
    """The requests of one episode that are under way, oldest first.

    Args:
        session: with the verifier.
        period_s: of the control steps.
        received: called with the control step that asked, how many actions it had committed to, and what came
            of its request; not of one that was overtaken by the reply to a later one, for which nobody has a
            use any more.
    """

    def __init__(
        self, session: VerifierSession, period_s: float, received: Callable[[int, int, Outcome], None]
    ) -> None:
        self._session = session
        self._period_s = period_s
        self._received = received
        self._under_way: list[_Asked] = []

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def delay_steps(self) -> int:
        """How many control steps pass until a reply is there, as a rule; at least 1."""
        return math.ceil(self._session.expected_s / self._period_s)

    def needed_in_s(self, left: int) -> float:
        """Return how soon a plan that goes on for so many control steps is over."""
        return max(AT_ONCE_S, left * self._period_s)

    def due(self, wanted: bool, left: int, now_s: float) -> bool:
        """Return whether to ask now.

        Args:
            wanted: the gate says so.
            left: for how many control steps, this one included, there is a plan.
            now_s: the time.
        """
        overdue, count = False, len(self._under_way)
        if count:
            # Each that is overdue makes the next wait twice as long: a target that is slower than expected
            # would else be sent ever more, and reply ever later.
            overdue = now_s - self._under_way[-1].at_s >= self._session.expected_s * 2 ** (count - 1)
        return bool(is_due(wanted, left, self.delay_steps, count, overdue))

    def submit(self, request: Request, step: int, now_s: float) -> PendingRequest:
        """Ask for the plan from a control step on; only where the session is READY.

        Where too many are under way, the oldest is given up. A reply is of use while its plan is not over.
        """
        asked = _Asked(step, now_s)
        self._under_way.append(asked)
        useful_s = self._session.target.horizon * self._period_s
        asked.pending = self._session.submit(
            request, useful_s, now_s, lambda outcome: self._ended(asked, outcome)
        )
        if len(self._under_way) > UNDER_WAY_MOST:
            oldest = self._under_way.pop(0)
            assert oldest.pending is not None
            self._session.give_up(oldest.pending, now_s)
        return asked.pending

    def cancel(self) -> None:
        """Forget all that is under way."""
        self._cancel_before(len(self._under_way))

    def _ended(self, asked: _Asked, outcome: Outcome) -> None:
        place = self._under_way.index(asked)
        self._under_way.pop(place)
        if outcome.verification is not None:
            self._cancel_before(place)
        assert asked.pending is not None
        self._received(asked.step, asked.pending.request.ahead, outcome)

    def _cancel_before(self, place: int) -> None:
        overtaken, self._under_way = self._under_way[:place], self._under_way[place:]
        for each in overtaken:
            assert each.pending is not None
            self._session.cancel(each.pending)
