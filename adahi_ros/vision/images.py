# SPDX-License-Identifier: Apache-2.0
"""Converts image messages to arrays and back; invalid input raises only `ImageError`.

Messages may be of rclpy, rosbags or a test: only their fields are read. The size that a message claims is
checked against its content before anything is allocated.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from adahi_ros.vision.interface import MAX_SIDE, QUALITIES, QUALITY, ImageError

MAX_PIXELS = 16_777_216  # 4096 x 4096: more than robot cameras have

# Indices of red, green and blue in a pixel; slices where possible, since they are fast.
CHANNELS: dict[str, slice | list[int]] = {
    "rgb8": slice(0, 3),
    "bgr8": slice(2, None, -1),
    "rgba8": slice(0, 3),
    "bgra8": slice(2, None, -1),
    "mono8": [0, 0, 0],
}
BYTES_PER_PIXEL = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
# Indices of two pixels' brightness, and of their blue and red difference, in four bytes (YUV 4:2:2).
YUYV, UYVY = (0, 2, 1, 3), (1, 3, 0, 2)
OF_TWO = {"yuv422_yuy2": YUYV, "yuyv": YUYV, "yuv422": UYVY, "uyvy": UYVY}
ENCODINGS = (*CHANNELS, *OF_TWO)
MOST_SCANS = 32  # of a JPEG; progressive ones have ten or so
SCAN = b"\xff\xda"  # starts a scan; never occurs in pixel data
FORMATS = {"jpeg": "JPEG", "jpg": "JPEG", "png": "PNG"}
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK")  # Pillow's, of up to 8 bits per channel


def from_image(message: object) -> np.ndarray:
    """Return the image of a message, (H, W, 3) uint8 RGB, in its own memory.

    Args:
        message: like sensor_msgs/Image (height, width, encoding, is_bigendian, step, data) or
            sensor_msgs/CompressedImage (format, data).

    Raises:
        ImageError: the message is not a supported image; names field, value, allowed.
    """
    if hasattr(message, "encoding"):
        return _from_raw(message)
    if hasattr(message, "format"):
        return _from_compressed(message)
    raise ImageError(f"message: {type(message).__name__}, must be an Image or a CompressedImage")


def _from_raw(message: Any) -> np.ndarray:
    encoding = message.encoding
    if not isinstance(encoding, str) or encoding not in ENCODINGS:
        raise ImageError(f"encoding: {_short(encoding)}, must be one of {', '.join(ENCODINGS)}")
    rows, columns = _count(message, "height"), _count(message, "width")
    _check_size(rows, columns)
    data, step = _bytes(message), _count(message, "step")
    if encoding in OF_TWO and columns % 2:
        raise ImageError(f"width: {columns} pixels, must be even for {encoding}")
    width = columns * BYTES_PER_PIXEL.get(encoding, 2)
    # is_bigendian has no meaning for single bytes: 0 and 1 are both allowed.
    order = getattr(message, "is_bigendian", 0)
    if not isinstance(order, int | np.integer | np.bool_) or order not in (0, 1):
        raise ImageError(f"is_bigendian: {_short(order)}, must be 0 or 1")
    if not width <= step <= len(data):
        raise ImageError(f"step: {step} bytes, must be at least {width} and at most the data, {len(data)}")
    if len(data) != rows * step:
        raise ImageError(f"data: {len(data)} bytes, must be {rows * step}, height times step")
    lines = np.frombuffer(data, dtype=np.uint8).reshape(rows, step)[:, :width]
    if encoding in OF_TWO:
        return _from_yuv(lines.reshape(rows, columns // 2, 4), OF_TWO[encoding])
    pixels = lines.reshape(rows, columns, BYTES_PER_PIXEL[encoding])
    return np.array(pixels[:, :, CHANNELS[encoding]], order="C")


def _from_yuv(pairs: np.ndarray, places: tuple[int, int, int, int]) -> np.ndarray:
    """Return RGB of pairs of pixels (H, W / 2, 4): BT.601 with limited range, as cameras have it."""
    first, second, blue, red = places
    luma = 298 * (pairs[..., [first, second]].astype(np.int32) - 16) + 128
    u, v = (pairs[..., each, None].astype(np.int32) - 128 for each in (blue, red))
    channels = (luma + 409 * v, luma - 100 * u - 208 * v, luma + 516 * u)
    mixed = np.clip(np.stack(channels, axis=-1) >> 8, 0, 255).astype(np.uint8)
    return mixed.reshape(len(pairs), -1, 3)


def is_grey(image: np.ndarray) -> bool:
    """Whether an image (H, W, 3) has no colour."""
    return bool((image[..., :1] == image[..., 1:]).all())


def _from_compressed(message: Any) -> np.ndarray:
    described = message.format
    if not isinstance(described, str):
        raise ImageError(f"format: {_short(described)}, must be one of {', '.join(FORMATS)}")
    # As in image_transport: "jpeg", or "rgb8; jpeg compressed bgr8".
    words = re.findall(r"[a-z0-9]+", described[:200].lower())
    named = {FORMATS[word] for word in words if word in FORMATS}
    if len(named) != 1:
        raise ImageError(f"format: {_short(described)}, must name one of {', '.join(FORMATS)}")
    return _decoded(_bytes(message), named.pop())


def _count(message: object, field: str) -> int:
    value = getattr(message, field, None)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ImageError(f"{field}: {_short(value)}, must be an integer")
    return int(value)


def _bytes(message: object) -> memoryview:
    data = getattr(message, "data", None)
    try:
        view = memoryview(data)  # type: ignore[arg-type]
        if view.itemsize != 1 or not view.c_contiguous:
            raise TypeError("not bytes")
        return view.cast("B")
    except (TypeError, ValueError):
        raise ImageError(f"data: {type(data).__name__}, must be bytes") from None


def _check_size(rows: int, columns: int) -> None:
    for field, value in (("height", rows), ("width", columns)):
        if not 1 <= value <= MAX_SIDE:
            raise ImageError(f"{field}: {value} pixels, must be 1 to {MAX_SIDE}")
    if rows * columns > MAX_PIXELS:
        raise ImageError(f"height times width: {rows} x {columns}, must be at most {MAX_PIXELS} pixels")


def _short(value: object) -> str:
    """Return an untrusted value, short enough for a log line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _decoded(data: memoryview | bytes, format_: str) -> np.ndarray:
    """Read a compressed image after a check of its size."""
    if format_ == "JPEG":
        _check_scans(bytes(data))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damaged metadata, and about sizes, which are checked here
            with Image.open(io.BytesIO(data), formats=(format_,)) as picture:
                _check_size(picture.height, picture.width)
                if picture.mode not in MODES:  # such as a depth image, which RGB cannot represent
                    raise ImageError(f"data: mode {picture.mode}, must be one of {', '.join(MODES)}")
                return np.array(picture.convert("RGB"))
    except ImageError:
        raise
    except Image.DecompressionBombError:
        raise ImageError(f"data: more than {MAX_PIXELS} pixels, must be at most so many") from None
    except Exception as error:  # noqa: BLE001 (decoders raise many kinds of errors for invalid data)
        raise ImageError(f"data: {len(data)} bytes, must be a whole {format_} ({_short(error)})") from None


