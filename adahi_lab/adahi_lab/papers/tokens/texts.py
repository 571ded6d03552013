# SPDX-License-Identifier: Apache-2.0
"""Chunks of tokens to decode: by a token policy and its draft, or made up with a rate of acceptance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from adahi_lab.papers.tokens.greedy_draft import GreedyDraft
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.proposal import residual, sample
from adahi_ros.core.signature import Observations

SPREAD = 4.0
"""Of a made-up draft's confidence, a beta distribution: the higher, the nearer to the rate of acceptance."""


class Text(Protocol):
    """A chunk of tokens, as a target and its draft see it.

    Attributes:
        length: of the chunk.
    """

    length: int

    def drafted(self, tokens: Sequence[int]) -> tuple[int, float]:
        """Return the draft's token after these, and its confidence in it."""

    def own(self, tokens: Sequence[int]) -> list[int]:
        """Return the target's tokens of n: each after those before it, and the one after all, n + 1."""


class MadeUpText(Text):
    """Token i of the target is i; the draft has it with a probability, independently, after right tokens.

    Every token after a wrong one is wrong, too. The draft of a place is the same whenever it is drafted. Its
    confidence is on average the share of right tokens: of those with any confidence, so many are right.

    Args:
        length: of the chunk.
        acceptance: the probability.
        seed: of the places where the draft is wrong.
    """

    def __init__(self, length: int, acceptance: float, seed: int) -> None:
        self.length = length
        rng = np.random.default_rng(seed)
        self._right = rng.random(length + 1) < acceptance
        least, right = 1e-9, self._right
        for_it = np.maximum(SPREAD * acceptance + right, least)
        self._confidence = rng.beta(for_it, np.maximum(SPREAD * (1.0 - acceptance) + ~right, least))

    def drafted(self, tokens: Sequence[int]) -> tuple[int, float]:
        """See `Text`."""
        at = len(tokens)
        after_right = not tokens or tokens[-1] == at - 1
        return at if self._right[at] and after_right else -1, float(self._confidence[at])

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""
        return list(range(len(tokens) + 1))


class PolicyText(Text):
    """The chunk of a token policy, decoded greedily, for one observation.

    Args:
        draft: drafts.
        target: its tokens are right.
        for_draft, for_target: the observation as each reads it.
    """

    def __init__(
        self, draft: TokenPolicy, target: TokenPolicy, for_draft: Observations, for_target: Observations
    ) -> None:
        self.length = target.codec.codebooks
        self._drafting, self._target, self._seen = GreedyDraft(draft, for_draft), target, for_target
        self._known: dict[tuple[int, ...], list[int]] = {}

    def drafted(self, tokens: Sequence[int]) -> tuple[int, float]:
        """See `Text`."""
        return self._drafting.next_token(tokens)

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""
        key = tuple(tokens)
        if key not in self._known:
            codes = np.array([key], dtype=np.int64).reshape(1, -1)
            self._known[key] = self._target.begin(self._seen, codes).logits[0].argmax(axis=-1).tolist()
        return self._known[key]


Distributed = Callable[[tuple[int, ...]], np.ndarray]
"""Returns the distribution (K,) of the token after any first tokens of a chunk."""


def by_last(distributions: np.ndarray) -> Distributed:
    """Return those of (N, K, K): by the token's place, and the token before it; 0 before the first."""
    return lambda before: np.asarray(distributions[len(before), before[-1] if before else 0])


class SampledText(Text):
    """A chunk of sampled tokens; the target's are distributed as its own samples, whatever is drafted.

    By the rule of speculative sampling (Leviathan et al., 2023): a drafted token is kept with the probability
    q/p, else resampled. Each place has its own draws, so every pass over it decides alike, in any order.

    Args:
        draft, target: p and q.
        draws: (length, 3), uniform: of the drafted token, its test, and the target's sample.
        equal: a drafted token is only right where it equals an independent sample of the target.
    """

    def __init__(
        self, draft: Distributed, target: Distributed, draws: np.ndarray, equal: bool = False
    ) -> None:
        self.length, self._draft, self._target, self._draws = len(draws), draft, target, draws
        self._equal, self._known = equal, dict[tuple[int, ...], int]()

    def drafted(self, tokens: Sequence[int]) -> tuple[int, float]:
        """See `Text`."""
        p = self._draft(tuple(tokens))
        return int(sample(p, self._draws[len(tokens), 0])), float(p.max())

    def own(self, tokens: Sequence[int]) -> list[int]:
        """See `Text`."""
        return [self._decided(tuple(tokens[:at])) for at in range(len(tokens) + 1)]

    def _decided(self, before: tuple[int, ...]) -> int:
        if before not in self._known:
            p, q, (_, test, again) = self._draft(before), self._target(before), self._draws[len(before)]
            token, _ = self.drafted(before)
            if self._equal or test * p[token] >= q[token]:
                token = int(sample(q if self._equal else residual(p, q), again))
            self._known[before] = token
        return self._known[before]


def own_chunk(text: Text) -> list[int]:
    """Return the target's chunk, token by token."""
    tokens: list[int] = []
    while len(tokens) < text.length:
        tokens.append(text.own(tokens)[-1])
    return tokens


def agreed(tokens: Sequence[int], own: Sequence[int]) -> tuple[int, int]:
    """Return how many tokens of a run are the target's own, and its token after these.

    Args:
        tokens: of the run, n.
        own: the target's choice of each of these and of the next token, n + 1, each after the run's tokens
            before it.
    """
    accepted = next((index for index, token in enumerate(tokens) if token != own[index]), len(tokens))
    return accepted, own[accepted]
