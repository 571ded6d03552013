from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from adahi_ros.vision.images import (
    BYTES_PER_PIXEL,
    MAX_PIXELS,
    OF_TWO,
    from_image,
    from_jpeg,
    jpeg_within,
    resized,
    to_jpeg,
)
from adahi_ros.vision.interface import ImageError

MEGABYTE = 1_000_000


def picture(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Smooth colours with a little noise, as cameras see."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((columns, rows), Image.Resampling.BILINEAR)).astype(float)
    return np.clip(smooth + random.normal(0.0, 3.0, smooth.shape), 0, 255).astype(np.uint8)


def raw(image: np.ndarray, layout: str = "rgb8", padding: int = 0, **changes: object) -> SimpleNamespace:
    """An Image message of a picture, with what is to be wrong about it."""
    rows, columns = image.shape[:2]
    red, green, blue = np.moveaxis(image, -1, 0)
    alpha = np.full_like(red, 7)
    channels = {
        "rgb8": (red, green, blue),
        "bgr8": (blue, green, red),
        "rgba8": (red, green, blue, alpha),
        "bgra8": (blue, green, red, alpha),
        "mono8": (red,),
    }[layout]
    lines = np.stack(channels, axis=-1).reshape(rows, -1)
    lines = np.pad(lines, ((0, 0), (0, padding)), constant_values=99)
    fields = {
        "height": rows,
        "width": columns,
        "encoding": layout,
        "is_bigendian": 0,
        "step": lines.shape[1],
        "data": lines.tobytes(),
    }
    return SimpleNamespace(**{**fields, **changes})


def compressed(data: bytes, described: str = "jpeg") -> SimpleNamespace:
    return SimpleNamespace(format=described, data=data)


def as_png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def png_that_claims(rows: int, columns: int, body: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize(("encoding", "order"), [(each, OF_TWO[each]) for each in OF_TWO])
def test_pairs_of_pixels_become_the_colours_that_they_stand_for(
    encoding: str, order: tuple[int, ...], padding: int
) -> None:
    # Of BT.601 with limited range: white, black, red, blue, each a pair (Y, Y, U, V).
    pairs = np.array([[235, 235, 128, 128], [16, 16, 128, 128], [81, 81, 90, 240], [41, 41, 240, 110]])
    stored = np.empty_like(pairs)
    stored[:, list(order)] = pairs
    line = np.pad(stored.astype(np.uint8).ravel(), (0, padding))
    fields = {"height": 2, "width": 8, "encoding": encoding, "is_bigendian": 0, "step": len(line)}
    found = from_image(SimpleNamespace(**fields, data=np.tile(line, 2).tobytes())).astype(int)
    wanted = np.repeat([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]], 2, axis=0)
    assert np.abs(found - wanted).max() <= 2
    with pytest.raises(ImageError, match="width: 7 pixels, must be even"):
        from_image(SimpleNamespace(**{**fields, "width": 7}, data=np.tile(line, 2).tobytes()))


@pytest.mark.parametrize("encoding", BYTES_PER_PIXEL)
@pytest.mark.parametrize("padding", [0, 5])
def test_every_encoding_becomes_rgb_whatever_the_padding_of_its_lines(encoding: str, padding: int) -> None:
    image = picture(5, 7)
    expected = np.repeat(image[:, :, :1], 3, axis=2) if encoding == "mono8" else image
    found = from_image(raw(image, encoding, padding))
    np.testing.assert_array_equal(found, expected)
    assert found.flags.owndata
    assert found.flags.c_contiguous
    assert found.flags.writeable


@pytest.mark.parametrize(
    "carrier", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)]
)
def test_data_may_come_as_any_bytes(carrier: object) -> None:
    image = picture(3, 4)
    message = raw(image)
    message.data = carrier(message.data)  # type: ignore[operator]
    np.testing.assert_array_equal(from_image(message), image)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"encoding": "bayer_rggb8"}, "encoding: 'bayer_rggb8', must be one of rgb8"),
        ({"encoding": "x" * MEGABYTE}, r"encoding: 'xx.*\.\.\., must"),
        ({"encoding": None}, "encoding: None"),
        ({"height": 0}, "height: 0 pixels, must be 1 to"),
        ({"width": 0, "step": 0, "data": b""}, "width: 0 pixels"),
        ({"height": -5}, "height: -5"),
        ({"height": 2.0}, "height: 2.0, must be an integer"),
        ({"height": 2**32 - 1, "width": 2**32 - 1}, "height: 4294967295"),
        ({"height": 60_000, "width": 60_000}, f"must be at most {MAX_PIXELS} pixels"),
        ({"step": 20}, "step: 20 bytes, must be at least 21"),
        ({"step": 22}, "data: 105 bytes, must be 110, height times step"),
        ({"step": 2**32 - 1}, "step: 4294967295"),
        ({"data": b""}, "step: 21 bytes, must be at least 21 and at most the data, 0"),
        ({"data": bytes(104)}, "data: 104 bytes, must be 105"),
        ({"data": bytes(106)}, "data: 106 bytes, must be 105"),
        ({"data": "x" * 105}, "data: str, must be bytes"),
        ({"data": None}, "data: NoneType"),
        ({"data": [1] * 105}, "data: list"),
        ({"is_bigendian": 7}, "is_bigendian: 7, must be 0 or 1"),
    ],
)
def test_a_wrong_raw_image_is_refused_by_field_and_value(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ImageError, match=text):
        from_image(raw(picture(5, 7), **changes))


