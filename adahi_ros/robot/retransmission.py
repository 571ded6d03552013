"""How long an answer takes, and so how long to wait for it before asking again.

As TCP waits (RFC 6298): the usual time and four times its deviation, twice as long after each
repetition. A repeated question costs the verifier some work and nobody a wrong answer: it is the same
one, for the draws are addressed by the step.
"""

from __future__ import annotations

WEIGHT = 0.1  # of the newest answer
DEVIATIONS = 4.0
MARGIN_S = 0.004  # at least, beyond the usual time: less than that is a busy machine
FIRST_S = 0.02  # before the first answer
REPETITIONS = 3  # of a question, at most


class Patience:
    """Learns from the answers how long one takes.

    Attributes:
        usual_s: how long; None before the first.
    """

    def __init__(self) -> None:
        self.usual_s: float | None = None
        self._deviation_s = 0.0

    def answered(self, took_s: float) -> None:
        """An answer has come so long after the question was first asked.

        However often it was repeated: a verifier that is too slow for the patience there is must not be
        asked twice for ever.
        """
        if self.usual_s is None:
            self.usual_s = took_s
        self._deviation_s += WEIGHT * (abs(took_s - self.usual_s) - self._deviation_s)
        self.usual_s += WEIGHT * (took_s - self.usual_s)

    def wait_s(self, repetitions: int) -> float | None:
        """Return how long to wait after so many repetitions; None where there were enough."""
        if repetitions >= REPETITIONS:
            return None
        if self.usual_s is None:
            return FIRST_S * 2**repetitions
        return (self.usual_s + max(MARGIN_S, DEVIATIONS * self._deviation_s)) * 2**repetitions
