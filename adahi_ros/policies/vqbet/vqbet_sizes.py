# SPDX-License-Identifier: Apache-2.0
"""The sizes that a VQ-BeT's inputs and outputs have."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.signature import GOAL, CodeSpace, Feature, Signature, observed_features


@dataclass(frozen=True)
class NetworkSizes:
    """The sizes of a network's inputs and outputs.

    Attributes:
        window_length: H, observations per prediction.
        observation_dim: O.
        goal_dim: G, 0 without a goal.
        codebooks: N, codes per action chunk.
        codebook_size: K, entries per codebook.
        chunk_length: W, actions per chunk.
        action_dim: A.
        parameters: number of trainable weights.
        image_dim: see `observed_features`.
    """

    window_length: int
    observation_dim: int
    goal_dim: int
    codebooks: int
    codebook_size: int
    chunk_length: int
    action_dim: int
    parameters: int
    image_dim: int = 0

    def signature(self, fingerprint: str) -> Signature:
        """Return what a policy on such a network reads and proposes; the fingerprint is its tokenizer's."""
        return Signature(
            history=self.window_length,
            horizon=self.chunk_length,
            action_dim=self.action_dim,
            features=observed_features(self.observation_dim, self.image_dim),
            conditions=(Feature(GOAL, self.goal_dim),) if self.goal_dim else (),
            codes=CodeSpace(fingerprint, self.codebooks, self.codebook_size),
            parameters=self.parameters,
        )
