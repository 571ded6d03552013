# SPDX-License-Identifier: Apache-2.0
"""Uniform draws addressed by seed, stream, episode and step.

A counter-based generator (Philox; Salmon et al., SC 2011) gives every control step its own draws, independent
of earlier ones. So a rollout does not depend on whether its episodes run side by side, one by one, in one
process or over DDS. A verifier that gets a request twice, or restarts in between, gives the same reply.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

DRAWS_PER_BLOCK = 4  # one Philox counter yields four 64-bit numbers
STEPS_PER_REFILL = 64


def _generator(seed: int, stream: str, episode: int) -> np.random.Philox:
    name = zlib.crc32(stream.encode())
    return np.random.Philox(np.random.SeedSequence((seed, name, episode)))


def _row_width(count: int) -> int:
    return -(-count // DRAWS_PER_BLOCK) * DRAWS_PER_BLOCK


def step_uniforms(seed: int, stream: str, episode: int, step: int, count: int) -> np.ndarray:
    """Return the `count` uniform draws in [0, 1) of one step, shape (count,)."""
    generator = _generator(seed, stream, episode)
    generator.advance(step * _row_width(count) // DRAWS_PER_BLOCK)
    return np.random.Generator(generator).random(count)


class EpisodeStreams:
    """The same draws as `step_uniforms`, for E episodes side by side and steps in order.

    Args:
        seed: non-negative.
        stream: name of the draws' purpose; other names give independent draws.
        episodes: the E episode numbers, non-negative.
        count: draws per episode and step.
    """

    def __init__(self, seed: int, stream: str, episodes: Sequence[int], count: int) -> None:
        self._generators = [
            np.random.Generator(_generator(seed, stream, int(episode))) for episode in episodes
        ]
        self._count = count
        self._block = np.empty((len(self._generators), 0, count))
        self._next = 0

    def next(self) -> np.ndarray:
        """Return the next step's draws, shape (E, count)."""
        if self._next == self._block.shape[1]:
            shape = (STEPS_PER_REFILL, _row_width(self._count))
            blocks = [generator.random(shape) for generator in self._generators]
            self._block = np.stack(blocks)[:, :, : self._count]
            self._next = 0
        draws: np.ndarray = self._block[:, self._next]
        self._next += 1
        return draws
