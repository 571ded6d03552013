# SPDX-License-Identifier: Apache-2.0
"""Requests for plans ahead of need: the robot executes the plan that it has meanwhile.

A request is due when a later one could leave a gap after the current plan. The expected time until a reply is
estimated as in TCP (RFC 6298): smoothed round trip plus a margin from its deviation, the target's compute
included.

A reply must take less than half of a plan. The next request is sent after the reply to the former one at the
earliest, and a plan counts from its request: so it must last for two replies, its own and the next one's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from adahi_ros.protocol.request import Request
from adahi_ros.robot.outcomes import Outcome, PendingRequest
from adahi_ros.robot.session import VerifierSession

AT_ONCE_S = 1e-3
MOST_IN_FLIGHT = 4  # pending requests; with more, none would be in time
USEFUL_MOST_S = 10.0  # a request counts as missed after this, however long its reply is useful
MOST_LASTING = 8  # pending requests for lasting replies, each for 10 s at most
RECENT = 8  # replies that count for `RequestsAhead.fault`: the first one of a target may take long
PATIENCE_S = 0.25  # at least, until a second request for a lasting reply: that to the first is as good


def is_due(
    wanted: bool | np.ndarray,
    left: float | np.ndarray,
    delay_steps: int,
    in_flight: int | np.ndarray,
    overdue: bool = False,
) -> bool | np.ndarray:
    """Return whether to request the next plan, of one robot or (B,) of several.

    Args:
        wanted: the gate requests it.
        left: control steps left in the plan, this one included.
        delay_steps: expected number of control steps until a reply.
        in_flight: number of pending requests; with one, another is due only if that is overdue.
        overdue: the newest pending request is overdue.
    """
    return (wanted | (left <= delay_steps)) & ((in_flight == 0) | overdue)


def outlasted(took_s: float, steps: int, period_s: float) -> str:
    """Return, for people, that plans of so many steps end before the next ones arrive; '' where they do not.

    Args:
        took_s: time from a request to its reply.
        steps: actions of a plan that are executed.
        period_s: control period.
    """
    half_s = 0.5 * steps * period_s
    if took_s <= half_s:
        return ""
    without = min(100.0, 200.0 * (1.0 - half_s / took_s))
    return (
        f"replies take {took_s:.2g} s, and half of a plan is {half_s:.2g} s: about {without:.0f} % of "
        "the time have no plan; execute more actions of a plan (execution_horizon), or make the target "
        "faster"
    )


class RequestsAhead:
    """The pending requests of one episode, oldest first.

    Args:
        session: with the verifier.
        period_s: control period.
        received: called with the control step of a request, its number of committed actions, and its
            outcome; not if the reply to a later request came first.
        useful: control steps that a reply is useful; None for as many as it has actions.
    """

    def __init__(
        self,
        session: VerifierSession,
        period_s: float,
        received: Callable[[int, int, Outcome], None],
        useful: int | None = None,
    ) -> None:
        self._session = session
        self._period_s = period_s
        self._received = received
        self._useful = useful
        self._in_flight: list[PendingRequest] = []
        self._took_s: deque[float] = deque(maxlen=RECENT)
        self._horizon = 0

    def __len__(self) -> int:
        return len(self._in_flight)

    @property
    def delay_steps(self) -> int:
        """Expected number of control steps until a reply; at least 1."""
        return math.ceil(self._session.expected_s / self._period_s)

    def committed_steps(self, left: int) -> int:
        """Return how many control steps the former plan goes on: as many as replies usually take, at least 1.

        Without the margin of a late one: a plan that waits for its step gets old.

        Args:
            left: control steps left in the former plan, this one included.
        """
        usual = math.ceil(np.median(self._took_s) / self._period_s) if self._took_s else self.delay_steps
        return min(left, max(1, usual), self._session.target.horizon - 1)

    def needed_in_s(self, left: int) -> float:
        """Return the time until a plan with so many control steps left is over, s."""
        return max(AT_ONCE_S, left * self._period_s)

    def fault(self, executed: int | None) -> str:
        """Return, for people, that plans end before the next ones arrive; empty where they do not.

        Args:
            executed: largest number of actions that is executed of a plan; None for all.
        """
        if self._useful is not None or len(self._took_s) < RECENT:
            return ""
        steps = min(self._horizon, executed or self._horizon)
        return outlasted(float(np.median(self._took_s)), steps, self._period_s)

    def wants_request(self, wanted: bool, left: int, now_s: float) -> bool:
        """Return whether to send a request now.

        Args:
            wanted: the gate requests it.
            left: control steps left in the plan, this one included.
            now_s: the time.
        """
        overdue, count = False, len(self._in_flight)
        if count >= (MOST_IN_FLIGHT if self._useful is None else MOST_LASTING):
            return False  # to give up the oldest, with a useful reply on its way, could repeat for ever
        if count:
            patience_s = max(0.0 if self._useful is None else PATIENCE_S, self._session.expected_s)
            # Each overdue request doubles the wait for the next one. Otherwise a slow target would get ever
            # more requests, and reply ever later.
            overdue = now_s - self._in_flight[-1].submitted_s >= patience_s * 2 ** (count - 1)
        return bool(is_due(wanted, left, self.delay_steps, count, overdue))

    def submit(self, request: Request, now_s: float) -> PendingRequest:
        """Request the plan from a control step on; only while the session is READY and one is wanted."""
        self._horizon = self._session.target.horizon
        useful_s = self._horizon * self._period_s
        if self._useful is not None:
            useful_s = max(useful_s, min(self._useful * self._period_s, USEFUL_MOST_S))
        pending = self._session.submit(
            request, useful_s, now_s, lambda outcome: self._ended(pending, outcome)
        )
        self._in_flight.append(pending)
        return pending

    def cancel(self) -> None:
        """Cancel all pending requests."""
        self._cancel_before(len(self._in_flight))

    def _ended(self, pending: PendingRequest, outcome: Outcome) -> None:
        place = self._in_flight.index(pending)
        self._in_flight.pop(place)
        if outcome.verification is not None:
            self._took_s.append(1e-3 * outcome.verify_ms)
            self._cancel_before(place)
        self._received(pending.request.step, pending.request.ahead, outcome)

    def _cancel_before(self, place: int) -> None:
        overtaken, self._in_flight = self._in_flight[:place], self._in_flight[place:]
        for each in overtaken:
            self._session.cancel(each)
