# SPDX-License-Identifier: Apache-2.0
"""Several verifiers of one target as one `Transport`: the first good reply to a request wins.

A request goes to the verifier that has been the quickest of late, and to the next one only where its reply
is later than the 95th percentile of those before: a hedged request (Dean and Barroso, "The tail at scale",
CACM 56(2), 2013). Or it goes to all of them at once, as distributed speculative inference asks several
instances of a target (Timor et al., arXiv 2405.14105). Whoever answers, the robot does the same: draws are
addressed by seed, robot, episode and step, so verifiers of one checkpoint and one seed give one answer.

What is not needed any more is not waited for, but its reply is still taken note of for a while. Else a slow
verifier that is always overtaken would be known by its quickest replies alone.
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
from adahi_ros.robot.session import DESCRIBE_RETRY_S, OF_ANOTHER, WATCH_PERIOD_S
from adahi_ros.robot.steps import judged
from adahi_ros.robot.transport import Sent, Transport
from adahi_ros.robot.verifier_endpoint import SOONEST_S, Asked, Message, VerifierEndpoint

UNKNOWN = "policy_fingerprint: unknown, so its weights may differ; verification.hedge_unknown: true allows it"
FIRST_NAMED_S = 0.3  # so long the others wait for it to say what the target is
ANEW_S = (
    3 * WATCH_PERIOD_S
)  # so long there is no verifier, where the session must see that the target is another
REFRESH_S = 5.0  # one that is asked says again what it is: it may serve another policy by now
QUIET_S = 5.0  # between two lines that say of one verifier whether it is there
BETTER = 0.8  # of the cost, below which another verifier is asked first
BETTER_BY_S = 0.002  # at least: less than that is a busy machine


class HedgedTransport(Transport):
    """See the module, and `Transport`.

    The verifier that is named first says what the target is; where it is not heard in time at the start, the
    next one does. One that describes another target, the same one with other weights, or none, is not asked.
    A backup with unknown weights may have other ones. It is not asked without `hedge_unknown`; one warning
    says which of the two applies.

    Args:
        transports: to each verifier, by its name for people; at least one.
        hedge: when a request goes to another one, of `HEDGES`: `late`, where a reply is later than usual;
            `at_once`; or `off`, only where the one before refuses it. One that does not reply at all
            is not asked for a while, whatever this is.
        clock: the time in seconds; never goes back. That of the session.
        on_news: told what becomes of single verifiers.
        hedge_unknown: ask backups with unknown weights, too.
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
        self._open: list[Asked] = []
        self._target: Description | None = None
        self._named_by = self._first
        self._asked_for: int | None = None  # by the session: a description
        self._asked_for_s = -math.inf
        self._anew_s = -math.inf
        self._arrived: list[Reply | Described | Sent] = []

    @property
    def present(self) -> bool:
        """Whether one is there that is not known to be another."""
        there = [end for end in self._ends if end.transport.present]
        if self._target is not None:
            there = [end for end in there if not end.trouble]
        return bool(there) and self._clock() >= self._anew_s

    @property
    def next_due_s(self) -> float:
        """When the next request is to be hedged."""
        return min((asked.hedge_s for asked in self._open), default=math.inf)

    @property
    def figures(self) -> dict[str, object]:
        """What each verifier was asked and how it replies, for people."""
        found: dict[str, object] = {}
        for end in self._ends:
            of_it = {**asdict(end.totals), "late_ms": f"{1e3 * end.late_s:.1f}", "trouble": end.trouble}
            found |= {f"{end.name}.{name}": value for name, value in of_it.items()}
        return found

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request, to one or to all; of its window what each lacks, whatever the update is.

        One that is under way and is submitted again goes to all that should have replied by now.
        """
        now_s, sent = self._clock(), next(self._ids)
        ready = self._ready(now_s)
        first, others = ready[0], [end for end in ready[1:] if not end.is_spared(now_s)]
        asked = next((each for each in self._open if each.request is request), None)
        if asked is None:
            asked = Asked(request, now_s)
            self._open.append(asked)
            if self._hedge == "late" and others:
                # Others that were hardly asked may be much quicker, which nobody would find out soon.
                known = all(end.is_measured for end in others)
                asked.hedge_s = now_s + (first.late_s if known else min(FIRST_S, first.late_s))
            spread = others if self._hedge == "at_once" else []
        elif self._hedge == "off":
            spread = []
        else:
            asked.hedge_s = math.inf
            spread = [end for end in others if now_s >= asked.sent_s.get(end.name, -math.inf) + end.late_s]
        asked.ids.append(sent)
        return Sent(sent, sum(end.send(asked, now_s) for end in [first, *spread]))

    def describe(self) -> int:
        """Ask all verifiers what they are, and no more until they have said so; return the message's id."""
        now_s = self._clock()
        self._asked_for, self._asked_for_s = next(self._ids), now_s
        for end in self._ends:
            end.description = None  # who asks may have been away for long
            if end.transport.present:
                end.probe(now_s, DESCRIBE_RETRY_S)
        return self._asked_for

    def cancel(self, sent: int) -> None:
        """Forget a message; what yet comes tells of the verifier, and nothing else."""
        if sent == self._asked_for:
            self._asked_for = None
        for asked in self._open:
            if sent in asked.ids:
                asked.ids.remove(sent)
        self._open = [asked for asked in self._open if asked.ids]

    def poll(self) -> list[Reply | Described | Sent]:
        """Return what has come since, and ask others where a reply is late."""
        now_s = self._clock()
        for end in self._ends:
            for received in end.transport.poll():
                if isinstance(received, Described):
                    self._described(end, received, now_s)
                elif isinstance(received, Reply):
                    self._replied(end, received, now_s)
        for asked in self._open:
            if now_s >= asked.hedge_s:
                self._ask_another(asked, now_s)
        self._look(now_s)
        arrived, self._arrived = self._arrived, []
        return arrived

    # Requests

    def _ready(self, now_s: float) -> list[VerifierEndpoint]:
        """Return the verifiers that can be asked, in the order in which they are."""
        fit = [end for end in self._ends if self._fits(end) and end.transport.present]
        fit = fit or [self._first]
        if self._hedge == "off":
            return sorted(fit, key=lambda end: end.is_spared(now_s))
        fit.sort(key=lambda end: (end.is_spared(now_s), end.cost_s))
        best, leading = fit[0], self._leading
        much_better = best.cost_s < BETTER * leading.cost_s - BETTER_BY_S
        if leading not in fit or leading.is_spared(now_s) > best.is_spared(now_s) or much_better:
            self._leading = best
            if best is not leading and self._hedge == "late":
                self._on_news(News(Level.OK, f"verifier {best.name} is asked first from now on"))
        return [self._leading, *(end for end in fit if end is not self._leading)]

    def _ask_another(self, asked: Asked, now_s: float) -> None:
        """Ask the next verifier, too, where there is one."""
        asked.hedge_s = math.inf
        others = [
            end for end in self._ready(now_s) if end.name not in asked.sent_s and not end.is_spared(now_s)
        ]
        if others:
            self._send_more(asked, others[0], now_s)
        if len(others) > 1 and self._hedge == "late":
            asked.hedge_s = now_s + others[0].late_s

    def _send_more(self, asked: Asked, end: VerifierEndpoint, now_s: float) -> None:
        self._arrived.append(Sent(asked.ids[-1], end.send(asked, now_s)))

    def _replied(self, end: VerifierEndpoint, reply: Reply, now_s: float) -> None:
        message = end.under_way.pop(reply.id, None)
        if message is None:
            return
        asked = message.asked
        if reply.status == RequestFault.WINDOW_UNKNOWN and not message.whole:
            end.lacks_window(reply)
            if asked.ids:
                self._send_more(asked, end, now_s)
            return
        good = self._judge(end, message, reply, now_s)
        end.replied(message, reply, good, now_s)
        if not asked.ids:
            end.totals.spare += good
        elif good:
            end.totals.answers += 1
            self._hand_over(asked, reply)
        else:
            self._refused(asked, end, reply, now_s)

    def _refused(self, asked: Asked, end: VerifierEndpoint, reply: Reply, now_s: float) -> None:
        """Ask another verifier; where none is left that may answer, tell the session."""
        if not end.is_asked(asked):  # by another copy, which it may have let in
            asked.refused.add(end.name)
        if reply.status != RequestFault.SUPERSEDED:  # which is the robot's own doing
            self._ask_another(asked, now_s)
        if asked.refused >= asked.sent_s.keys():
            self._hand_over(asked, self._refusal(reply, now_s))

    def _judge(self, end: VerifierEndpoint, message: Message, reply: Reply, now_s: float) -> bool:
        """Return whether a reply is an answer; take note of what it says of the verifier, if it is none."""
        if reply.status in OF_ANOTHER:
            end.description = None
            end.describe_s = now_s
        if self._target is None:
            return not reply.fault and reply.status == 0
        outcome = judged(self._target, message.request, reply, 0.0)
        if outcome.reason is Reason.BUSY:
            end.busy_until_s = max(end.busy_until_s, now_s + outcome.retry_after_s)
        return outcome.verification is not None

    def _refusal(self, reply: Reply, now_s: float) -> Reply:
        """Return what the session is told where nobody answers: of the busy ones, when the first is free."""
        if reply.status != RequestFault.BUSY:
            return reply
        free_s = min((end.busy_until_s for end in self._ends if self._fits(end)), default=-math.inf)
        return replace(reply, retry_after_s=max(SOONEST_S, free_s - now_s))

    def _hand_over(self, asked: Asked, reply: Reply) -> None:
        # To each copy, for the session waits for all of them where a verifier is busy.
        self._arrived += [replace(reply, id=sent) for sent in asked.ids]
        asked.ids.clear()
        self._open.remove(asked)

    # Verifiers

    def _fits(self, end: VerifierEndpoint) -> bool:
        return end.description is not None and not end.trouble

    def _look(self, now_s: float) -> None:
        """See who has come or gone, who does not reply, and who is to say what it is."""
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
            self._tell_of(end, now_s)
        if not any(end.transport.present for end in self._ends):
            self._target = None  # whoever comes is asked anew
        elif self._target is None and now_s - self._asked_for_s >= FIRST_NAMED_S:
            for end in self._ends:
                if end.description is not None:
                    self._settle(end, end.description, now_s)
                    break

    def _described(self, end: VerifierEndpoint, described: Described, now_s: float) -> None:
        if described.id not in end.probes:
            return
        end.forget_probes()
        end.breaker.probe_replied()
        end.description, end.heard = described.description, True
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
        """Take a target for that of all; where it is not the one before, the session is to see that."""
        changed = self._target not in (None, target)
        self._target, self._named_by = target, by
        for end in self._ends:
            if end.description is not None:
                self._compare(end)
        if changed and self._asked_for is None:
            self._anew_s = now_s + ANEW_S
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
        """Ask a backup with unknown weights only where the operator allows it; warn once."""
        end.trouble = "" if self._hedge_unknown else UNKNOWN
        if not end.unknown_told:
            end.unknown_told = True
            what = (
                "is asked although its weights are unknown"
                if self._hedge_unknown
                else f"is not asked: {UNKNOWN}"
            )
            self._on_news(News(Level.WARN, f"verifier {end.name} {what}"))

    def _tell_of(self, end: VerifierEndpoint, now_s: float) -> None:
        """Say once that a verifier is gone, or back."""
        lost = end.lost
        if lost == end.told or now_s < end.told_s + QUIET_S:
            return
        end.told, end.told_s = lost, now_s
        level, what = (Level.WARN, lost) if lost else (Level.OK, "is back")
        self._on_news(News(level, f"verifier {end.name} {what}"))

    def _refuse(self, end: VerifierEndpoint, trouble: str) -> None:
        """Take note why a verifier is not asked, or that nothing is the matter with it."""
        if trouble and trouble != end.trouble:
            self._on_news(News(Level.ERROR, f"verifier {end.name} is not asked: {trouble}"))
        end.trouble = trouble

    def _describe(self, described: Described) -> None:
        """Reply to the session, if it has asked."""
        if self._asked_for is not None:
            self._arrived.append(replace(described, id=self._asked_for))
            self._asked_for = None