integers = st.one_of(st.integers(-3, 70), st.integers(0, 2**32), st.none(), st.floats(), st.booleans())


@pytest.mark.parametrize("message", [SimpleNamespace(), None, SimpleNamespace(data=b"")])
def test_what_is_no_image_message_is_refused(message: object) -> None:
    with pytest.raises(ImageError, match=r"message: .*must be an Image or a CompressedImage"):
        from_image(message)


@pytest.mark.parametrize("described", ["jpeg", "rgb8; jpeg compressed bgr8", "JPG"])
def test_a_compressed_jpeg_is_near_the_picture(described: str) -> None:
    image = picture(48, 64)
    found = from_image(compressed(to_jpeg(image, 95), described))
    assert found.shape == image.shape
    assert np.abs(found.astype(int) - image).mean() < 3.0


def test_a_png_is_the_picture_and_a_grey_one_is_grey() -> None:
    image = picture(9, 5)
    np.testing.assert_array_equal(from_image(compressed(as_png(image), "png")), image)
    grey = from_image(compressed(as_png(image[:, :, 0]), "png"))
    np.testing.assert_array_equal(grey, np.repeat(image[:, :, :1], 3, axis=2))


def test_a_png_of_sixteen_bits_is_refused_for_rgb_would_keep_nothing_of_it() -> None:
    depth = np.full((4, 4), 40_000, dtype=np.uint16)
    with pytest.raises(ImageError, match="data: mode I;16, must be one of 1, L"):
        from_image(compressed(as_png(depth), "png"))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (compressed(b"", "tiff"), "format: 'tiff', must name one of jpeg"),
        (compressed(b"", ""), "format: ''"),
        (compressed(b"", "jpeg png"), "format: 'jpeg png'"),
        (compressed(b"", "x" * MEGABYTE), r"format: 'xx.*\.\.\."),
        (SimpleNamespace(format=3, data=b""), "format: 3"),
        (compressed(b""), "data: 0 bytes, must be a whole JPEG"),
        (compressed(as_png(picture(3, 3))), "must be a whole JPEG"),
        (compressed(to_jpeg(picture(3, 3), 50), "png"), "must be a whole PNG"),
        (SimpleNamespace(format="jpeg", data=None), "data: NoneType"),
    ],
)
def test_a_compressed_image_that_is_wrong_is_reported(message: SimpleNamespace, text: str) -> None:
    with pytest.raises(ImageError, match=text):
        from_image(message)