def _check_scans(jpeg: bytes) -> None:
    """Count markers of scans: a few bytes of one may cover all of the pixels."""
    scans = jpeg.count(SCAN)
    if scans > MOST_SCANS:
        raise ImageError(f"data: {scans} scans, must be at most {MOST_SCANS}")


def from_jpeg(data: bytes | memoryview) -> np.ndarray:
    """Return the image in a JPEG, (H, W, 3) uint8.

    Raises:
        ImageError: it is no JPEG, damaged, or too large.
    """
    return _decoded(data, "JPEG")


def to_jpeg(image: np.ndarray, quality: int) -> bytes:
    """Compress an image, (H, W, 3) uint8.

    Colours keep the full resolution: in a small frame, an object may have only a few pixels.

    Raises:
        ImageError: wrong shape or type, or the quality is out of range.
    """
    _check_picture(image)
    low, high = QUALITIES
    if isinstance(quality, bool) or not isinstance(quality, int | np.integer) or not low <= quality <= high:
        raise ImageError(f"quality: {_short(quality)}, must be an integer from {low} to {high}")
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=int(quality), subsampling="4:4:4")
    return file.getvalue()


def as_sent(images: np.ndarray) -> np.ndarray:
    """Return images (B, H, W, 3) uint8 after JPEG compression with a robot's default quality."""
    return np.stack([from_jpeg(to_jpeg(image, QUALITY)) for image in images])


