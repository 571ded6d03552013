# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the verifier: handshake, requests, replies and breaker. No method blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum

import numpy as np

from adahi_ros.acceptance.interface import DataRule, LinkFacts
from adahi_ros.core.signature import Signature
from adahi_ros.protocol.description import Described, Description, Wants
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import PROTOCOL_VERSION, Reply, Request, RequestFault, SentParts
from adahi_ros.protocol.window import WHOLE, SentWindows
from adahi_ros.robot.link_estimate import Breaker, LinkEstimator, ReplyTime
from adahi_ros.robot.outcomes import Check, Outcome, PendingRequest, contradiction, judged
from adahi_ros.robot.transport import Sent, Transport

WATCH_PERIOD_S = 0.05
DESCRIBE_RETRY_S = 1.0
UNDESCRIBED = 3  # unanswered description requests until the log says so
PROBES_OUT = 4  # a late reply to an old probe still shows that the link is back
OF_ANOTHER = {  # refusals that show that the verifier is not the one that has described itself
    RequestFault.TOKENIZER_MISMATCH: "tokenizer",
    RequestFault.PROTOCOL_MISMATCH: "protocol",
    RequestFault.UNKNOWN_TARGET: "target",
}

UNREADABLE = (
    "a verifier is there that does not describe itself: it is still starting, or its protocol is not "
    f"{PROTOCOL_VERSION}"
)

OnOutcome = Callable[[Outcome], None]


class VerifierState(IntEnum):
    """Whether there is a verifier to send to. The numbers are those of `LinkState.msg`."""

    ABSENT = 0
    READY = 1
    MISMATCHED = 2
    UNRESPONSIVE = 3

    @property
    def label(self) -> str:
        """Words for people."""
        return {
            VerifierState.ABSENT: "no verifier",
            VerifierState.READY: "verifier ready",
            VerifierState.MISMATCHED: "verifier of another kind",
            VerifierState.UNRESPONSIVE: "verifier too slow, or gone",
        }[self]


WITHOUT_REQUEST = {
    VerifierState.ABSENT: Reason.NO_VERIFIER,
    VerifierState.MISMATCHED: Reason.REFUSED,
    VerifierState.UNRESPONSIVE: Reason.BREAKER_OPEN,
}


