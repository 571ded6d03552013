# SPDX-License-Identifier: Apache-2.0
"""Sentences as vectors, for policies with instructions but without a text encoder.

Every word has a fixed random vector that depends only on its letters (random indexing; Kanerva et al., 2000).
A sentence's vector is the sum of its words' vectors. So sentences with common words are near one another. The
order of words is lost, and synonyms are unrelated. No download or training is needed.
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
        sentence: words separated by spaces; case is ignored.

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
