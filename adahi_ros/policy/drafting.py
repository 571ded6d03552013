"""A drafted action: codes sampled from a policy, decoded, with the policy's offset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adahi_ros.policy.distribution import counted, probabilities_of, sample, softmax
from adahi_ros.policy.interface import Policy


@dataclass(frozen=True)
class Draft:
    """What B robots would do without the target.

    Attributes:
        codes: (B, N) int64.
        counts: (B, N, K) uint16, the distributions that the codes were sampled from, in units of 1/UNITS.
        chunk: (B, W, A) float32 in action units: the decoded codes plus the offset.
        sound: (B,) bool; where not, the policy proposes no action, and the chunk is a stand-in.
    """

    codes: np.ndarray
    counts: np.ndarray
    chunk: np.ndarray
    sound: np.ndarray

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
    policy: Policy,
    windows: np.ndarray,
    goals: np.ndarray,
    uniforms: np.ndarray,
    temperature: float,
    stand_in: np.ndarray | None = None,
) -> Draft:
    """Sample an action chunk from a policy.

    Args:
        policy: proposes.
        windows: (B, H, O) float32.
        goals: (B, G) float32.
        uniforms: (B, N) in [0, 1).
        temperature: of the code distributions, above zero.
        stand_in: (B, A) float32, repeated where there would be an error; None raises it.

    Raises:
        ValueError: what the policy predicts is not finite, or no action that its tokenizer means.
    """
    prediction = policy.predict(windows, goals)
    if stand_in is not None:
        prediction = prediction.where_finite()
    if not np.isfinite(prediction.logits).all():
        raise ValueError("draft: the policy predicts logits that are not finite for this observation")
    # Sampled from what can be sent in few bytes without loss, so that the verifier knows exactly this p.
    counts = counted(softmax(prediction.logits, temperature))
    codes = sample(counts, uniforms)
    chunk = policy.decoder.decode(codes) + prediction.offset_at(codes)
    if stand_in is None:
        policy.decoder.check(chunk)
    sound = policy.decoder.sound(chunk)
    if stand_in is not None:
        chunk = np.where(sound[:, None, None], chunk, stand_in[:, None])
    return Draft(codes, counts, chunk, sound)
