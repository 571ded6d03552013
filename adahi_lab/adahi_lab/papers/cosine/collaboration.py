# SPDX-License-Identifier: Apache-2.0
"""Decisions of CoSine (Gao et al., arXiv 2503.10325): which drafters, which of their tokens, and how many.

    request ─▶ router ─▶ some drafters ─▶ the most confident token each ─▶ verification ─▶ router learns

No clock and no network. The paper's code is not released: these are our reading of its method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
        selected: how many work on a request.
        enough: share of the last draft that was kept, from which on the best ones are chosen.
        memory: share of a score that remains from one verification to the next.
        seed: of the random choices.
    """

    def __init__(
        self, drafters: int, selected: int, enough: float = 0.5, memory: float = 0.7, seed: int = 0
    ) -> None:
        if not 1 <= selected <= drafters:
            raise ValueError(f"selected: {selected}, must be from 1 to {drafters}, the drafters")
        self._drafters, self._selected, self._enough, self._memory = drafters, selected, enough, memory
        self._rng = np.random.default_rng(seed)
        self._scores: dict[int, np.ndarray] = {}
        self._kept: dict[int, float] = {}

    def scores(self, request: int) -> np.ndarray:
        """Return the score of each drafter for a request, (M,): the share of its tokens that were right."""
        return self._scores.setdefault(request, np.full(self._drafters, FIRST_SCORE))

    def drafters(self, request: int) -> list[int]:
        """Return the drafters that work on a request."""
        if self._kept.get(request, 0.0) >= self._enough:
            best = np.argsort(-self.scores(request), kind="stable")[: self._selected]
            return sorted(best.tolist())
        return sorted(self._rng.permutation(self._drafters)[: self._selected].tolist())

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


def fused(opinions: Sequence[Opinion], scores: Sequence[float]) -> int:
    """Return the token of the drafter with the most confidence, weighed by its score."""
    weights = [each.confidence * score for each, score in zip(opinions, scores, strict=True)]
    return opinions[int(np.argmax(weights))].token


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Return how many tokens a verification gives on average, with the target's own (Leviathan et al.)."""
    if acceptance >= 1.0:
        return drafted + 1.0
    return float((1.0 - acceptance ** (drafted + 1)) / (1.0 - acceptance))


@dataclass(frozen=True)
class Load:
    """What decides how much to draft.

    Attributes:
        requests: that want tokens.
        acceptance: probability that a drafted token is kept.
        token_s: duration of a drafted token for so many requests.
        pass_s: duration of a verification of so many requests and tokens of each.
    """

    requests: int
    acceptance: float
    token_s: Callable[[int], float]
    pass_s: Callable[[int, int], float]


def tokens_to_draft(load: Load, busy_s: float, most: int) -> tuple[int, float]:
    """Return the number of tokens that gives the most verified ones per second, and this rate.

    Adaptive speculation: while the verifier is busy, drafting costs nothing, so more is drafted. An idle
    verifier gets a short draft at once, and one that each token delays gets none.

    Args:
        load: of these requests.
        busy_s: time until the verifier is free.
        most: tokens.
    """

    def rate(count: int) -> float:
        drafted_s, number = count * load.token_s(load.requests), load.requests
        took_s = max(drafted_s, busy_s) + load.pass_s(number, count + 1)
        return number * expected_tokens(load.acceptance, count) / took_s

    return max(((count, rate(count)) for count in range(most + 1)), key=lambda each: each[1])


def group_size(load: Load, most: int) -> int:
    """Return how many requests to draft for at once: batch scheduling.

    All of them, so that a verification reads as many tokens as it can; or half, so that one half is drafted
    while the other one is verified. That is better where a pass takes longer for more tokens, and drafting
    takes as long as a pass.

    Args:
        load: of all requests.
        most: tokens.
    """
    half = math.ceil(load.requests / 2)
    if half == load.requests:
        return half
    _, together = tokens_to_draft(load, 0.0, most)
    number = replace(load, requests=half)
    in_turns = max(
        half
        * expected_tokens(load.acceptance, count)
        / max(count * number.token_s(half), number.pass_s(half, count + 1))
        for count in range(most + 1)
    )
    return half if in_turns > together else load.requests
