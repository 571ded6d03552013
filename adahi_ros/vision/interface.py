# SPDX-License-Identifier: Apache-2.0
"""Common definitions for images and encoders, without their libraries."""

from __future__ import annotations

from typing import Protocol

MAX_SIDE = 65_500  # JPEG's limit
QUALITY = 80  # default quality of sent images
QUALITIES = (1, 95)  # Pillow's; higher values only enlarge files


class ImageError(ValueError):
    """An image that cannot be used; the message names field, value and what was allowed."""


class EncoderSizes(Protocol):
    """An encoder's description, for one that runs here or elsewhere.

    Attributes:
        features: F, number of features per frame.
        image_size: rows and columns of a frame.
        fingerprint: 16 hexadecimal digits of its configuration and weights.
    """

    @property
    def features(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int]: ...
    @property
    def fingerprint(self) -> str: ...