def jpeg_within(image: np.ndarray, budget_bytes: int) -> bytes:
    """Compress an image, (H, W, 3) uint8, at the highest quality within a number of bytes.

    Raises:
        ImageError: wrong shape or type, or the lowest quality needs more bytes.
    """
    low, high = QUALITIES
    best = to_jpeg(image, low)
    if len(best) > budget_bytes:
        raise ImageError(f"budget_bytes: {budget_bytes}, must be at least {len(best)} for this picture")
    while low < high:
        quality = (low + high + 1) // 2
        tried = to_jpeg(image, quality)
        if len(tried) <= budget_bytes:
            low, best = quality, tried
        else:
            high = quality - 1
    return best


def jpeg_of(image: np.ndarray, quality: int, budget_bytes: int) -> bytes:
    """Return an image (H, W, 3) uint8 as JPEG, with the lowest quality where none is within the budget.

    Args:
        image: RGB.
        quality: largest.
        budget_bytes: a larger image gets a lower quality; 0 for no budget.
    """
    jpeg = to_jpeg(image, quality)
    if not budget_bytes or len(jpeg) <= budget_bytes:
        return jpeg
    try:
        return jpeg_within(image, budget_bytes)
    except ImageError:
        return to_jpeg(image, QUALITIES[0])


def resized(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return an image (H, W, 3) uint8 at another size, each pixel the mean of the area that it covers.

    Pillow does this with integers, so that every machine gets the same result.

    Raises:
        ImageError: wrong shape or type, or no such size.
    """
    _check_picture(image)
    _check_size(rows, columns)
    if image.shape[:2] == (rows, columns):
        return image.copy()
    return np.array(Image.fromarray(image).resize((columns, rows), Image.Resampling.BOX))


def within(size: tuple[int, int], rows: int, columns: int, keeps_aspect: bool) -> tuple[int, int]:
    """Return the rows and columns of an image within a size.

    Args:
        size: its rows and columns.
        rows: largest number.
        columns: largest number.
        keeps_aspect: both are scaled equally, to a pixel.
    """
    scales = min(1.0, rows / size[0]), min(1.0, columns / size[1])
    if keeps_aspect:
        scales = min(scales), min(scales)
    return max(1, round(size[0] * scales[0])), max(1, round(size[1] * scales[1]))


def whole(size: Sequence[int], rows: int, columns: int) -> tuple[int, int]:
    """Return the rows and columns of an image of `size`, with its aspect as large as fits, to a pixel."""
    scale = min(rows / size[0], columns / size[1])
    return max(1, round(scale * size[0])), max(1, round(scale * size[1]))


def spoiled(size: Sequence[int], rows: int, columns: int) -> str:
    """Return what resizing spoils of an image of `size`: stretched by more than a pixel, enlarged, or ''."""
    kept = whole(size, rows, columns)
    stretched = rows - kept[0] > 1 or columns - kept[1] > 1
    return "stretched" if stretched else "enlarged" * (kept[0] > size[0])


def padded(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return an image (H, W, 3) uint8 at another size, with its aspect and black borders.

    Raises:
        ImageError: as `resized`.
    """
    _check_picture(image)
    _check_size(rows, columns)
    high, wide = whole(image.shape[:2], rows, columns)
    top, left = (rows - high) // 2, (columns - wide) // 2
    canvas = np.zeros((rows, columns, 3), dtype=np.uint8)
    canvas[top : top + high, left : left + wide] = resized(image, high, wide)
    return canvas


def _check_picture(image: np.ndarray) -> None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ImageError(f"image: {image.dtype} {image.shape}, must be uint8 (H, W, 3)")
    _check_size(*image.shape[:2])
