# SPDX-License-Identifier: Apache-2.0
"""Compressed tokens of a chunk of actions, as FAST makes them (Pertsch et al., arXiv 2501.09747).

    chunk ─▶ scaled to its range ─▶ DCT over time ─▶ rounded, lowest frequencies first ─▶ byte pairs

Smooth motion has few coefficients that are not 0, and byte-pair encoding makes one token of what often
occurs together, so a chunk has fewer tokens than entries. Its length varies: `END` fills the rest.
"""

from __future__ import annotations

import math

import numpy as np

from adahi_lab.papers.tokens.token_codes import TokenCodec

END = 0
"""The token after a chunk's last one, and all further ones."""
PRECISION = 10.0
"""Steps of a coefficient per unit of the range; FAST's."""


class FrequencyCodec(TokenCodec):
    """Tokens of the discrete cosine transform of chunks.

    Token 0 ends a chunk, the next ones are the rounded coefficients in ascending order, and the rest stand
    for a pair of earlier tokens each. Any tokens have a meaning: missing coefficients are 0, further ones are
    dropped, as FAST's decoder does.

    Args:
        arrays: `low`, `high` and `action_scale` (A,), and `merges` (P, 2) integers, the pairs in the order
            in which they are merged.
        codebooks: N, most tokens of a chunk; the highest frequencies of a longer one are left out.
        chunk_length: T.

    Raises:
        ValueError: a size is out of range, or a pair is not of earlier tokens.
    """

    kind = "fast"
    end = END

    def __init__(self, arrays: dict[str, np.ndarray], codebooks: int, chunk_length: int) -> None:
        merges = np.asarray(arrays["merges"], dtype=np.int64)
        self._most, self._basis = largest_coefficient(chunk_length), cosines(chunk_length)
        self._first = 2 * self._most + 2  # the first token that is a pair
        self.guess = self._most + 1  # a coefficient of 0
        super().__init__(arrays, codebooks, self._first + len(merges), chunk_length)
        earlier = self._first + np.arange(len(merges))[:, None]
        if merges.shape != (len(merges), 2) or not ((merges > END) & (merges < earlier)).all():
            raise ValueError("merges: must be pairs of earlier tokens")
        self._merges = merges
        meanings = [(), *((value,) for value in range(-self._most, self._most + 1))]
        for left, right in merges.tolist():
            meanings.append(meanings[left] + meanings[right])
        self._meanings = [np.array(each, dtype=np.float32) for each in meanings]

    def encode(self, chunks: np.ndarray) -> np.ndarray:
        """See `TokenCodec`; actions outside of the range count as at its end."""
        rows = merged(self.symbols(chunks), self._merges, self._first)
        codes = np.full((len(chunks), self.codebooks), END, dtype=np.int64)
        for row, tokens in zip(codes, rows, strict=True):
            kept = tokens[: self.codebooks]
            row[: len(kept)] = kept
        return codes

    def symbols(self, chunks: np.ndarray) -> np.ndarray:
        """Return the rounded coefficients (B, T * A) of chunks (B, T, A) as tokens, low frequencies first."""
        scaled = np.clip(2.0 * (chunks - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0)
        found = np.rint(PRECISION * np.einsum("ft,bta->bfa", self._basis, scaled))
        return found.astype(np.int64).reshape(len(chunks), -1) + self._most + 1

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """See `TokenCodec`."""
        size = self.chunk_length * self.action_dim
        found = np.zeros((len(codes), size), dtype=np.float32)
        for row, tokens in zip(found, codes.tolist(), strict=True):
            end = tokens.index(END) if END in tokens else len(tokens)
            if end:
                values = np.concatenate([self._meanings[token] for token in tokens[:end]])[:size]
                row[: len(values)] = values
        frequencies = found.reshape(len(codes), self.chunk_length, self.action_dim) / PRECISION
        scaled = np.einsum("ft,bfa->bta", self._basis, frequencies)
        actions: np.ndarray = self.low + (np.clip(scaled, -1.0, 1.0) + 1.0) / 2.0 * (self.high - self.low)
        return actions.astype(np.float32)


def cosines(length: int) -> np.ndarray:
    """Return the orthonormal DCT-II (T, T): coefficient f of values (T,) is row f times the values."""
    angles = np.pi * np.arange(length)[:, None] * (np.arange(length) + 0.5) / length
    basis = np.cos(angles) * math.sqrt(2.0 / length)
    basis[0] = math.sqrt(1.0 / length)
    return basis


def largest_coefficient(length: int) -> int:
    """Return the largest rounded coefficient of T values from -1 to 1."""
    return math.ceil(PRECISION * math.sqrt(length))


def merged(symbols: np.ndarray, merges: np.ndarray, first: int) -> list[np.ndarray]:
    """Return the tokens of rows of symbols (B, S), with every pair merged in order.

    Args:
        symbols: tokens that are no pairs.
        merges: (P, 2); pair i becomes token `first` + i.
        first: see `merges`.
    """
    flat = _separated(symbols)
    for index, (left, right) in enumerate(merges.tolist()):
        flat = _merge(flat, left, right, first + index)
    ends = np.flatnonzero(flat < 0)
    return [row[:-1] for row in np.split(flat, ends[:-1] + 1)]


def learned_merges(symbols: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return the pairs (P, 2) that byte-pair encoding merges: the most frequent one, again and again.

    Args:
        symbols: (B, S), rows of examples.
        first: token of the first pair.
        count: P at most; fewer if no pair occurs twice.
    """
    flat, merges = _separated(symbols), []
    for index in range(count):
        pairs = flat[:-1] * (first + count) + flat[1:]
        pairs = pairs[(flat[:-1] >= 0) & (flat[1:] >= 0)]
        kinds, counts = np.unique(pairs, return_counts=True)
        if not counts.size or counts.max() < 2:
            break
        left, right = divmod(int(kinds[counts.argmax()]), first + count)
        merges.append((left, right))
        flat = _merge(flat, left, right, first + index)
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


def _separated(symbols: np.ndarray) -> np.ndarray:
    """Return rows (B, S) one after another, with -1 behind each."""
    return np.concatenate([symbols, np.full((len(symbols), 1), -1)], axis=1).ravel()


def _merge(flat: np.ndarray, left: int, right: int, new: int) -> np.ndarray:
    """Replace a pair, from the left."""
    here = np.flatnonzero((flat[:-1] == left) & (flat[1:] == right))
    if left == right and here.size:  # of overlapping pairs, every second one
        starts = np.concatenate([[True], np.diff(here) > 1])
        run = np.arange(len(here)) - np.maximum.accumulate(np.where(starts, np.arange(len(here)), 0))
        here = here[run % 2 == 0]
    made = flat.copy()
    made[here] = new
    return np.delete(made, here + 1)
