# SPDX-License-Identifier: Apache-2.0
"""Sizes of a token policy's network, and the resulting shapes of weights."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.tensor_files import Shapes
from adahi_ros.policies.networks.network_checkpoint import Length, Size, SizeOrNone, TransformerSizes

COLOURS = 3  # of a pixel


@dataclass(frozen=True)
class TokenConfig(TransformerSizes):
    """Sizes of a token policy. Draft and target differ in `width`, `layers` and `heads`.

    Attributes:
        observation_dim, goal_dim, action_dim: O, G and A.
        window_length: H, observations that it reads.
        codebooks: N, tokens of a chunk.
        codebook_size: K, the vocabulary.
        width, layers, heads: of the transformer.
        image_dim: see `observed_features`.
        patch: px, side of the patches that the transformer reads of the newest image; 0 reads `image_dim` as
            a part of the observation.
        image_columns: of the image, a multiple of the patch.
    """

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    window_length: Length
    codebooks: Size
    codebook_size: Size
    width: Size = 128
    layers: Size = 4
    heads: Size = 4
    image_dim: SizeOrNone = 0
    patch: SizeOrNone = 0
    image_columns: SizeOrNone = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patch and (not self.image_columns or self.image_columns % self.patch):
            raise ValueError(
                f"image_columns: {self.image_columns}, must be a multiple of patch = {self.patch}"
            )

    @property
    def state_dim(self) -> int:
        """S, entries of an observation that one position reads."""
        return self.observation_dim - (self.image_dim if self.patch else 0)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches.

        Raises:
            ValueError: the image is not of whole rows of patches.
        """
        if not self.patch:
            return 0, 0
        row = COLOURS * self.patch * self.image_columns
        if not self.image_dim or self.image_dim % row:
            raise ValueError(f"image_dim: {self.image_dim}, must be a multiple of {row}, a row of patches")
        return self.image_dim // row, self.image_columns // self.patch

    @property
    def patches(self) -> int:
        """P, how many the network reads."""
        return self.grid[0] * self.grid[1]

    @property
    def context(self) -> int:
        """C, positions before the first token: patches, a goal, if any, and the window."""
        return self.patches + bool(self.goal_dim) + self.window_length

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        return {
            **super().shapes(),
            "observation_in.weight": (self.width, self.state_dim),
            **({"patch_in.0.weight": (self.width, COLOURS * self.patch**2)} if self.patch else {}),
            "position": (self.context + self.codebooks, self.width),
            "code_in.weight": (self.codebook_size, self.width),
            "code_out.weight": (self.codebook_size, self.width),
        }