@given(
    described=st.sampled_from(["jpeg", "png"]),
    changes=st.dictionaries(st.integers(0, 999), st.integers(0, 255)),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_picture_is_a_picture_or_an_image_error(described: str, changes: dict[int, int]) -> None:
    image = picture(16, 16)
    data = bytearray(to_jpeg(image, 60) if described == "jpeg" else as_png(image))
    for place, value in changes.items():
        data[place % len(data)] = value
    try:
        found = from_image(compressed(bytes(data), described))
    except ImageError:
        return
    assert found.ndim == 3
    assert found.dtype == np.uint8
    assert found.shape[0] * found.shape[1] <= MAX_PIXELS


@pytest.mark.parametrize(
    ("rows", "columns"), [(2**31 - 1, 2**31 - 1), (65_000, 65_000), (1, 2**31 - 1), (5000, 5000)]
)
def test_a_picture_that_claims_to_be_huge_costs_no_memory(rows: int, columns: int) -> None:
    bomb = png_that_claims(rows, columns, zlib.compress(bytes(10 * MEGABYTE)))
    tracemalloc.start()
    try:
        with pytest.raises(ImageError, match=r"data|height|width"):
            from_image(compressed(bomb, "png"))
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()


def test_resizing_to_a_part_averages_areas_and_to_the_same_size_copies() -> None:
    image = picture(32, 48)
    means = image.reshape(8, 4, 12, 4, 3).mean(axis=(1, 3))
    assert np.abs(resized(image, 8, 12) - means).max() <= 1.0
    same = resized(image, 32, 48)
    np.testing.assert_array_equal(same, image)
    assert not np.shares_memory(same, image)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, -1), (60_000, 60_000)])
def test_no_picture_is_resized_to_nothing_or_to_too_much(rows: int, columns: int) -> None:
    with pytest.raises(ImageError, match=r"height|width"):
        resized(picture(4, 4), rows, columns)


@given(st.integers(600, 6000), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_a_jpeg_within_a_budget_is_within_it_and_the_best_that_is(budget: int, seed: int) -> None:
    image = picture(64, 64, seed)
    try:
        found = jpeg_within(image, budget)
    except ImageError:
        assert len(to_jpeg(image, 1)) > budget
        return
    assert len(found) <= budget
    sizes = [len(to_jpeg(image, quality)) for quality in range(1, 96)]
    assert len(found) in sizes
    largest = max(size for size in sizes if size <= budget)
    assert len(found) >= 0.97 * largest  # sizes grow with quality but for a few bytes here and there


def test_a_budget_that_nothing_fits_names_what_would() -> None:
    image = picture(64, 64)
    with pytest.raises(ImageError, match=f"budget_bytes: 10, must be at least {len(to_jpeg(image, 1))}"):
        jpeg_within(image, 10)


@pytest.mark.parametrize("quality", [0, 96, 50.0, True, None])
def test_a_quality_that_is_none_is_reported(quality: object) -> None:
    with pytest.raises(ImageError, match=r"quality: .*must be an integer from 1 to 95"):
        to_jpeg(picture(4, 4), quality)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)]
)
def test_what_is_no_picture_is_neither_compressed_nor_resized(image: np.ndarray) -> None:
    with pytest.raises(ImageError):
        to_jpeg(image, 50)
    with pytest.raises(ImageError):
        resized(image, 2, 2)


def test_small_things_keep_their_colour_through_jpeg() -> None:
    image = np.full((64, 64, 3), 220, dtype=np.uint8)
    image[30:34, 40:44] = (204, 74, 22)
    found = from_jpeg(to_jpeg(image, 80)).astype(int)
    assert np.abs(found[31:33, 41:43] - image[31:33, 41:43]).max() < 30


@pytest.mark.parametrize("progressive", [True, False])
def test_a_jpeg_may_have_some_scans_and_no_more(progressive: bool) -> None:
    file = io.BytesIO()
    Image.fromarray(picture(64, 64)).save(file, "JPEG", progressive=progressive)
    good = file.getvalue()
    assert from_jpeg(good).shape == (64, 64, 3)
    start = good.rindex(b"\xff\xda")
    nothing_new = good[start : start + 2 + int.from_bytes(good[start + 2 : start + 4], "big")]
    bomb = good[:-2] + nothing_new * 100 + good[-2:]  # each costs as much as a picture
    scans = bomb.count(b"\xff\xda")
    for decode in (from_jpeg, lambda data: from_image(SimpleNamespace(format="jpeg", data=data))):
        with pytest.raises(ImageError, match=rf"^data: {scans} scans, must be at most 32$"):
            decode(bomb)
