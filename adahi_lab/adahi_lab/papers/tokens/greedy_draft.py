# SPDX-License-Identifier: Apache-2.0
"""Drafts one chunk token by token, and goes back where tokens were refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.proposal import softmax
from adahi_ros.core.signature import Observations


class GreedyDraft:
    """The likeliest token after any first tokens of a chunk; keys and values of common ones are kept.

    Args:
        policy: the draft.
        observations: of one robot.
    """

    def __init__(self, policy: TokenPolicy, observations: Observations) -> None:
        self._policy = policy
        self._first = self._decoding = policy.begin(observations)
        self._read: list[int] = []

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the logits (K,) of the token after these, in at most one pass."""
        if not tokens:
            last: np.ndarray = self._first.logits[0, -1]
            return last
        alike = (ours == theirs for ours, theirs in zip(self._read, tokens[:-1], strict=False))
        kept = sum(takewhile(bool, alike))
        further = np.array([tokens[kept:]], dtype=np.int64)
        self._decoding, self._read = self._policy.extend(self._decoding, further, kept), list(tokens)
        after: np.ndarray = self._decoding.logits[0, -1]
        return after

    def next_token(self, tokens: Sequence[int]) -> tuple[int, float]:
        """Return the likeliest token after these, and its probability."""
        probabilities = softmax(self.logits(tokens), 1.0)
        token = int(probabilities.argmax())
        return token, float(probabilities[token])
