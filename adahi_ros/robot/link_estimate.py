# SPDX-License-Identifier: Apache-2.0
"""State of link and verifier, estimated from the requests that are sent anyway.

`LinkEstimator` estimates the link, `ReplyTime` how long to wait for a reply, and
`Breaker` when the verifier gets no requests.

Averages are smoothed like TCP's round-trip time (Jacobson, 1988; RFC 6298, section 2). A round trip much
longer than the recent minimum (as in BBR; Cardwell et al., 2016) probably means that DDS lost a packet and
sent it again, which DDS does not report.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from adahi_ros.gates.interface import LinkEstimate

WEIGHT = 0.1  # of the newest request
RECENT = 50  # round trips; the shortest is the link's own
LATE_SHARE = 0.5  # of the shortest: requesting a lost packet takes at least half a round trip
LATE_AT_LEAST_MS = 10.0  # beyond the jitter of a busy machine
GOODPUT_S = 1.0  # time constant

DEVIATIONS = 4.0
MARGIN_S = 0.004  # least margin beyond the usual round trip: less is noise of a busy machine
FIRST_S = 0.02  # before the first reply
RETRANSMISSIONS = 3  # of a request, at most

MISSES_UNTIL_OPEN = 3
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 0.5  # bounds how long the robot does not notice that link or verifier is back


def moved(average: float, value: float) -> float:
    """Return a moving average after a value; NaN is the average of no values."""
    return value if math.isnan(average) else average + WEIGHT * (value - average)


class LinkEstimator:
    """Keeps a `LinkEstimate` up to date."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the link: the next verifier may be elsewhere."""
        self._estimate = LinkEstimate()
        self._counted_s = 0.0
        self._recent_ms: deque[float] = deque(maxlen=RECENT)

    def replied(self, now_s: float, rtt_ms: float, size_bytes: int, retransmitted: bool = False) -> None:
        """A request got its reply in time.

        Args:
            now_s: monotonic time.
            rtt_ms: from the message that the reply answers to the reply, without the target's compute.
            size_bytes: of request and reply.
            retransmitted: it was sent more than once.
        """
        old = self._estimate
        average_ms = rtt_ms if math.isnan(old.rtt_ms) else old.rtt_ms
        self._recent_ms.append(rtt_ms)
        floor_ms = min(self._recent_ms)
        late = retransmitted or rtt_ms > floor_ms + max(LATE_AT_LEAST_MS, LATE_SHARE * floor_ms)
        self._estimate = replace(
            old,
            rtt_ms=moved(old.rtt_ms, rtt_ms),
            rtt_deviation_ms=moved(old.rtt_deviation_ms, abs(rtt_ms - average_ms)),
            loss=moved(old.loss, float(late)),
            misses=moved(old.misses, 0.0),
            goodput_bytes_s=self._decayed(now_s) + size_bytes / GOODPUT_S,
            requests=old.requests + 1,
            replies=old.replies + 1,
        )
        self._counted_s = now_s

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
        """Return the current estimate."""
        return replace(self._estimate, goodput_bytes_s=self._decayed(now_s))

    def _decayed(self, now_s: float) -> float:
        return self._estimate.goodput_bytes_s * math.exp((self._counted_s - now_s) / GOODPUT_S)


class ReplyTime:
    """Estimates the time until a reply, the verifier's compute included, from the replies before.

    As TCP's timeout of retransmission (RFC 6298): the usual time plus four deviations.
    """

    def __init__(self) -> None:
        self._usual_s: float | None = None
        self._deviation_s = 0.0

    def replied(self, took_s: float) -> None:
        """Count a reply that took so long."""
        if self._usual_s is None:
            self._usual_s = took_s
        self._deviation_s += WEIGHT * (abs(took_s - self._usual_s) - self._deviation_s)
        self._usual_s += WEIGHT * (took_s - self._usual_s)

    @property
    def expected_s(self) -> float:
        """Time within which a reply is expected: the usual time plus a margin from its deviation."""
        if self._usual_s is None:
            return FIRST_S
        return self._usual_s + max(MARGIN_S, DEVIATIONS * self._deviation_s)

    def wait_s(self, retransmissions: int) -> float | None:
        """Return when to send a request again after so many retransmissions; None for no further one.

        The wait doubles after each. A copy costs the verifier some work but gets the same reply, because the
        step determines the draws.
        """
        if retransmissions >= RETRANSMISSIONS:
            return None
        return self.expected_s * 2**retransmissions


class Breaker:
    """Stops requests to a verifier that does not reply in time.

    It opens after several misses in a row, and then allows a probe after each of ever longer pauses.

    A reply to a probe closes it on trial: the next miss opens it again, and the pauses keep growing. A reply
    in time ends the trial.

    Attributes:
        open: only probes may be sent.
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
