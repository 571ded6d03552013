# SPDX-License-Identifier: Apache-2.0
"""Images that robots send, checked and decoded: as pictures, or as features by an encoder."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from adahi_ros.core.signature import ImageInput
from adahi_ros.protocol.request import RequestError, RequestFault
from adahi_ros.server.window_cache import Pixels
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import from_jpeg, padded, resized
from adahi_ros.vision.interface import ImageError

HEADER_BYTES = 4096  # of a JPEG, beside its pixels


class ReceivedImages:
    """Makes features of untrusted images; an `ImageEncoder` of `WindowCache`.

    Attributes:
        features: number per image.
        fingerprint: the encoder's.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.features = encoder.features
        self.fingerprint = encoder.fingerprint
        self._encoder = encoder

    def encode(self, jpeg: bytes) -> np.ndarray:
        """Return the features (features,) float32 of an image.

        Raises:
            ImageError: it is not a JPEG, damaged, too long, or not of the encoder's size.
        """
        rows, columns = self._encoder.image_size
        size = _size(jpeg, rows, columns)
        if size != (rows, columns):
            raise ImageError(f"data: {size[0]} x {size[1]} pixels, must be {rows} x {columns}")
        features: np.ndarray = self._encoder.encode(from_jpeg(jpeg)[None])[0]
        return features


def pictures(inputs: Sequence[ImageInput], jpegs: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Decode untrusted images for a target: by name, (H, rows, columns, 3) uint8.

    Args:
        inputs: C images that the target reads.
        jpegs: H x C, those of the oldest observation first.

    Raises:
        RequestError: one is not a JPEG, damaged, too long, or larger than the target reads; names it.
    """
    read: dict[str, np.ndarray] = {}
    for place, wanted in enumerate(inputs):
        mine = range(place, len(jpegs), len(inputs))
        read[wanted.name] = np.stack([_picture(index, jpegs[index], wanted) for index in mine])
    return read


def _picture(index: int, jpeg: bytes, wanted: ImageInput) -> np.ndarray:
    rows, columns = wanted.rows, wanted.columns
    try:
        size = jpeg.shape[:2] if isinstance(jpeg, Pixels) else _size(jpeg, rows, columns)
        if size[0] > rows or size[1] > columns:
            raise ImageError(f"data: {size[0]} x {size[1]} pixels, must be {rows} x {columns} at most")
        fitted = padded if wanted.padded else resized
        picture = jpeg.picture if isinstance(jpeg, Pixels) else from_jpeg(jpeg)
        return fitted(picture, rows, columns)
    except ImageError as error:
        raise RequestError(RequestFault.WRONG_SHAPE, f"images[{index}].{error}") from error


def _size(jpeg: bytes, rows: int, columns: int) -> tuple[int, int]:
    """Return the rows and columns in a JPEG's header, without decoding its pixels.

    An attacker may send very many pixels, or very many scans, each of which covers all pixels.

    Raises:
        ImageError: it is not a JPEG, or longer than the raw pixels.
    """
    most = 3 * rows * columns + HEADER_BYTES
    if len(jpeg) > most:
        raise ImageError(f"data: {len(jpeg)} bytes, must be at most {most}, the size of the raw pixels")
    try:
        with Image.open(io.BytesIO(jpeg), formats=("JPEG",)) as picture:
            return picture.height, picture.width
    except Exception as error:
        raise ImageError(f"data: {len(jpeg)} bytes, must be a JPEG ({type(error).__name__})") from error
