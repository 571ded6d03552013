# SPDX-License-Identifier: Apache-2.0
"""The tokens of one action: drafted ones against a target's likeliest ones, as relaxed acceptance needs it.

OpenVLA's methods decode one action per observation, and greedily: nothing is drawn by chance. A token policy
with one token for each entry of an action works the same way: the first A tokens are the next action.
"""

from __future__ import annotations

import numpy as np

from adahi_lab.papers.tokens.token_sequence import TokenDistribution, TokenJudge, check_tokens
from adahi_ros.acceptance.interface import Acceptance, Verdict, codes_differ
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import Signature

REACH = 1
"""Row of a draft's actions, after the drafted one: it plus the threshold of a relaxed rule."""


class ActionJudge(TokenJudge):
    """A `TokenJudge` of the next action's tokens that replaces a refused token by the target's likeliest one.

    Args:
        draft: of M robots, with their first tokens.
        target: its distributions, given these tokens.
    """

    def __init__(self, draft: Proposal, target: Proposal) -> None:
        ours, theirs = draft.distribution, target.distribution
        assert ours is not None
        assert isinstance(theirs, TokenDistribution)
        robots, self._horizon, size = target.actions.shape
        codes = ours.codes[:, :size]
        self._actions_of, self._sent = theirs.actions_of, ours.codes.shape[1]
        sure = CodeDistribution(certain(codes, theirs.probabilities.shape[-1]), codes, theirs.actions_of)
        super().__init__(sure, greedy(theirs, size), np.zeros((robots, size, 2)))

    @property
    def likeliest(self) -> np.ndarray:
        """(M, A) int64, the target's likeliest tokens; known as far as `known`."""
        best: np.ndarray = self.q.argmax(axis=-1)
        return best

    def action_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the actions (M, A) float32 of tokens (M, A)."""
        chunks = np.zeros((len(tokens), self._horizon * tokens.shape[1]), dtype=np.int64)
        chunks[:, : tokens.shape[1]] = tokens
        actions: np.ndarray = self._actions_of(chunks)[:, 0]
        return actions

    def near(self, reach: np.ndarray) -> np.ndarray:
        """Return which drafted tokens (M, n) are within (M, A), in action units, of the likeliest ones."""
        likeliest = self.likeliest
        apart = np.abs(self.action_of(self.tokens) - self.action_of(likeliest))
        near: np.ndarray = (apart <= reach) | (self.tokens == likeliest)
        return near[:, : self.p.shape[1]]

    def verdict(self, actions: np.ndarray) -> Verdict:
        """Return the verdict of robots that execute actions (M, A); the horizon repeats them."""
        accepted = np.zeros((len(actions), self._sent), dtype=bool)
        accepted[:, : self.accepted.shape[1]] = self.accepted[:, : self._sent]
        return Verdict(np.repeat(actions[:, None], self._horizon, axis=1), accepted)


class ActionRule(Acceptance):
    """Base of a rule for one action of a target that emits one token after another, one for each entry."""

    needs_codes = True
    needs_actions = True

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`."""
        check_tokens(target)

    def compatible(self, draft: Signature, target: Signature) -> str | None:
        """See `Acceptance`."""
        codes, entries = target.codes, target.horizon * target.action_dim
        if codes is not None and codes.codebooks != entries:
            found = codes.codebooks
            return f"codebooks: the target's are {found}, must be {entries}, one for each entry of an action"
        return codes_differ(draft, target)


def certain(codes: np.ndarray, size: int) -> np.ndarray:
    """Return the distributions (..., K) of which codes (...) are certain."""
    made: np.ndarray = np.eye(size, dtype=np.float32)[codes]
    return made


def greedy(drawn: TokenDistribution, size: int) -> TokenDistribution:
    """Return distributions in which the likeliest token is certain, of `size` tokens at most."""
    resumed, q = drawn.resumed, drawn.probabilities[:, :size]

    def further(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
        assert resumed is not None
        return greedy(resumed(tokens, first, rows), size)

    return TokenDistribution(
        certain(q.argmax(axis=-1), q.shape[-1]), drawn.codes, drawn.actions_of, resumed=further
    )
