# SPDX-License-Identifier: Apache-2.0
"""From codes to actions, without torch."""

from __future__ import annotations

import hashlib

import numpy as np

from adahi_ros.core.action_range import ActionRange

MAX_COMBINATIONS = 1 << 16
RANGE_MARGIN = 3.0  # in units of the action scale, beyond what the codes alone can say


class ActionDecoder:
    """The frozen decoder of the action tokenizer, as a table of every combination of codes.

    Decoding is a lookup: it costs a microsecond on the robot and gives the same bits on every
    machine, which a neural decoder does not.

    Attributes:
        fingerprint: 16 hexadecimal digits; equal exactly when the same codes mean the same actions.
        low, high: (A,) float32 in action units. No demonstrated action is near them: what lies beyond
            is a fault, not an action.
        range: the same, as a check.

    Args:
        table: (K,) * N + (W, A) float32, the chunk for each combination of N codes, action units.
        action_scale: (A,) float32, standard deviation of the demonstrated actions.

    Raises:
        ValueError: the table is no such table.
    """

    def __init__(self, table: np.ndarray, action_scale: np.ndarray) -> None:
        self.codebooks = table.ndim - 2
        if self.codebooks < 1 or len(set(table.shape[:-2])) != 1:
            raise ValueError(f"decode table: shape {table.shape}, expected (K,) * N + (W, A)")
        if not (np.isfinite(table).all() and np.isfinite(action_scale).all()):
            raise ValueError("decode table: holds values that are not finite")
        self.table = np.ascontiguousarray(table, dtype=np.float32)
        self.action_scale = np.ascontiguousarray(action_scale, dtype=np.float32)
        self.codebook_size, self.chunk_length, self.action_dim = self.table.shape[-3:]
        if self.action_scale.shape != (self.action_dim,) or not (self.action_scale > 0).all():
            raise ValueError(f"action_scale: {action_scale}, expected {self.action_dim} positive numbers")
        actions = self.table.reshape(-1, self.action_dim)
        self.low = actions.min(axis=0) - RANGE_MARGIN * self.action_scale
        self.high = actions.max(axis=0) + RANGE_MARGIN * self.action_scale
        self.range = ActionRange(self.low, self.high)
        digest = hashlib.sha256(repr(self.table.shape).encode())
        digest.update(self.table.astype("<f4").tobytes())
        self.fingerprint = digest.hexdigest()[:16]

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the chunks (B, W, A) for codes (B, N)."""
        chunks: np.ndarray = self.table[tuple(codes.T)]
        return chunks
