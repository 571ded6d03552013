# SPDX-License-Identifier: Apache-2.0
"""Sentences as vectors, for policies that are told what to do and read no text.

There is no text encoder behind it: every word has a vector that follows from its letters alone, drawn once
for all (random indexing; Kanerva et al., 2000), and a sentence's is the sum of its words'. So sentences that
share words are near one another, the order of the words is lost, a synonym is a stranger, and nobody has to
download or train anything.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np

from adahi_ros.core.randomness import step_uniforms

INSTRUCTION_DIM = 32


@functools.lru_cache(maxsize=1024)
def embedded(sentence: str) -> np.ndarray:
    """Return the vector of a sentence, (32,) float64 of length 1; read-only.

    Args:
        sentence: its words are parted by spaces; capitals do not matter.

    Raises:
        ValueError: it has no words.
    """
    words = sentence.casefold().split()
    if not words:
        raise ValueError(f"sentence: {sentence!r}, must have words")
    total = np.sum([_word(word) for word in words], axis=0)
    vector: np.ndarray = total / np.sqrt(total @ total)
    vector.flags.writeable = False
    return vector


def _word(word: str) -> np.ndarray:
    draws = step_uniforms(0, "instructions/words", zlib.crc32(word.encode()), 0, INSTRUCTION_DIM)
    return np.where(draws < 0.5, -1.0, 1.0)
