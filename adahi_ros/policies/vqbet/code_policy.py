# SPDX-License-Identifier: Apache-2.0
"""A policy that draws codes: the common part of VQ-BeT networks on any runtime."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import (
    ActionRange,
    CodeDistribution,
    Proposal,
    counted,
    probabilities_of,
    sample,
    softmax,
)
from adahi_ros.core.signature import Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork

MAX_COMBINATIONS = 1 << 16
# In units of the action scale, beyond the range of the decoded codes. An entry that mostly rests has a small
# scale, is demonstrated up to six of it, and few codes reach that far.
RANGE_MARGIN = 6.0


class ActionDecoder:
    """The frozen decoder of the action tokenizer, as a table of every combination of codes.

    Decoding is a lookup: it costs a microsecond on the robot and gives the same bits on every
    machine, which a neural decoder does not.

    Attributes:
        fingerprint: 16 hexadecimal digits; equal exactly when the same codes mean the same actions.
        low, high: (A,) float32 in action units. All demonstrated actions are far inside: an action beyond
            them is a fault.
        range: the same, as a check.

    Args:
        table: (K,) * N + (W, A) float32, the chunk for each combination of N codes, action units.
        action_scale: (A,) float32, standard deviation of the demonstrated actions.

    Raises:
        ValueError: the table has another shape, or is not finite.
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


@dataclass(frozen=True)
class Prediction:
    """A network's output for B windows.

    Attributes:
        logits: (B, N, K) float32, one independent distribution per codebook.
        offsets: (B, N, K, W, A) float32 in action units: each code's addition to the
            decoded chunk, if chosen; summed over the codebooks.
    """

    logits: np.ndarray
    offsets: np.ndarray

    def where_finite(self) -> Prediction:
        """Return itself; rows that are not finite get uniform logits, and NaN offsets."""
        finite = np.isfinite(self.logits).all(axis=(1, 2)) & np.isfinite(self.offsets).all(axis=(1, 2, 3, 4))
        if finite.all():
            return self
        logits, offsets = self.logits.copy(), self.offsets.copy()
        logits[~finite], offsets[~finite] = 0.0, np.nan
        return Prediction(logits, offsets)

    def offset_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the offset (B, W, A) of codes (B, N)."""
        rows = np.arange(codes.shape[0])[:, None]
        books = np.arange(codes.shape[1])[None, :]
        offset: np.ndarray = self.offsets[rows, books, codes].sum(axis=1)
        return offset


class CodePolicy(Policy):
    """A `Policy` of codes: a network predicts their distributions and offsets, a table decodes them.

    Args:
        signature: with the codes of the decoder.
        decoder: of its tokenizer.
        digest: identifies its configuration and weights.
        run: runs the network; a subclass may override `predict` instead.
        device: where the network runs.
    """

    def __init__(
        self,
        signature: Signature,
        decoder: ActionDecoder,
        digest: str,
        run: RunNetwork | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(signature, decoder.range, decoder.action_scale, digest, decoder.codebooks)
        self.decoder = decoder
        self.device = device
        self._run = run

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """Predict for B windows (B, H, O) and goals (B, G), both float32 in the task's units."""
        assert self._run is not None
        return Prediction(*self._run(windows, goals))

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        window, condition = self.signature.window(observations), self.signature.condition(observations)
        prediction = self.predict(window, condition).where_finite()
        probabilities, counts = softmax(prediction.logits, sampling.temperature), None
        if sampling.sendable:
            counts = counted(probabilities)
            probabilities = probabilities_of(counts)

        def actions_of(codes: np.ndarray) -> np.ndarray:
            offset = prediction.offset_at(codes)
            actions: np.ndarray = self.decoder.decode(codes) + offset
            return actions

        codes = sample(probabilities if counts is None else counts, draws)
        return Proposal(actions_of(codes), CodeDistribution(probabilities, codes, actions_of, counts))
