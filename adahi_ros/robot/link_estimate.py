# SPDX-License-Identifier: Apache-2.0
"""How the link and the verifier are, estimated from the requests that are sent anyway.

`LinkEstimator` says how the link is, `RetransmissionTimeout` when a request is sent again, and `Breaker`
when the verifier is left alone.

Smoothed as TCP smooths its round-trip time (Jacobson, 1988; RFC 6298, section 2). A round trip much longer
than the shortest of late (as BBR takes it; Cardwell et al., 2016) means that a packet was probably lost on
its way and sent again: DDS does that by itself, and tells nobody.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from adahi_ros.gates.interface import LinkEstimate

WEIGHT = 0.1  # of the newest request
RECENT = 50  # round trips, of which the shortest is the link's own
LATE_SHARE = 0.5  # of it; who misses a packet asks for it, which takes half a round trip at least
LATE_AT_LEAST_MS = 10.0  # beyond the jitter of a busy machine
GOODPUT_S = 1.0  # time constant

DEVIATIONS = 4.0
MARGIN_S = 0.004  # at least, beyond the usual round trip: less than that is a busy machine
FIRST_S = 0.02  # before the first reply
RETRANSMISSIONS = 3  # of a request, at most

MISSES_UNTIL_OPEN = 3
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 0.5  # bounds how long after the return of link or verifier the robot does not notice it


def moved(average: float, value: float) -> float:
    """Return a moving average after a value; NaN is that of none."""
    return value if math.isnan(average) else average + WEIGHT * (value - average)


class LinkEstimator:
    """Keeps a `LinkEstimate` up to date."""

    def __init__(self) -> None:
        self._estimate = LinkEstimate()
        self._counted_s = 0.0
        self._recent_ms: deque[float] = deque(maxlen=RECENT)

    def replied(self, now_s: float, rtt_ms: float, size_bytes: int, retransmitted: bool = False) -> None:
        """A request got its reply in time.

        Args:
            now_s: of a clock that only goes forward.
            rtt_ms: request sent to reply received, without the target's compute.
            size_bytes: of request and reply.
            retransmitted: it was sent more than once. Then nobody knows which of them the reply is to, and
                `rtt_ms` is not counted (Karn and Partridge, 1987).
        """
        if not retransmitted:
            self._count_trip(rtt_ms)
        old = self._estimate
        floor_ms = min(self._recent_ms, default=math.inf)
        late = retransmitted or rtt_ms > floor_ms + max(LATE_AT_LEAST_MS, LATE_SHARE * floor_ms)
        self._estimate = replace(
            old,
            loss=moved(old.loss, float(late)),
            misses=moved(old.misses, 0.0),
            goodput_bytes_s=self._decayed(now_s) + size_bytes / GOODPUT_S,
            requests=old.requests + 1,
            replies=old.replies + 1,
        )
        self._counted_s = now_s

    def _count_trip(self, rtt_ms: float) -> None:
        old = self._estimate
        self._recent_ms.append(rtt_ms)
        average_ms = rtt_ms if math.isnan(old.rtt_ms) else old.rtt_ms
        self._estimate = replace(
            old,
            rtt_ms=moved(old.rtt_ms, rtt_ms),
            rtt_deviation_ms=moved(old.rtt_deviation_ms, abs(rtt_ms - average_ms)),
        )

    def missed(self) -> None:
        """A request got no reply by the deadline."""
        old = self._estimate
        self._estimate = replace(
            old,
            loss=moved(old.loss, 1.0),
            misses=moved(old.misses, 1.0),
            requests=old.requests + 1,
        )

    def estimate(self, now_s: float) -> LinkEstimate:
        """Return how the link is now."""
        return replace(self._estimate, goodput_bytes_s=self._decayed(now_s))

    def _decayed(self, now_s: float) -> float:
        return self._estimate.goodput_bytes_s * math.exp((self._counted_s - now_s) / GOODPUT_S)


class RetransmissionTimeout:
    """Says when a request is sent again; learns from the replies how long a round trip takes.

    As TCP does it (RFC 6298): after the usual round trip, the verifier's compute included, and four times its
    deviation; twice as long after each retransmission. A copy of a request costs the verifier some work and
    never leads to another reply, because the step addresses the draws.
    """

    def __init__(self) -> None:
        self._usual_s: float | None = None
        self._deviation_s = 0.0

    def replied(self, took_s: float) -> None:
        """A reply has come so long after the request was first sent.

        However often that was sent: a verifier that is slower than the timeout must not be sent everything
        twice for ever.
        """
        if self._usual_s is None:
            self._usual_s = took_s
        self._deviation_s += WEIGHT * (abs(took_s - self._usual_s) - self._deviation_s)
        self._usual_s += WEIGHT * (took_s - self._usual_s)

    @property
    def expected_s(self) -> float:
        """By when a reply is there as a rule: the usual round trip, and a margin by its deviation."""
        if self._usual_s is None:
            return FIRST_S
        return self._usual_s + max(MARGIN_S, DEVIATIONS * self._deviation_s)

    def wait_s(self, retransmissions: int) -> float | None:
        """Return how long to wait after so many retransmissions; None where there were enough."""
        if retransmissions >= RETRANSMISSIONS:
            return None
        return self.expected_s * 2**retransmissions


class Breaker:
    """Leaves alone a verifier that does not reply in time.

    It opens after several misses in a row, then lets a probe
    through after each of ever longer pauses.

    A probe that gets its reply closes it on trial: the next miss opens it again, and the pauses go on
    growing. A reply in time ends the trial.

    Attributes:
        open: nothing is to be sent but probes.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Close it and forget the misses."""
        self.open = False
        self._misses = 0
        self._pause_s = FIRST_PAUSE_S
        self._next_probe_s = 0.0

    @property
    def on_trial(self) -> bool:
        """Closed again, but no reply has come in time since."""
        return not self.open and self._misses >= MISSES_UNTIL_OPEN

    def missed(self, now_s: float) -> None:
        """Count a reply that did not come in time."""
        self._misses += 1
        if self._misses >= MISSES_UNTIL_OPEN:
            self.open = True
            self._pause(now_s)

    def replied(self) -> None:
        """A reply has come in time."""
        self.reset()

    def probe_due(self, now_s: float) -> bool:
        """Whether to send a probe now."""
        return self.open and now_s >= self._next_probe_s

    def probed(self, now_s: float) -> None:
        """A probe was sent; the next is due after a longer pause."""
        self._pause(now_s)

    def probe_replied(self) -> None:
        """Close on trial."""
        self.open = False

    def _pause(self, now_s: float) -> None:
        self._next_probe_s = now_s + self._pause_s
        self._pause_s = min(2.0 * self._pause_s, LONGEST_PAUSE_S)
