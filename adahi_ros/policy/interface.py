"""What a policy is to everything that uses one: numpy in, numpy out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adahi_ros.policy.vqbet.decoder import ActionDecoder


@dataclass(frozen=True)
class PolicySpec:
    """The sizes that a policy's inputs and outputs have.

    Attributes:
        window_length: H, observations per prediction.
        observation_dim: O.
        goal_dim: G, 0 without a goal.
        codebooks: N, codes per action chunk.
        codebook_size: K, entries per codebook.
        chunk_length: W, actions per chunk.
        action_dim: A.
        parameters: number of trainable weights.
    """

    window_length: int
    observation_dim: int
    goal_dim: int
    codebooks: int
    codebook_size: int
    chunk_length: int
    action_dim: int
    parameters: int


@dataclass(frozen=True)
class Prediction:
    """A policy's answer for B windows.

    Attributes:
        logits: (B, N, K) float32, one independent distribution per codebook.
        offsets: (B, N, K, W, A) float32 in action units: what each code, if chosen, adds to the
            decoded chunk; summed over the codebooks.
    """

    logits: np.ndarray
    offsets: np.ndarray

    def offset_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the offset (B, W, A) that goes with codes (B, N)."""
        rows = np.arange(codes.shape[0])[:, None]
        books = np.arange(codes.shape[1])[None, :]
        offset: np.ndarray = self.offsets[rows, books, codes].sum(axis=1)
        return offset

    def where_finite(self) -> Prediction:
        """Return the same; of rows that are not finite even logits, and offsets that are not numbers."""
        finite = np.isfinite(self.logits).all(axis=(1, 2)) & np.isfinite(self.offsets).all(axis=(1, 2, 3, 4))
        if finite.all():
            return self
        logits, offsets = self.logits.copy(), self.offsets.copy()
        logits[~finite], offsets[~finite] = 0.0, np.nan
        return Prediction(logits, offsets)


class Policy(Protocol):
    """Predicts codes and offsets from an observation window and a goal.

    Attributes:
        spec: its sizes.
        decoder: of the tokenizer that it speaks.
        digest: names its very configuration and weights.
    """

    spec: PolicySpec
    decoder: ActionDecoder
    digest: str

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """Predict for B windows (B, H, O) and goals (B, G), both float32 in the task's units."""


def misfit(
    draft: PolicySpec, draft_fingerprint: str, target: PolicySpec, target_fingerprint: str
) -> str | None:
    """Name the first field that keeps a draft and a target apart, with both values; None where none does.

    The tokenizer's fingerprint and every size but `parameters` must be the same.
    """
    ours = {"tokenizer_fingerprint": draft_fingerprint, **vars(draft)}
    theirs = {"tokenizer_fingerprint": target_fingerprint, **vars(target)}
    for field, value in ours.items():
        if field != "parameters" and value != theirs[field]:
            return f"{field}: the draft's is {value}, the target's {theirs[field]}; must be the same"
    return None
