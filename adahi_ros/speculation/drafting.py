"""A drafted action: codes sampled from a policy, decoded, with the policy's offset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adahi_ros.policy.interface import Policy
from adahi_ros.speculation.sampling import counted, probabilities_of, sample, softmax


@dataclass(frozen=True)
class Draft:
    """What B robots would do without the target.

    Attributes:
        codes: (B, N) int64.
        counts: (B, N, K) uint16, the distributions that the codes were sampled from, in units of 1/UNITS.
        chunk: (B, W, A) float32 in action units: the decoded codes plus the offset.
    """

    codes: np.ndarray
    counts: np.ndarray
    chunk: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(B, N, K) float32, the same distributions."""
        return probabilities_of(self.counts)

    @property
    def action(self) -> np.ndarray:
        """(B, A), the first of the chunk."""
        first: np.ndarray = self.chunk[:, 0]
        return first


def draft_action(
    policy: Policy, windows: np.ndarray, goals: np.ndarray, uniforms: np.ndarray, temperature: float
) -> Draft:
    """Sample an action chunk from a policy.

    Args:
        policy: proposes.
        windows: (B, H, O) float32.
        goals: (B, G) float32.
        uniforms: (B, N) in [0, 1).
        temperature: of the code distributions, above zero.

    Raises:
        ValueError: what the policy predicts is not finite, or no action that its tokenizer means.
    """
    prediction = policy.predict(windows, goals)
    if not np.isfinite(prediction.logits).all():
        raise ValueError("draft: the policy predicts logits that are not finite for this observation")
    # Sampled from what can be sent in few bytes without loss, so that the verifier knows exactly this p.
    counts = counted(softmax(prediction.logits, temperature))
    codes = sample(counts, uniforms)
    chunk = policy.decoder.decode(codes) + prediction.offset_at(codes)
    policy.decoder.check(chunk)
    return Draft(codes, counts, chunk)
