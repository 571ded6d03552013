# SPDX-License-Identifier: Apache-2.0
"""Which runs of drafted tokens a target reads at the same time: continuous speculation. No clock, no thread.

A *run* is the first tokens of a chunk: verified ones, then drafted ones. The target's pass over a run says
how many of them are its own, and which token follows these. New runs go out while earlier ones are read:

    verified ─┬─ run 1 ──▶ 2 tokens are its own, then another one: verified
              ├─ run 2 ··▶ void: it continues a token that was refused
              └─ run 3 ··▶ void

PipeInfer (Butler et al., arXiv 2407.11798) reads the runs in one pipeline, DSI (Timor et al., arXiv
2405.14105) on several instances of the target. The chunk is the target's own, whatever is drafted: each
verified token is the target's choice after the verified tokens before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Run:
    """A pass of the target over the first tokens of a chunk."""

    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Cutoff:
    """The confidence below which a token is not drafted, as PipeInfer has it; 0 for none.

    Attributes:
        first: while nothing has happened since a token was last verified.
        recovery: added with each run that went out since then.
        decay: subtracted with each token that was not drafted since then.
    """

    first: float = 0.0
    recovery: float = 0.0
    decay: float = 0.0


NO_CUTOFF, CUTOFF = Cutoff(), Cutoff(0.05, recovery=0.05)


class TokenRuns:
    """The verified and drafted tokens of one chunk, and the runs that are being read.

    Attributes:
        verified: tokens that are the target's own.
        drafted: the verified ones and those drafted after them; never the last of a chunk, because the pass
            over those before it makes it.
        in_flight: runs that are being read, the oldest first.

    Args:
        length: tokens of a chunk.
        batch: drafted tokens until the next run goes out.
        most: runs that may be read at the same time.
        least: tokens of the shortest run. A run of none reads the observation alone.
        cutoff: stops the draft, but not before the shortest run.
    """

    def __init__(
        self, length: int, batch: int, most: int, least: int = 0, cutoff: Cutoff = NO_CUTOFF
    ) -> None:
        self.verified: list[int] = []
        self.drafted: list[int] = []
        self.in_flight: list[Run] = []
        self._length, self._batch, self._most, self._least = length, batch, most, least
        self._cutoff, self._stopped = cutoff, False
        self._sent = self._unsure = 0  # since a token was last verified

    @property
    def done(self) -> bool:
        """Whether all tokens are verified."""
        return len(self.verified) == self._length

    @property
    def wants_draft(self) -> bool:
        """Whether another token should be drafted: until a run of these waits, or the draft is unsure."""
        unread = len(self.drafted) - self._read
        tries = not self._stopped or self._cutoff.decay > 0.0
        return not self.done and tries and len(self.drafted) < self._length - 1 and unread <= self._batch

    @property
    def _read(self) -> int:
        """Tokens of the longest run in flight; -1 without one."""
        return max((len(run.tokens) for run in self.in_flight), default=-1)

    def draft(self, token: int, confidence: float = 1.0) -> None:
        """Append a token that was drafted after `drafted`, if the draft is sure enough."""
        cutoff = self._cutoff
        level = cutoff.first + cutoff.recovery * self._sent - cutoff.decay * self._unsure
        self._stopped = confidence < level and len(self.drafted) >= self._least
        if self._stopped:
            self._unsure += 1
        else:
            self.drafted.append(token)

    def next_run(self) -> Run | None:
        """Return the run to read next, from now on in flight; None where none is due.

        It goes out when enough tokens are drafted, or the draft is unsure of the next one, or at once where
        no run in flight gives the token after the verified ones. So the target never waits for the draft.
        """
        tokens, read = len(self.drafted), self._read
        if self.done or len(self.in_flight) >= self._most or tokens <= read or tokens < self._least:
            return None
        enough = tokens - read >= self._batch or tokens == self._length - 1 or self._stopped
        if not enough and read >= len(self.verified):
            return None
        run = Run(tuple(self.drafted))
        self.in_flight.append(run)
        self._sent += 1
        return run

    def returned(self, run: Run, accepted: int, following: int) -> list[Run]:
        """Take in what the target says of a run; return the runs that became void, no more in flight.

        Args:
            run: as `next_run` returned it; one that is no more in flight changes nothing.
            accepted: tokens from its first on that are the target's own.
            following: the target's token after these.
        """
        if run not in self.in_flight:
            return []
        self.in_flight.remove(run)
        found = [*run.tokens[:accepted], following]
        if len(found) > len(self.verified):
            self.verified, self._stopped = found, False
            self._sent = self._unsure = 0
        if contradicts(self.drafted, self.verified) or len(self.drafted) < len(self.verified):
            self.drafted = self.verified[: self._length - 1]
        void = [
            each
            for each in self.in_flight
            if contradicts(each.tokens, self.verified) or len(each.tokens) < len(self.verified)
        ]
        self.in_flight = [each for each in self.in_flight if each not in void]
        return void

    def lost(self, run: Run) -> None:
        """Note that a run gets no result, so that its tokens are read again."""
        self.in_flight = [each for each in self.in_flight if each is not run]


def contradicts(tokens: Sequence[int], verified: Sequence[int]) -> bool:
    """Return whether tokens continue, or are, others than the verified ones."""
    return any(ours != theirs for ours, theirs in zip(tokens, verified, strict=False))
