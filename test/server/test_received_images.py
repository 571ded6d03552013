"""A JPEG becomes what the encoder makes of its pixels; anything else is refused before it costs anything."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.vision.images import to_jpeg
from adahi_ros.vision.interface import QUALITIES, ImageError

ROWS, COLUMNS = 16, 24


class MeanEncoder:
    """Features: the mean of each colour."""

    features = 3
    image_size = (ROWS, COLUMNS)
    fingerprint = "0123456789abcdef"

    def encode(self, images: np.ndarray) -> np.ndarray:
        assert images.shape[1:] == (ROWS, COLUMNS, 3)
        return images.mean(axis=(1, 2)).astype(np.float16).astype(np.float32)


IMAGES = ReceivedImages(MeanEncoder())  # type: ignore[arg-type]
FRAME = np.random.default_rng(0).integers(256, size=(ROWS, COLUMNS, 3), dtype=np.uint8)
JPEG = to_jpeg(FRAME, 80)


def saved(image: np.ndarray, format_: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, format_)
    return file.getvalue()


def claiming(rows: int, columns: int) -> bytes:
    """The JPEG, with another size in its header."""
    start = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:start] + struct.pack(">HH", rows, columns) + JPEG[start + 4 :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes, must be a JPEG"),
        (b"\xff\xd8", "2 bytes, must be a JPEG"),
        (saved(FRAME, "PNG"), r"\d+ bytes, must be a JPEG"),
        (JPEG[:-100], r"\d+ bytes, must be a whole JPEG"),
        (to_jpeg(FRAME[:-1], 80), "15 x 24 pixels, must be 16 x 24"),
        (to_jpeg(FRAME.swapaxes(0, 1).copy(), 80), "24 x 16 pixels, must be 16 x 24"),
        (claiming(4096, 4096), "4096 x 4096 pixels, must be 16 x 24"),
        (claiming(65500, 65500), r"\d+ bytes, must be a JPEG \(DecompressionBombError\)"),
        (claiming(0, 24), ".*, must be "),
    ],
)
def test_what_is_no_jpeg_of_the_right_size_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=f"^data: {message}"):
        IMAGES.encode(data)


def test_a_jpeg_of_very_many_scans_is_refused_before_it_is_decoded() -> None:
    file = io.BytesIO()
    Image.fromarray(FRAME * 0).save(file, "JPEG", progressive=True)
    small = file.getvalue()
    scans = [at for at in range(len(small)) if small[at : at + 2] == b"\xff\xda"]
    bomb = (
        small[:-2] + small[scans[0] : scans[1]] * 10_000 + small[-2:]
    )  # each scan costs as much as a picture
    with pytest.raises(ImageError, match=rf"^data: {len(bomb)} bytes, must be at most 5248"):
        IMAGES.encode(bomb)


def test_the_largest_jpeg_that_a_robot_makes_is_taken() -> None:
    noise = np.random.default_rng(1).integers(2, size=(ROWS, COLUMNS, 3), dtype=np.uint8) * np.uint8(255)
    assert IMAGES.encode(to_jpeg(noise, QUALITIES[1])).shape == (3,)
