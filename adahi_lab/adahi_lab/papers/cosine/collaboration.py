# SPDX-License-Identifier: Apache-2.0
"""Decisions of CoSine (Gao et al., arXiv 2503.10325): which drafters, and which of their tokens.

    request ─▶ router ─▶ some drafters ─▶ the most confident token each ─▶ verification ─▶ router learns

No clock and no network. The paper's code is not released: these are our reading of its method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FIRST_SCORE = 0.5  # of a drafter that was not tried yet


@dataclass(frozen=True)
class Opinion:
    """What a drafter would draft next.

    Attributes:
        token: its likeliest.
        confidence: that token's probability.
    """

    token: int
    confidence: float


class Router:
    """Chooses drafters for a request by how many of their tokens were the target's.

    Where enough of a request's last draft was kept, the best drafters work on it; else random ones, so that
    better ones are found.

    Args:
        drafters: how many there are.
        enough: share of the last draft that was kept, from which on the best ones are chosen.
        memory: share of a score that remains from one verification to the next.
        seed: of the random choices.
    """

    def __init__(self, drafters: int, enough: float = 0.5, memory: float = 0.7, seed: int = 0) -> None:
        self._drafters, self._enough, self._memory = drafters, enough, memory
        self._rng = np.random.default_rng(seed)
        self._scores: dict[int, np.ndarray] = {}
        self._kept: dict[int, float] = {}

    def scores(self, request: int) -> np.ndarray:
        """Return the score of each drafter for a request, (M,): the share of its tokens that were right."""
        return self._scores.setdefault(request, np.full(self._drafters, FIRST_SCORE))

    def drafters(self, request: int, selected: int) -> list[int]:
        """Return the `selected` drafters that work on a request."""
        if self._kept.get(request, 0.0) >= self._enough:
            best = np.argsort(-self.scores(request), kind="stable")[:selected]
            return sorted(best.tolist())
        return sorted(self._rng.permutation(self._drafters)[:selected].tolist())

    def verified(self, request: int, kept: float, right: dict[int, tuple[int, int]]) -> None:
        """Learn from a verification.

        Args:
            request: of which.
            kept: share of the drafted tokens that the target kept.
            right: by drafter, how many of its tokens were the target's, and of how many.
        """
        self._kept[request] = kept
        scores = self.scores(request)
        for drafter, (count, of) in right.items():
            if of:
                scores[drafter] = self._memory * scores[drafter] + (1.0 - self._memory) * count / of


def fused(opinions: Sequence[Opinion], scores: Sequence[float]) -> Opinion:
    """Return the opinion of the drafter with the most confidence, weighed by its score."""
    weights = [each.confidence * score for each, score in zip(opinions, scores, strict=True)]
    return opinions[int(np.argmax(weights))]