class VerifierSession:
    """Sends requests to a verifier that fits, and reports one outcome for each.

    While started it looks for a verifier and requests its description; again when the verifier is gone, or
    refuses what it has described. After several missed deadlines in a row the verifier gets only probes
    (description requests) until it replies to one (`Breaker`).

    All times are monotonic seconds, and are passed in.

    Attributes:
        link: whether there is a verifier to send to.
        trouble: why not, for people; if MISMATCHED, the field that does not fit. Empty while READY.
        misnamed: message of a verifier that refused the robot's name; empty if none has.
        target: what the target reads and proposes; only while `link` is READY.
        windows_resent: how often a request was sent again with the whole window.
        busy_until_s: the busy verifier gets no requests until then.
        rtt_ms: average round trip, see `LinkEstimate`.
        estimate: returns the link's estimate at a time.
        sent_parts: parts of a draft that the target needs and can read; only while `link` is READY.

    Args:
        transport: carries messages.
        wants: what the verifier must fit.
        retransmits: send requests without a reply again; otherwise the transport does so.
        on_change: called when link or trouble has changed.
    """

    target: Signature
    sent_parts: SentParts

    def __init__(
        self,
        transport: Transport,
        wants: Wants,
        retransmits: bool,
        on_change: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._wants = wants
        self._retransmits = retransmits
        self._on_change = on_change
        self._breaker = Breaker()
        self._estimator = LinkEstimator()
        self.estimate = self._estimator.estimate
        self._sent_windows = SentWindows()
        self._pending: dict[PendingRequest, OnOutcome] = {}
        self._check: Check = lambda actions: None
        self._probes: list[int] = []
        self._forget()

    def accept_only(self, check: Check) -> None:
        """Refuse replies with actions for which this raises ValueError; nothing is learned from them."""
        self._check = check
        self._transport.accept_only(check)

    def start(self, now_s: float) -> None:
        """Look for a verifier from now on."""
        self._forget()
        self._watch_s = now_s + WATCH_PERIOD_S

    def stop(self) -> None:
        """Forget the verifier, and cancel all requests."""
        for pending in tuple(self._pending):
            self.cancel(pending)
        self._forget_probes(0)
        self._forget()

    def _forget(self) -> None:
        self.link = VerifierState.ABSENT
        self.trouble = "no verifier has described itself"
        self._description: Description | None = None
        self.windows_resent = 0
        self._watch_s = math.inf
        self._describe_s = -math.inf
        self._unanswered = 0
        self.misnamed = ""
        self._breaker.reset()
        self._sent_windows.forget()
        self._estimator.forget()
        self.rtt_ms = math.nan
        self._message_time = ReplyTime()  # to a reply, from the copy of the request that it answers
        self._request_time = ReplyTime()  # from the first copy
        self.busy_until_s = -math.inf

    @property
    def next_due_s(self) -> float:
        """Latest time to call `poll`; infinite for never."""
        due_s = [pending.due_s for pending in self._pending]
        return min([self._watch_s, self._transport.next_due_s, *due_s])

    @property
    def on_trial(self) -> bool:
        """READY again after missed deadlines, but no reply has come in time since."""
        return self._breaker.on_trial

    @property
    def expected_s(self) -> float:
        """Expected time until a reply, with the verifier's compute and with retransmissions."""
        return self._request_time.expected_s

    @property
    def _target(self) -> Description:
        assert self._description is not None
        return self._description

    def unlike(self, observed: Mapping[str, np.ndarray]) -> str | None:
        """Return what is unlike the target's data, see `Wants.unlike`; None while no target is known."""
        return None if self._description is None else self._wants.unlike(self._description, observed)

    def submit(
        self, request: Request, deadline_s: float, now_s: float, on_outcome: OnOutcome
    ) -> PendingRequest:
        """Send a request; only while `link` is READY.

        Args:
            request: what to verify.
            deadline_s: how long to wait for the reply; a later one is dropped.
            now_s: the time.
            on_outcome: called once, by `poll`, unless the request is given up or cancelled before. The
                statistics are updated after the call, because the robot waits for it.
        """
        pending = PendingRequest(request, now_s, now_s + deadline_s)
        self._pending[pending] = on_outcome
        self._pack(pending, now_s)
        self._send(pending, now_s)
        return pending

    def give_up(self, pending: PendingRequest, now_s: float) -> None:
        """Drop a request that has taken too long; it counts as a missed deadline."""
        self._settle(pending)
        self._count_miss(now_s)

    def cancel(self, pending: PendingRequest) -> None:
        """Drop a request that is not needed any more; it does not count as missed."""
        self._settle(pending)

    def poll(self, now_s: float, slack_s: float = 0.0) -> None:
        """Process what has arrived, and what is due.

        Args:
            now_s: the time.
            slack_s: check the verifier's presence this much earlier, and the next time half as much later. A
                caller that runs at every control step saves the wake-up.
        """
        for received in self._transport.poll():
            if isinstance(received, Described):
                self._described(received, now_s)
            elif isinstance(received, Sent):
                self._sent_more(received)
            else:
                self._replied(received, now_s)
        for pending in tuple(self._pending):
            if now_s >= pending.deadline_s:
                self._end(pending, Outcome(None, Reason.DEADLINE))
                self._count_miss(now_s)
            elif now_s >= pending.resend_s:
                pending.retransmissions += 1
                self._send(pending, now_s, again=True)
        if now_s + slack_s >= self._watch_s:
            self._watch_s = now_s + WATCH_PERIOD_S + 0.5 * slack_s
            self._watch(now_s)

    # Requests

    def _send(self, pending: PendingRequest, now_s: float, again: bool = False) -> None:
        """Send a request with the part of its window that the verifier lacks, or again as it was."""
        if not again:
            pending.update = self._sent_windows.update(pending.request.window)
        message = self._transport.submit(pending.request, pending.update)
        pending.sent_s[message.id] = now_s
        pending.request_bytes += message.size_bytes
        wait_s = self._message_time.wait_s(pending.retransmissions) if self._retransmits else None
        pending.resend_s = math.inf if wait_s is None else now_s + wait_s

    def _sent_more(self, message: Sent) -> None:
        for pending in self._pending:
            if message.id in pending.sent_s:
                pending.request_bytes += message.size_bytes

    def _settle(self, pending: PendingRequest) -> OnOutcome:
        self._cancel_messages(pending)
        return self._pending.pop(pending)

    def _cancel_messages(self, pending: PendingRequest) -> None:
        while pending.sent_s:
            self._transport.cancel(pending.sent_s.popitem()[0])

    def _end(self, pending: PendingRequest, outcome: Outcome) -> None:
        self._settle(pending)(outcome)

    def _replied(self, reply: Reply, now_s: float) -> None:
        pending = next((each for each in self._pending if reply.id in each.sent_s), None)
        if pending is None or now_s > pending.deadline_s:
            return
        sent_s = pending.sent_s.pop(reply.id)
        if reply.status == RequestFault.WINDOW_UNKNOWN and pending.update.base != WHOLE:
            self._send_whole(pending, now_s)
            return
        took_s = now_s - pending.submitted_s
        if reply.rule_data and pending.asked_by(reply):
            self._answer(pending, reply, sent_s, now_s)
            return
        target = self._target
        other = contradiction(target, reply)
        outcome = judged(target, pending.request, reply, 1e3 * took_s, self._check)
        if outcome.reason is Reason.BUSY:
            self.busy_until_s = max(self.busy_until_s, now_s + outcome.retry_after_s)
            if pending.sent_s:  # another copy of it may have been accepted
                return
        self._end(pending, outcome)
        if reply.status == RequestFault.UNKNOWN_ROBOT and not self.misnamed:
            self.misnamed = outcome.message
            self._on_change()
        if outcome.reason not in (Reason.BUSY, Reason.BAD_REPLY):  # they come too soon for the statistics
            self._learn(pending, outcome, reply.window_kept, now_s - sent_s, now_s)
            self._request_time.replied(took_s)
        on_trial = self._breaker.on_trial
        self._breaker.replied()
        if reply.status in OF_ANOTHER:
            self._lose(f"the verifier refuses the {OF_ANOTHER[RequestFault(reply.status)]}")
        elif other:
            self._lose(other)
        elif self.link is VerifierState.UNRESPONSIVE:  # a request that was sent after the missed ones
            self._change(VerifierState.READY, "")
        elif on_trial and self.link is VerifierState.READY:
            self._on_change()

    def _send_whole(self, pending: PendingRequest, now_s: float) -> None:
        """Send a request again with the whole window; the deadline stays."""
        self._cancel_messages(pending)
        self._sent_windows.forget()
        self.windows_resent += 1
        pending.retransmissions = 1  # not more: the whole window may be lost, too
        self._send(pending, now_s)

    def _pack(self, pending: PendingRequest, now_s: float) -> None:
        """Add the data for the verifier's rule, if there are any."""
        request, rule = pending.request, self._target.rule
        if request.data and issubclass(rule, DataRule):
            link = LinkFacts(self.rtt_ms, self.estimate(now_s).loss)
            pending.request = replace(request, rule_data=rule.pack(request.data, link))

    def _answer(self, pending: PendingRequest, reply: Reply, sent_s: float, now_s: float) -> None:
        """Send a request again with the data that the verifier's rule asks for; the deadline stays."""
        rule = self._target.rule
        assert issubclass(rule, DataRule)
        try:
            data = rule.answered(pending.request.data, reply.rule_data)
        except ValueError as error:
            self._end(pending, Outcome(None, Reason.BAD_REPLY, f"rule_data: {error}"))
            return
        self._cancel_messages(pending)
        found = Outcome(None, Reason.NONE, compute_ms=reply.compute_ms, reply_bytes=reply.size_bytes)
        self._learn(pending, found, reply.window_kept, now_s - sent_s, now_s)
        self._sent_windows.replied(pending.request.window, reply.window_kept)
        pending.request = replace(pending.request, data=data)
        self._pack(pending, now_s)
        pending.answered, pending.retransmissions = True, 0
        self._send(pending, now_s)

    def _learn(
        self, pending: PendingRequest, outcome: Outcome, window_kept: bool, took_s: float, now_s: float
    ) -> None:
        """Update the link's estimate and the verifier's windows from a reply in time."""
        if outcome.verification is not None:
            self._sent_windows.replied(pending.request.window, window_kept)
        rtt_ms = max(0.0, 1e3 * took_s - outcome.compute_ms)
        size_bytes = pending.request_bytes + outcome.reply_bytes
        self._estimator.replied(now_s, rtt_ms, size_bytes, retransmitted=pending.retransmissions > 0)
        self.rtt_ms = self.estimate(now_s).rtt_ms
        self._message_time.replied(took_s)

    def _count_miss(self, now_s: float) -> None:
        self._estimator.missed()
        self._breaker.missed(now_s)
        if self._breaker.open:
            self._change(
                VerifierState.UNRESPONSIVE,
                f"{VerifierState.UNRESPONSIVE.label}: several replies not by the deadline",
            )

    # The verifier

    def _watch(self, now_s: float) -> None:
        present = self._transport.present
        if not present:
            self._unanswered = 0
            absence = self._transport.absence
            if self.link is not VerifierState.ABSENT:
                self._lose(absence or "verifier lost: its services are gone")
            elif absence:
                self._change(VerifierState.ABSENT, absence)
        if not present or self.link is VerifierState.READY:
            return
        if self.link is VerifierState.UNRESPONSIVE:
            if self._breaker.probe_due(now_s):
                self._breaker.probed(now_s)
                self._probe()
        elif now_s >= self._describe_s:
            if self._probes and self.link is VerifierState.MISMATCHED:
                self._lose("verifier lost: it does not describe itself any more")
            elif self._probes:
                self._unanswered += 1
            if self._unanswered >= UNDESCRIBED and self.link is VerifierState.ABSENT:
                self._change(VerifierState.ABSENT, UNREADABLE)
            self._forget_probes(0)
            self._describe_s = now_s + DESCRIBE_RETRY_S
            self._probe()

    def _probe(self) -> None:
        self._forget_probes(PROBES_OUT - 1)
        self._probes.append(self._transport.describe())

    def _described(self, described: Described, now_s: float) -> None:
        if described.id not in self._probes:
            return
        self._forget_probes(0)
        self._unanswered = 0
        self._describe_s = now_s + DESCRIBE_RETRY_S
        self._breaker.probe_replied()
        self._sent_windows.forget()
        description = described.description
        mismatch = described.fault if description is None else self._wants.mismatch(description)
        if description is not None and mismatch is None:
            self._description = description
            self.target = description.signature
            self.sent_parts = self._wants.sent_to(description)
        self._change(VerifierState.READY if mismatch is None else VerifierState.MISMATCHED, mismatch or "")

    def _forget_probes(self, kept: int) -> None:
        while len(self._probes) > kept:
            self._transport.cancel(self._probes.pop(0))

    def _lose(self, trouble: str) -> None:
        self._describe_s = -math.inf
        self._breaker.reset()
        self._forget_probes(0)
        self._change(VerifierState.ABSENT, trouble)

    def _change(self, link: VerifierState, trouble: str) -> None:
        if (link, trouble) != (self.link, self.trouble):
            self.link, self.trouble = link, trouble
            self._on_change()
