# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding of a chunk of tokens: one pass of the target judges the whole draft.

Leviathan et al., "Fast inference from transformers via speculative decoding" (2023), algorithm 1: tokens are
accepted up to the first refusal, which is resampled; after a shorter draft the target adds a bonus token.

The rest would be drafted again. Here the robot is a round trip away, so the target completes the chunk.
Drafted tokens after a refusal are still samples of the distributions that were sent with them. So they are
tested again, some at a time, using the target's distributions after the corrected token, and the result stays
exact. Past the draft's end the target decodes by itself. The rule `speculative` does so for a target of
tokens; with `rest_by_target` the target decodes all that follows a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.proposal import CodeDistribution, Proposal, probabilities_at, residual, sample
from adahi_ros.core.signature import Signature

COMPLETIONS = {
    "draft": "the rest of the draft is tested again, in about one pass per refusal",
    "target": "the target decodes the rest, token by token",
}
"""How a chunk is completed after a refusal."""
AHEAD = 4  # drafted tokens per further pass


@dataclass(frozen=True)
class TokenDistribution(CodeDistribution):
    """The distributions of a chunk's tokens, each given the tokens before it.

    `probabilities[:, i]` is the distribution of token i after `codes[:, :i]`. Where n < N tokens were read,
    there are n + 1 distributions: the last one is of the token after them.

    Attributes:
        hidden: (B, n, D) float32, the network's last hidden state, from which each distribution is made.
        resumed: with other tokens (M, N) from index `first` - 1 on, of robots (M,) by index, returns
            the distributions from token `first` on, `first` at least 1. Costs one pass of the network.
        end: the token after which a chunk has only this one; None where every token has a meaning.
    """

    hidden: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.float32))
    resumed: Callable[[np.ndarray, int, np.ndarray], TokenDistribution] | None = None
    end: int | None = None

    def decided(self, draft: CodeDistribution, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `CodeDistribution`; token after token, by `TokenJudge`."""
        judged = TokenJudge(draft, self, draws).complete()
        return judged.codes, judged.accepted[:, : draft.codes.shape[1]]


@dataclass(frozen=True)
class JudgedTokens:
    """The resulting chunks of M robots.

    Attributes:
        codes: (M, N) int64.
        accepted: (M, N) bool, which are the draft's tokens, kept by a test.
        passes: (M,) int64, of the target, the first one included.
    """

    codes: np.ndarray
    accepted: np.ndarray
    passes: np.ndarray


class TokenJudge:
    """Tests drafted tokens against a target's distributions. Rules of token policies build on it.

    `test`, then `read` and `test` again while not `done`, is exact speculative decoding. A rule may decide
    tokens between these: by `tokens` and `position`.

    Attributes:
        p: (M, n, K), the draft's distributions.
        q: (M, N, K), the target's, given `tokens`; known up to `known`.
        tokens: (M, N) int64: decided ones before `position`, then drafted ones up to `end`.
        position: (M,) int64, the next token to decide, N at the end.
        end: (M,) int64, drafted tokens that count; lower it to drop the rest of a draft.
        known: (M,) int64, tokens with a distribution in `q`.
        accepted: (M, N) bool, drafted tokens that were kept by a test.
        passes: (M,) int64, of the target.
        target: the newest distributions, with hidden states; of the robots `rows`.
        rows: by index, of the M.
        draws: (M, N, 2) uniform in [0, 1): for the test, and for the resampling.

    Args:
        ours: the draft's n tokens and their distributions, n at most N.
        theirs: the target's, given these tokens.
        draws: see the attribute.
    """

    def __init__(self, ours: CodeDistribution, theirs: TokenDistribution, draws: np.ndarray) -> None:
        drafted, (robots, length) = ours.codes.shape[1], draws.shape[:2]
        self.p, self.draws, self.target, self.rows = ours.probabilities, draws, theirs, np.arange(robots)
        self.tokens = np.zeros((robots, length), dtype=np.int64)
        self.tokens[:, :drafted] = self._drafted = ours.codes
        self.q = np.zeros((robots, length, theirs.probabilities.shape[-1]), dtype=np.float32)
        self.q[:, : theirs.probabilities.shape[1]] = theirs.probabilities
        self.position, self.end = np.zeros(robots, dtype=np.int64), np.full(robots, drafted)
        self.known = np.minimum(self.end + 1, length)
        self.accepted = np.zeros((robots, length), dtype=bool)
        self.passes = np.ones(robots, dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether all tokens are decided."""
        return bool((self.position == self.tokens.shape[1]).all())

    def kept(self) -> np.ndarray:
        """Return which drafted tokens (M, n) pass the test; only those from `position` to `end` count."""
        drafted = self.p.shape[1]
        x = self.tokens[:, :drafted]
        of_draft = probabilities_at(self.p, x).astype(np.float64)
        kept: np.ndarray = self.draws[:, :drafted, 0] * of_draft < probabilities_at(self.q[:, :drafted], x)
        return kept

    def test(self, kept: np.ndarray | None = None) -> np.ndarray:
        """Accept tokens up to the first refusal, and resample that one; past a draft, add the next token.

        Args:
            kept: (M, n) bool, which drafted tokens to keep; None for `kept()`, which is exact.

        Returns:
            (M,) bool, where a token was refused.
        """
        kept, index = self.kept() if kept is None else kept, np.arange(self.p.shape[1])
        limit = np.maximum(np.minimum(self.end, self.known), self.position)
        counts = (index >= self.position[:, None]) & (index < limit[:, None])
        at = np.where(counts & ~kept, index, limit[:, None]).min(axis=1, initial=self.tokens.shape[1])
        at = np.minimum(at, limit)
        refused = at < limit
        self.accepted[:, : len(index)] |= counts & (index < at[:, None])
        added = ~refused & (at >= self.end) & (at < self.known)
        if refused.any():
            where, place = np.flatnonzero(refused), at[refused]
            left = residual(self.p[where, place], self.q[where, place])
            self.tokens[where, place] = sample(left, self.draws[where, place, 1])
        if added.any():
            where, place = np.flatnonzero(added), at[added]
            self.tokens[where, place] = sample(self.q[where, place], self.draws[where, place, 1])
        self.position = at + (refused | added)
        if self.target.end is not None:
            self._end(self.target.end)
        return refused

    def _end(self, end: int) -> None:
        """Behind the end of a chunk are only ends, which need no pass; a test would keep the draft's."""
        length = self.tokens.shape[1]
        over = (self.tokens == end) & (np.arange(length) < self.position[:, None])
        behind = np.logical_or.accumulate(over, axis=1)[:, :-1]
        self.tokens[:, 1:][behind] = end
        self.position[over.any(axis=1)] = length
        drafted = self._drafted[:, 1:] == end
        self.accepted[:, 1 : self.p.shape[1]] |= behind[:, : drafted.shape[1]] & drafted

    def read(self, ahead: int = AHEAD) -> None:
        """Let the target read the decided tokens of undecided chunks, and drafted ones after them: one pass.

        Then `q` has the distributions up to the token after those. Does nothing where all are decided.

        Args:
            ahead: most drafted tokens to read. Beyond the next refusal they are read in vain.
        """
        length = self.tokens.shape[1]
        open_ = self.position[self.rows] < length
        if not open_.any():
            return
        rows = self.rows[open_]
        end = np.clip(self.end, self.position, self.position + ahead)
        self.known[rows] = np.minimum(end[rows] + 1, length)
        first, last = int(self.position[rows].min()), int(self.known[rows].max())
        assert self.target.resumed is not None
        self.target = self.target.resumed(self.tokens[rows, : last - 1], first, np.flatnonzero(open_))
        self.rows = rows
        self.q[rows, first:last] = self.target.probabilities
        self.passes[rows] += 1

    def complete(self, completion: str = "draft") -> JudgedTokens:
        """Decide all tokens; see `COMPLETIONS`. The result is distributed as the target's own chunks."""
        while True:
            refused = self.test()
            if completion == "target":
                self.end = np.where(refused, self.position, self.end)
            if self.done:
                return JudgedTokens(self.tokens, self.accepted, self.passes)
            self.read()


class RestByTarget(Speculative):
    """Speculative sampling, but after a refused token the target decodes the rest, token by token."""

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`."""
        check_tokens(target)

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`."""
        ours, theirs = draft.distribution, target.distribution
        assert ours is not None
        assert isinstance(theirs, TokenDistribution)
        judged = TokenJudge(ours, theirs, draws).complete("target")
        accepted = judged.accepted[:, : ours.codes.shape[1]]
        return Verdict(theirs.actions_of(judged.codes), accepted, codes=judged.codes)


def check_tokens(target: Signature) -> None:
    """Refuse a target that does not emit one token after another.

    Raises:
        ValueError: it does not.
    """
    if target.codes is None or not target.codes.sequential:
        raise ValueError("rule: needs a target that emits tokens one after another")
