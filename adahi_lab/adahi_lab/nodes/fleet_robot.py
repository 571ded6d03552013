# SPDX-License-Identifier: Apache-2.0
"""A robot of a fleet that loads a verifier: plans, gate and requests as of a real robot, without a world.

It makes control steps in real time, with a plan or without one (starved), and prefetches through the session
and the requests of the control loop. Its observations are a random walk.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Offer, Signature
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.request import Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Outcome, PendingRequest
from adahi_ros.robot.prefetch import RequestsAhead
from adahi_ros.robot.session import VerifierSession, VerifierState

STRIDE = 0.02  # of the walk, per step and number


@dataclass
class FleetRecord:
    """The record of one robot.

    Attributes:
        steps: control steps since a verifier was first available.
        starved: of them, those without a plan, after the time in which a first plan could arrive.
        requests: sent.
        replies: in time.
        rtt_ms: of each reply.
        replied_s: when each came, by the machine's monotonic clock.
        plan_ages: of each step, in steps.
        reasons: counts of requests without a usable reply, by cause: `overtaken` by a later one's reply,
            `under_way` at the end, or a `Reason`. Together with the replies these are all requests.
        bytes_up, bytes_down: serialized requests and replies.
    """

    steps: int = 0
    starved: int = 0
    requests: int = 0
    replies: int = 0
    rtt_ms: list[float] = field(default_factory=list)
    replied_s: list[float] = field(default_factory=list)
    plan_ages: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0

    def plain(self) -> dict[str, object]:
        """Return it as JSON data."""
        return {**vars(self), "reasons": dict(self.reasons)}


class FleetRobot:
    """See the module.

    Args:
        session: with the verifier.
        period_s: of the control.
        every: requests the next plan after so many steps of one.
        grace_s: time after its first step in which it may lack a plan.
        seed: of its walk.
    """

    def __init__(
        self, session: VerifierSession, period_s: float, every: int, grace_s: float, seed: int
    ) -> None:
        self.record = FleetRecord()
        self._session = session
        self._ahead = RequestsAhead(session, period_s, self._received)
        self._every = every
        self._grace_s = grace_s
        self._walk = np.random.default_rng(seed)
        self._started_s = np.inf
        self._now_s = -np.inf
        self._step = -1
        self._plan_begin, self._plan_end = 0, 0
        self._pending: dict[int, PendingRequest] = {}

    def poll(self, now_s: float) -> None:
        """Process the replies that have arrived."""
        self._now_s = now_s
        self._session.poll(now_s)

    def step(self, now_s: float) -> None:
        """Make a control step, with the plan if there is one; request the next plan if it is time."""
        self.poll(now_s)
        ready = self._session.link is VerifierState.READY
        if not ready and self._step < 0:
            return
        if self._step < 0:
            self._signature = signature = self._session.target
            self._started_s = now_s
            self._window = np.zeros((signature.history, signature.observation_dim), np.float32)
            self._goal = np.zeros(signature.goal_dim, np.float32)
        self._step += 1
        moved = self._window[-1] + STRIDE * self._walk.standard_normal(self._signature.observation_dim)
        self._window = np.concatenate([self._window[1:], moved[None].astype(np.float32)])
        left = max(0, self._plan_end - self._step)
        if now_s - self._started_s >= self._grace_s:
            self.record.steps += 1
            self.record.starved += not left
            if left:
                self.record.plan_ages.append(self._step - self._plan_begin)
        if not ready or now_s < self._session.busy_until_s:
            return
        wanted = self._step - self._plan_begin >= self._every
        if self._ahead.wants_request(wanted, left, now_s):
            self._ask(left, now_s)

    def _ask(self, left: int, now_s: float) -> None:
        signature = self._signature
        committed = min(left, self._ahead.delay_steps, signature.horizon - 1)
        draft = Proposal(np.zeros((1, committed, signature.action_dim), np.float32))
        window = WireWindow.pack(self._window, self._goal)
        needed_in_s = self._ahead.needed_in_s(left)
        instruction = "go on" if signature.instruction else ""
        request = Request.from_draft(draft, 0, self._step, window, committed, instruction, needed_in_s)
        self.record.requests += 1
        self._pending[self._step] = self._ahead.submit(request, now_s)

    def end(self) -> FleetRecord:
        """Count the pending requests; return the record."""
        self._account("under_way", list(self._pending))
        return self.record

    def _account(self, reason: str, steps: Sequence[int]) -> None:
        """Count requests without a usable reply."""
        for step in steps:
            self.record.bytes_up += self._pending.pop(step).request_bytes
            self.record.reasons[reason] += 1

    def _received(self, step: int, committed: int, outcome: Outcome) -> None:
        self.record.bytes_up += self._pending.pop(step).request_bytes
        self.record.bytes_down += outcome.reply_bytes
        if outcome.verification is None:
            self.record.reasons[outcome.reason.name.lower()] += 1
            return
        self._account("overtaken", [sent for sent in self._pending if sent < step])
        self.record.replies += 1
        self.record.rtt_ms.append(outcome.verify_ms)
        self.record.replied_s.append(self._now_s)
        self._plan_begin, self._plan_end = step, step + self._signature.horizon


class FleetClock:
    """When each robot of a fleet makes its next step: at even phases.

    Without a plan all robots request at once, so the start is still a burst.

    Args:
        fleet: robots.
        rate_hz: of their control.
        started_s: when it begins.
    """

    def __init__(self, fleet: Sequence[FleetRobot], rate_hz: float, started_s: float) -> None:
        self._fleet = fleet
        self._period_s = 1.0 / rate_hz
        self._due = [(started_s + each * self._period_s / len(fleet), each) for each in range(len(fleet))]
        heapq.heapify(self._due)

    @property
    def next_s(self) -> float:
        """When the next step of any robot is due; infinite without robots."""
        return self._due[0][0] if self._due else np.inf

    def go_on(self, now_s: float) -> None:
        """Make the due steps."""
        while self.next_s <= now_s:
            at_s, robot = self._due[0]
            self._fleet[robot].step(now_s)
            heapq.heapreplace(self._due, (at_s + self._period_s, robot))


def fleet_wants(signature: Signature) -> Wants:
    """Return a robot's requirements for a target that reads all its observations."""
    offered = {each.name: each.size for each in (*signature.features, *signature.conditions)}
    return Wants(signature, Offer(offered, instruction=True))
