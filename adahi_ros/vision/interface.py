# SPDX-License-Identifier: Apache-2.0
"""What others know of images and encoders before any is there."""

from __future__ import annotations

from typing import Protocol

MAX_SIDE = 65_500  # what JPEG can say
QUALITY = 80  # of what is sent, by default
QUALITIES = (1, 95)  # Pillow's; above, files grow and nothing is gained


class ImageError(ValueError):
    """An image that cannot be used; the message names field, value and what was allowed."""


class EncoderSizes(Protocol):
    """What an encoder is, whether or not it runs here.

    Attributes:
        features: F, how many numbers a frame becomes.
        image_size: rows and columns of a frame.
        fingerprint: 16 hexadecimal digits of its configuration and weights.
    """

    @property
    def features(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int]: ...
    @property
    def fingerprint(self) -> str: ...
