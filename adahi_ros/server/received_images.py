"""What the verifier makes of images that robots send: features, by an encoder like the robot's."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.images import ImageError, from_jpeg

HEADER_BYTES = 4096  # of a JPEG, beside its pixels


class ReceivedImages:
    """Makes features of images of strangers; an `ImageEncoder` of `WindowCache`.

    Attributes:
        features: of each image.
        fingerprint: the encoder's.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.features = encoder.features
        self.fingerprint = encoder.fingerprint
        self._encoder = encoder

    def encode(self, jpeg: bytes) -> np.ndarray:
        """Return the features (features,) float32 of an image.

        Raises:
            ImageError: it is no JPEG, damaged, too long, or not of the encoder's size.
        """
        self._check_size(jpeg)
        features: np.ndarray = self._encoder.encode(from_jpeg(jpeg)[None])[0]
        return features

    def _check_size(self, jpeg: bytes) -> None:
        """Check how long a JPEG is, and what it says of itself, before any of its pixels is made.

        They may be very many, or be made very many times: each scan of a JPEG goes over all of them.
        """
        rows, columns = self._encoder.image_size
        most = 3 * rows * columns + HEADER_BYTES
        if len(jpeg) > most:
            raise ImageError(f"data: {len(jpeg)} bytes, must be at most {most}, no more than the pixels are")
        try:
            with Image.open(io.BytesIO(jpeg), formats=("JPEG",)) as picture:
                size = picture.height, picture.width
        except Exception as error:
            raise ImageError(f"data: {len(jpeg)} bytes, must be a JPEG ({type(error).__name__})") from error
        if size != (rows, columns):
            raise ImageError(f"data: {size[0]} x {size[1]} pixels, must be {rows} x {columns}")
