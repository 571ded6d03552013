# SPDX-License-Identifier: Apache-2.0
"""Verifiers that do not reply in time: when to send again, and a circuit breaker that sends only probes."""

from __future__ import annotations

MISSES_UNTIL_OPEN = 3
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 0.5  # bounds how long after the return of link or verifier nobody notices it


class Breaker:
    """Opens after several misses in a row, then lets a probe through after each of ever longer pauses.

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
