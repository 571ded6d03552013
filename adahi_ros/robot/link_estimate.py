# SPDX-License-Identifier: Apache-2.0
"""How the link is, estimated from the requests that are sent anyway.

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


def _moved(average: float, value: float) -> float:
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
            loss=_moved(old.loss, float(late)),
            misses=_moved(old.misses, 0.0),
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
            rtt_ms=_moved(old.rtt_ms, rtt_ms),
            rtt_deviation_ms=_moved(old.rtt_deviation_ms, abs(rtt_ms - average_ms)),
        )

    def missed(self) -> None:
        """A request got no reply by the deadline."""
        old = self._estimate
        self._estimate = replace(
            old,
            loss=_moved(old.loss, 1.0),
            misses=_moved(old.misses, 1.0),
            requests=old.requests + 1,
        )

    @property
    def misses(self) -> float:
        """Average share of requests without a reply; see `LinkEstimate`."""
        return self._estimate.misses

    def estimate(self, now_s: float) -> LinkEstimate:
        """Return how the link is now."""
        return replace(self._estimate, goodput_bytes_s=self._decayed(now_s))

    def _decayed(self, now_s: float) -> float:
        return self._estimate.goodput_bytes_s * math.exp((self._counted_s - now_s) / GOODPUT_S)
