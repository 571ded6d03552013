# SPDX-License-Identifier: Apache-2.0
"""Decisions of CoSine (Gao et al., arXiv 2503.10325): which drafters, and which of their tokens.

    request ─▶ router ─▶ some drafters ─▶ the most confident token each ─▶ verification ─▶ router learns

No clock and no network. The paper's code is not released: these are our reading of its method.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

FIRST_SCORE = 0.5  # of a drafter that was not tried yet
REQUESTS_KEPT = 1024


@dataclass(frozen=True)
class Opinion:
    """What a drafter would draft next.

    Attributes:
        token: its likeliest.
        confidence: that token's probability.
    """

    token: int
    confidence: float


@dataclass
class _Request:
    """What is known of a request.

    Attributes:
        own: the drafter that it has where none is chosen.
        scores: (M,), of each drafter: the share of its tokens that were right.
        kept: share of its last draft.
    """

    own: int
    scores: np.ndarray
    kept: float = 0.0


class Router:
    """Chooses drafters for a request by how many of their tokens were the target's.

    Where enough of a request's last draft was kept, the best drafters work on it; else random ones, so that
    better ones are found. The oldest of many requests are forgotten.

    Args:
        drafters: how many there are.
        seed: of the drafter that each request has where none is chosen.
        enough: share of the last draft that was kept, from which on the best ones are chosen.
        memory: share of a score that remains from one verification to the next.
    """

    def __init__(self, drafters: int, seed: int = 0, enough: float = 0.5, memory: float = 0.7) -> None:
        self._drafters, self._enough, self._memory = drafters, enough, memory
        self._rng, self._owns = np.random.default_rng(0), np.random.default_rng(seed)
        self._requests: dict[Hashable, _Request] = {}

    def _request_of(self, request: Hashable) -> _Request:
        found = self._requests.pop(request, None)
        if found is None:
            own = int(self._owns.integers(self._drafters))
            found = _Request(own, np.full(self._drafters, FIRST_SCORE))
        self._requests[request] = found
        if len(self._requests) > REQUESTS_KEPT:
            del self._requests[next(iter(self._requests))]
        return found

    def drafters(
        self, request: Hashable, selected: int, present: Sequence[int], routed: bool = True
    ) -> dict[int, float]:
        """Return the `selected` drafters that work on a request, of those that are present, and their scores.

        Without `routed`, it is always the same random one, if that is present.
        """
        found = self._request_of(request)
        if not routed:
            chosen = [found.own] if found.own in present else list(present[:1])
        elif found.kept >= self._enough:
            chosen = sorted(present, key=lambda each: -found.scores[each])[:selected]
        else:
            chosen = self._rng.permutation(present)[:selected].tolist()
        return {drafter: float(found.scores[drafter]) for drafter in sorted(chosen)}

    def verified(self, request: Hashable, kept: float, right: dict[int, tuple[int, int]]) -> None:
        """Learn from a verification.

        Args:
            request: of which.
            kept: share of the drafted tokens that the target kept.
            right: by drafter, how many of its tokens were the target's, and of how many.
        """
        found = self._request_of(request)
        found.kept = kept
        for drafter, (count, of) in right.items():
            if of:
                new = (1.0 - self._memory) * count / of
                found.scores[drafter] = self._memory * found.scores[drafter] + new


def fused(opinions: Sequence[Opinion], scores: Sequence[float]) -> Opinion:
    """Return the opinion of the drafter with the most confidence, weighed by its score."""
    weights = [each.confidence * score for each, score in zip(opinions, scores, strict=True)]
    return opinions[int(np.argmax(weights))]
