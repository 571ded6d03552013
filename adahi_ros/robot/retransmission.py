# SPDX-License-Identifier: Apache-2.0
"""When a request is sent again.

As TCP does it (RFC 6298): after the usual round trip and four times its deviation, twice as long after each
retransmission. A request that is sent again costs the verifier some work and nobody a wrong reply: it is the
same one, for the draws are addressed by the step.
"""

from __future__ import annotations

WEIGHT = 0.1  # of the newest round trip
DEVIATIONS = 4.0
MARGIN_S = 0.004  # at least, beyond the usual round trip: less than that is a busy machine
FIRST_S = 0.02  # before the first reply
RETRANSMISSIONS = 3  # of a request, at most


class RetransmissionTimeout:
    """Learns from the replies how long a round trip takes, the verifier's compute included."""

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
