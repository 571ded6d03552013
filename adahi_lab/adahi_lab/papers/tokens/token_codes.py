# SPDX-License-Identifier: Apache-2.0
"""Chunks of actions to tokens and back: what every action tokenizer of token policies has.

Encoding is on the robot, too: a chunk from elsewhere, such as a retrieved one, is a draft once it has tokens.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from adahi_ros.core.proposal import ActionRange

RANGE_MARGIN = 3.0  # in units of the action scale, beyond the range of the decoded actions
TOKENS_MOST = 64  # of a chunk, as in `VerifyDraft.srv`
VOCABULARY_MOST = 1024


class TokenCodec(ABC):
    """Turns chunks of T actions into N tokens of K, and back.

    Attributes:
        kind: its name in files and recipes.
        codebooks: N.
        codebook_size: K.
        chunk_length: T.
        action_dim: A.
        low, high: (A,) float32 in action units, the range of decoded actions.
        action_scale: (A,) float32, standard deviation of the demonstrated actions.
        range: distinguishes actions from faults.
        end: the token that fills chunks with fewer tokens, behind their last one; None where none has fewer.
        guess: a token that a guess of a chunk can have everywhere; it does not end a chunk.
        fingerprint: 16 hexadecimal digits; equal exactly when the same tokens mean the same actions.

    Args:
        arrays: by name, everything that decides what tokens mean; the file has them.
        codebooks: N.
        codebook_size: K.
        chunk_length: T.

    Raises:
        ValueError: a size is out of range, or an array is not finite.
    """

    kind: ClassVar[str]
    end: int | None = None
    guess: int = 0

    def __init__(
        self, arrays: dict[str, np.ndarray], codebooks: int, codebook_size: int, chunk_length: int
    ) -> None:
        low, high, scale = (arrays[name].astype(np.float32) for name in ("low", "high", "action_scale"))
        if low.ndim != 1 or low.shape != high.shape or low.shape != scale.shape:
            raise ValueError(
                f"low, high, action_scale: {low.shape}, {high.shape}, {scale.shape}, must be (A,)"
            )
        if not (np.isfinite(low) & np.isfinite(high) & (low < high) & np.isfinite(scale) & (scale > 0)).all():
            raise ValueError("low, high, action_scale: must be finite, low below high, and the scale above 0")
        for name, size, most in (
            ("codebooks", codebooks, TOKENS_MOST),
            ("codebook_size", codebook_size, VOCABULARY_MOST),
            ("chunk_length", chunk_length, TOKENS_MOST),
        ):
            if not 1 <= size <= most:
                raise ValueError(f"{name}: {size}, must be from 1 to {most}")
        self.arrays = arrays
        self.codebooks, self.codebook_size, self.chunk_length = codebooks, codebook_size, chunk_length
        self.action_dim = len(low)
        self.low, self.high, self.action_scale = low, high, scale
        self.range = ActionRange(low - RANGE_MARGIN * scale, high + RANGE_MARGIN * scale)
        digest = hashlib.sha256(repr((self.kind, codebooks, codebook_size, chunk_length)).encode())
        for name in sorted(arrays):
            digest.update(name.encode() + arrays[name].astype(arrays[name].dtype.newbyteorder("<")).tobytes())
        self.fingerprint = digest.hexdigest()[:16]

    @abstractmethod
    def encode(self, chunks: np.ndarray) -> np.ndarray:
        """Return the tokens (B, N) int64 of chunks (B, T, A) in action units."""

    @abstractmethod
    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the chunks (B, T, A) float32 of any tokens (B, N)."""


class BinCodec(TokenCodec):
    """One token for each entry of each action, as OpenVLA has them (arXiv 2406.09246, section 3.2).

    Bins divide the range from the 1st to the 99th percentile of the demonstrations evenly; a bin means its
    middle. Token i is entry i % A of action i // A.

    Attributes:
        values: (K, A) float32, the middles of the bins, ascending.
    """

    kind = "bins"

    def __init__(self, arrays: dict[str, np.ndarray], codebook_size: int, chunk_length: int) -> None:
        super().__init__(arrays, chunk_length * len(arrays["low"]), codebook_size, chunk_length)
        middles = (np.arange(codebook_size, dtype=np.float32)[:, None] + 0.5) / codebook_size
        self.values = (self.low + middles * (self.high - self.low)).astype(np.float32)
        self._entries = np.tile(np.arange(self.action_dim), chunk_length)

    def encode(self, chunks: np.ndarray) -> np.ndarray:
        """See `TokenCodec`; actions outside of the range get the outermost bins."""
        share = (chunks - self.low) / (self.high - self.low)
        codes = np.clip(np.floor(share * self.codebook_size), 0, self.codebook_size - 1).astype(np.int64)
        return codes.reshape(len(chunks), self.codebooks)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """See `TokenCodec`."""
        actions: np.ndarray = self.values[codes, self._entries]
        return actions.reshape(len(codes), self.chunk_length, self.action_dim)
