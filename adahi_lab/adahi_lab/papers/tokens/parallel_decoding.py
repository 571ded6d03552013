# SPDX-License-Identifier: Apache-2.0
"""Parallel decoding of a chunk of tokens: all tokens at once, again and again, until none changes.

Jacobi iteration, as PD-VLA decodes action chunks (Song et al., arXiv 2503.02310; Santilli et al., 2023). Here
each token is drawn by a fixed uniform draw, so the fixed point is the very chunk that token by token gives.
After i passes at least i tokens are right, so it takes as many passes as there are tokens at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.proposal import sample
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, JudgingPolicy, Sampling


@dataclass(frozen=True)
class ParallelChunk:
    """Chunks of B robots.

    Attributes:
        codes: (B, N) int64.
        passes: (B,) int64, of the network until no token changed.
    """

    codes: np.ndarray
    passes: np.ndarray


def decode_in_parallel(
    policy: JudgingPolicy,
    observations: Observations,
    draws: np.ndarray,
    guess: np.ndarray,
    sampling: Sampling = AS_TRAINED,
) -> ParallelChunk:
    """Return the chunks that `policy.propose` returns with the same draws, up to rounding.

    Args:
        policy: of tokens.
        observations: of B robots.
        draws: (B, N) uniform in [0, 1).
        guess: (B, N), tokens to start from, such as those of the last chunk.
        sampling: how to draw.
    """
    codes, passes = guess.copy(), np.zeros(len(guess), dtype=np.int64)
    rows = np.arange(len(guess))
    for _ in range(guess.shape[1] + 1):
        drawn = policy.judge(observations.rows(rows), codes[rows], sampling).distribution
        assert isinstance(drawn, TokenDistribution)
        new = sample(drawn.probabilities, draws[rows])
        passes[rows] += 1
        changed = (new != codes[rows]).any(axis=1)
        codes[rows] = new
        rows = rows[changed]
        if not rows.size:
            break
    return ParallelChunk(codes, passes)
