# SPDX-License-Identifier: Apache-2.0
"""Several verifiers of one target as one `Transport`: the first good reply to a request wins.

A request goes to the recently fastest verifier. It goes to the next one only if the reply is later than the
95th percentile: a hedged request (Dean and Barroso, "The tail at scale", CACM 56(2), 2013). Or it goes to all
at once. The robot's actions do not depend on which verifier answers: seed, robot, episode and step determine
the draws.

Late replies still count in the statistics. Otherwise only the fastest replies of a slow verifier would count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from itertools import count

from adahi_ros.core.health_level import Level
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import Reply, Request, RequestFault
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.diagnosis import News
from adahi_ros.robot.link_estimate import FIRST_S
from adahi_ros.robot.outcomes import Check, Outcome, judged
from adahi_ros.robot.session import DESCRIBE_RETRY_S, OF_ANOTHER, WATCH_PERIOD_S
from adahi_ros.robot.transport import Sent, Transport
from adahi_ros.robot.verifier_endpoint import SOONEST_S, Message, Pending, VerifierEndpoint

UNKNOWN = "policy_fingerprint: unknown, so its weights may differ; verification.hedge_unknown: true allows it"
FIRST_NAMED_S = 0.3  # wait for the first verifier's description before using another's
ABSENT_S = 3 * WATCH_PERIOD_S  # appear absent this long, so that the session sees that the target changed
REFRESH_S = 5.0  # between descriptions of one verifier: it may serve another policy by now
QUIET_S = 5.0  # between two log lines on whether one verifier is there
BETTER = 0.8  # share of the cost below which another verifier becomes the first
BETTER_BY_S = 0.002  # and at least this much: smaller differences are noise of a busy machine


class HedgedTransport(Transport):
    """A `Transport` to several verifiers; see the module.

    The first configured verifier defines the target; if it does not reply in time at the start, the next one
    does. A verifier with another target or other weights, or without a description, gets no requests. A
    backup with unknown weights gets requests only with `hedge_unknown`; one warning says which applies.

    Args:
        transports: to each verifier, by name; at least one.
        hedge: when a request goes to another verifier, of `HEDGES`: `late`, if the reply is later than usual;
            `at_once`; or `off`, only if the first one refuses. With `spread`, each request goes to the
            verifier with the fewest in flight: runs of tokens are read side by side, as DSI does. With any
            value, a verifier that does not reply gets no requests for a while.
        clock: monotonic time in seconds, the session's.
        on_news: called when a verifier is lost, returns, or is refused.
        hedge_unknown: also use backups with unknown weights.
    """

    def __init__(
        self,
        transports: Mapping[str, Transport],
        hedge: str,
        clock: Callable[[], float],
        on_news: Callable[[News], None],
        hedge_unknown: bool = False,
    ) -> None:
        self._hedge_unknown = hedge_unknown
        self._ends = [VerifierEndpoint(name, transport) for name, transport in transports.items()]
        self._first = self._leading = self._ends[0]
        self._hedge = hedge
        self._clock = clock
        self._on_news = on_news
        self._ids = count()
        self._open: list[Pending] = []
        self._target: Description | None = None
        self._named_by = self._first
        self._describe_id: int | None = None  # by the session: a description
        self._describe_since_s = -math.inf
        self._absent_until_s = -math.inf
        self._arrived: list[Reply | Described | Sent] = []
        self._check: Check = lambda actions: None

    @property
    def present(self) -> bool:
        """Whether a verifier is there that is not known to serve another target."""
        there = [end for end in self._ends if end.transport.present]
        if self._target is not None:
            there = [end for end in there if not end.trouble]
        return bool(there) and self._clock() >= self._absent_until_s

    @property
    def absence(self) -> str:
        """See `Transport`."""
        return "; ".join(filter(None, (end.transport.absence for end in self._ends)))

    @property
    def next_due_s(self) -> float:
        """Time at which the next request is to be hedged."""
        return min((pending.hedge_s for pending in self._open), default=math.inf)

    @property
    def figures(self) -> dict[str, object]:
        """Requests and replies of each verifier, for people."""
        found: dict[str, object] = {}
        for end in self._ends:
            of_it = {**asdict(end.totals), "late_ms": f"{1e3 * end.late_s:.1f}", "trouble": end.trouble}
            found |= {f"{end.name}.{name}": value for name, value in of_it.items()}
        return found

    def accept_only(self, check: Check) -> None:
        """See `Transport`: a reply with other actions is no answer."""
        self._check = check

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request to one or all verifiers, with the part of the window that each lacks.

        A pending request that is submitted again goes to all that should have replied by now.
        """
        now_s, sent = self._clock(), next(self._ids)
        ready = self._ready(now_s)
        first, others = ready[0], [end for end in ready[1:] if not end.is_spared(now_s)]
        pending = next((each for each in self._open if each.request is request), None)
        if pending is None:
            pending = Pending(request, now_s)
            self._open.append(pending)
            if self._hedge == "late" and others:
                # Verifiers without measurements may be much faster: hedge early to measure them.
                known = all(end.is_measured for end in others)
                pending.hedge_s = now_s + (first.late_s if known else min(FIRST_S, first.late_s))
            spread = others if self._hedge == "at_once" else []
        elif self._hedge == "off":
            spread = []
        else:
            pending.hedge_s = math.inf
            spread = [end for end in others if now_s >= pending.sent_s.get(end.name, -math.inf) + end.late_s]
        pending.ids.append(sent)
        return Sent(sent, sum(end.send(pending, now_s) for end in [first, *spread]))

    def describe(self) -> int:
        """Request all descriptions, and send nothing else until they arrive; return the message's id."""
        now_s = self._clock()
        self._describe_id, self._describe_since_s = next(self._ids), now_s
        for end in self._ends:
            end.description = None  # it may be outdated
            if end.transport.present:
                end.probe(now_s, DESCRIBE_RETRY_S)
        return self._describe_id

    def cancel(self, sent: int) -> None:
        """Forget a message; a later reply counts only in the verifier's statistics."""
        if sent == self._describe_id:
            self._describe_id = None
        for pending in self._open:
            if sent in pending.ids:
                pending.ids.remove(sent)
        self._open = [pending for pending in self._open if pending.ids]

    def poll(self) -> list[Reply | Described | Sent]:
        """Return what has arrived since the last call, and hedge requests with a late reply."""
        now_s = self._clock()
        for end in self._ends:
            for received in end.transport.poll():
                if isinstance(received, Described):
                    self._described(end, received, now_s)
                elif isinstance(received, Reply):
                    self._replied(end, received, now_s)
        for pending in self._open:
            if now_s >= pending.hedge_s:
                self._ask_another(pending, now_s)
        self._update_ends(now_s)
        arrived, self._arrived = self._arrived, []
        return arrived

    # Requests

    def _ready(self, now_s: float) -> list[VerifierEndpoint]:
        """Return the verifiers that can get requests, in their order."""
        fit = [end for end in self._ends if self._fits(end) and end.transport.present]
        fit = fit or [self._first]
        if self._hedge == "off":
            return sorted(fit, key=lambda end: end.is_spared(now_s))
        if self._hedge == "spread":
            return sorted(fit, key=lambda end: (end.is_spared(now_s), len(end.under_way)))
        fit.sort(key=lambda end: (end.is_spared(now_s), end.cost_s))
        best, leading = fit[0], self._leading
        much_better = best.cost_s < BETTER * leading.cost_s - BETTER_BY_S
        if leading not in fit or leading.is_spared(now_s) > best.is_spared(now_s) or much_better:
            self._leading = best
            if best is not leading and self._hedge == "late":
                self._on_news(News(Level.OK, f"verifier {best.name} is asked first from now on"))
        return [self._leading, *(end for end in fit if end is not self._leading)]

    def _ask_another(self, pending: Pending, now_s: float) -> None:
        """Send the request also to the next verifier, if there is one."""
        pending.hedge_s = math.inf
        others = [
            end for end in self._ready(now_s) if end.name not in pending.sent_s and not end.is_spared(now_s)
        ]
        if others:
            self._send_more(pending, others[0], now_s)
        if len(others) > 1 and self._hedge == "late":
            pending.hedge_s = now_s + others[0].late_s

    def _send_more(self, pending: Pending, end: VerifierEndpoint, now_s: float) -> None:
        self._arrived.append(Sent(pending.ids[-1], end.send(pending, now_s)))

    def _replied(self, end: VerifierEndpoint, reply: Reply, now_s: float) -> None:
        message = end.under_way.pop(reply.id, None)
        if message is None:
            return
        pending = message.pending
        if reply.status == RequestFault.WINDOW_UNKNOWN and not message.whole:
            end.lacks_window(reply)
            if pending.ids:
                self._send_more(pending, end, now_s)
            return
        outcome = self._judge(end, message, reply, now_s)
        good = outcome.verification is not None
        end.replied(message, reply, outcome, now_s)
        if not pending.ids:
            end.totals.spare += good
        elif good:
            end.totals.answers += 1
            self._hand_over(pending, reply)
        else:
            self._refused(pending, end, reply, now_s)

    def _refused(self, pending: Pending, end: VerifierEndpoint, reply: Reply, now_s: float) -> None:
        """Send the request to another verifier; if none is left that may answer, pass on the refusal."""
        if not end.awaits_reply(pending):  # another copy may still be accepted
            pending.refused.add(end.name)
        if reply.status != RequestFault.SUPERSEDED:  # caused by the robot itself
            self._ask_another(pending, now_s)
        if pending.refused >= pending.sent_s.keys():
            self._hand_over(pending, self._refusal(reply, now_s))

    def _judge(self, end: VerifierEndpoint, message: Message, reply: Reply, now_s: float) -> Outcome:
        """Return the outcome of a reply; update the verifier's state if it is no answer."""
        if reply.status in OF_ANOTHER:
            end.description = None
            end.describe_s = now_s
        target = self._target or end.description
        if target is None:
            return Outcome(None, Reason.REFUSED)
        outcome = judged(target, message.request, reply, 0.0, self._check)
        if outcome.reason is Reason.BUSY:
            end.busy_until_s = max(end.busy_until_s, now_s + outcome.retry_after_s)
        return outcome

    def _refusal(self, reply: Reply, now_s: float) -> Reply:
        """Return the refusal for the session; if all are busy, with the time until the first is free."""
        if reply.status != RequestFault.BUSY:
            return reply
        free_s = min((end.busy_until_s for end in self._ends if self._fits(end)), default=-math.inf)
        return replace(reply, retry_after_s=max(SOONEST_S, free_s - now_s))

    def _hand_over(self, pending: Pending, reply: Reply) -> None:
        # To each copy, because the session waits for all of them if a verifier is busy.
        self._arrived += [replace(reply, id=sent) for sent in pending.ids]
        pending.ids.clear()
        self._open.remove(pending)

    # Verifiers

    def _fits(self, end: VerifierEndpoint) -> bool:
        return end.description is not None and not end.trouble

    def _update_ends(self, now_s: float) -> None:
        """Update which verifiers are there and reply, and request descriptions that are due."""
        for end in self._ends:
            end.count_misses(now_s)
            if not end.transport.present:
                end.forget()
            elif end.breaker.open:
                if end.breaker.probe_due(now_s):
                    end.breaker.probed(now_s)
                    end.probe(now_s, DESCRIBE_RETRY_S)
            elif self._target is not None and now_s >= end.describe_s:
                end.probe(now_s, DESCRIBE_RETRY_S)
            self._report(end, now_s)
        if not any(end.transport.present for end in self._ends):
            self._target = None  # the next verifier describes its target again
        elif self._target is None and now_s - self._describe_since_s >= FIRST_NAMED_S:
            for end in self._ends:
                if end.description is not None:
                    self._settle(end, end.description, now_s)
                    break

    def _described(self, end: VerifierEndpoint, described: Described, now_s: float) -> None:
        if described.id not in end.probes:
            return
        end.forget_probes()
        end.breaker.probe_replied()
        end.description, end.was_described = described.description, True
        if described.description is None:
            self._refuse(end, described.fault)
            if end is self._first and self._target is None:
                self._describe(described)
        elif end in (self._first, self._named_by):
            self._settle(end, described.description, now_s)
        elif self._target is not None:
            self._compare(end)
            if not end.trouble:
                self._describe(described)
        end.describe_s = now_s + (REFRESH_S if self._fits(end) else DESCRIBE_RETRY_S)

    def _settle(self, by: VerifierEndpoint, target: Description, now_s: float) -> None:
        """Use one target for all verifiers; if it changed, make the session see that."""
        changed = self._target not in (None, target)
        self._target, self._named_by = target, by
        for end in self._ends:
            if end.description is not None:
                self._compare(end)
        if changed and self._describe_id is None:
            self._absent_until_s = now_s + ABSENT_S
        self._describe(Described(0, target))

    def _compare(self, end: VerifierEndpoint) -> None:
        assert self._target is not None
        assert end.description is not None
        trouble = end.description.difference_from(self._target) or ""
        known = end.description.policy_fingerprint and self._target.policy_fingerprint
        if known or trouble or end is self._named_by:
            self._refuse(end, trouble)
            return
        self._refuse_unknown(end)

    def _refuse_unknown(self, end: VerifierEndpoint) -> None:
        """Use a backup with unknown weights only if the parameter allows it; warn once."""
        end.trouble = "" if self._hedge_unknown else UNKNOWN
        if not end.unknown_reported:
            end.unknown_reported = True
            what = (
                "is asked although its weights are unknown"
                if self._hedge_unknown
                else f"is not asked: {UNKNOWN}"
            )
            self._on_news(News(Level.WARN, f"verifier {end.name} {what}"))

    def _report(self, end: VerifierEndpoint, now_s: float) -> None:
        """Report once that a verifier is gone, or back."""
        lost = end.lost
        if lost == end.reported or now_s < end.reported_s + QUIET_S:
            return
        end.reported, end.reported_s = lost, now_s
        level, what = (Level.WARN, lost) if lost else (Level.OK, "is back")
        self._on_news(News(level, f"verifier {end.name} {what}"))

    def _refuse(self, end: VerifierEndpoint, trouble: str) -> None:
        """Record why a verifier gets no requests; an empty reason means that it does."""
        if trouble and trouble != end.trouble:
            self._on_news(News(Level.ERROR, f"verifier {end.name} is not asked: {trouble}"))
        end.trouble = trouble

    def _describe(self, described: Described) -> None:
        """Pass a description to the session, if it requested one."""
        if self._describe_id is not None:
            self._arrived.append(replace(described, id=self._describe_id))
            self._describe_id = None
