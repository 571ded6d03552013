# SPDX-License-Identifier: Apache-2.0
"""Arrays in msgpack, as openpi, Isaac GR00T and LeRobot encode them; input is not trusted.

openpi          {b"__ndarray__": True, b"data": bytes, b"dtype": "<f4", b"shape": [16, 8]}
                (packages/openpi-client/src/openpi_client/msgpack_numpy.py of Physical-Intelligence/openpi)
Isaac GR00T     {"__ndarray_class__": True, "as_npy": bytes of a .npy file}
                (gr00t/policy/server_client.py of NVIDIA/Isaac-GR00T; gr00t/eval/service.py of N1.5)
LeRobot         {"__lerobot_type__": "tensor", "dtype": "float32", "endianness": "little", "shape": [16, 8],
                "data": bytes}, and "rgb" with "encoding": "raw" for images
                (src/lerobot/remote_inference/codec.py of huggingface/lerobot)

Nothing is pickled: an array of objects is neither written nor read. The size that a message claims is
checked against its content before anything is allocated; the receiver limits the length of a message.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adahi_ros.core.texts import abridged

DTYPES = frozenset(
    f"{order}{kind}" for order in "<>" for kind in ("f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8")
) | {
    "|b1",
    "|i1",
    "|u1",
}
LEROBOT_DTYPES = {np.dtype(dtype).name: dtype[1:] for dtype in DTYPES}
MOST_DIMENSIONS = 8
LONGEST_LIST = 65536
MOST_ENTRIES = 4096  # of a mapping
NPY_MAGIC = b"\x93NUMPY"
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][a-zA-Z]\d{0,2})', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*"
)
LONGEST_NPY_HEADER = 1024  # bytes
FAULT_LENGTH = 120
LEROBOT = "__lerobot_type__"
TORCH_FILE = b"PK\x03\x04"

Value = Any
"""Numbers, texts, bytes, None, arrays, and lists and mappings of them."""


class PackedError(ValueError):
    """A message that cannot be read; has the reason."""


def pack_openpi(value: Value) -> bytes:
    """Write a message as openpi reads it."""
    return _pack(value, _openpi_array)


def unpack_openpi(message: bytes) -> Value:
    """Read a message of openpi's.

    Raises:
        PackedError: it cannot be read.
    """
    return _unpack(message, _from_openpi)


def check_values(message: bytes, most: int) -> None:
    """Count the values in a message, before any is made: a few bytes each would keep a reader busy.

    Raises:
        PackedError: there are more than `most`.
    """
    at = count = 0
    while at < len(message):
        count += 1
        if count > most:
            raise PackedError(f"{len(message)} bytes with more than {most} values, must be at most so many")
        fixed, counted = SIZES[message[at]]
        content = int.from_bytes(message[at + 1 : at + 1 + counted], "big")
        at += fixed + counted + content


def _sizes(first: int) -> tuple[int, int]:
    """Return the bytes of a value of msgpack that begins so, and of the number that has its other bytes."""
    if 0xA0 <= first <= 0xBF:  # a short text
        return 1 + (first & 0x1F), 0
    if 0xC4 <= first <= 0xC9 or 0xD9 <= first <= 0xDB:  # bytes, extensions, texts
        kind = first - 0xC4 if first < 0xD0 else first - 0xD9
        return (2 if 0xC7 <= first <= 0xC9 else 1), 1 << kind % 3
    if 0xD4 <= first <= 0xD8:
        return 2 + (1 << first - 0xD4), 0
    numbers = {0xCA: 5, 0xCB: 9, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
    if 0xCC <= first <= 0xD3:
        return 1 + (1 << (first - 0xCC) % 4), 0
    return numbers.get(first, 1), 0


SIZES = [_sizes(first) for first in range(256)]


def pack_groot(value: Value) -> bytes:
    """Write a message as Isaac GR00T reads it."""
    return _pack(value, _groot_array)


def unpack_groot(message: bytes) -> Value:
    """Read a message of Isaac GR00T's. Its modality configurations stay mappings.

    Raises:
        PackedError: it cannot be read.
    """
    if message.startswith(TORCH_FILE):
        raise PackedError(
            "a file of torch's, which is pickled: GR00T servers before msgpack are not spoken with"
        )
    return _unpack(message, _from_groot)


def pack_lerobot(value: Value) -> bytes:
    """Write a message as LeRobot reads it; an array (rows, columns, 3) of uint8 is an image."""
    return _pack(value, _lerobot_array)


def unpack_lerobot(message: bytes) -> Value:
    """Read a message of LeRobot's remote inference.

    Raises:
        PackedError: it cannot be read.
    """
    return _unpack(message, _from_lerobot)


def _pack(value: Value, coded: Callable[[np.ndarray], dict[object, object]]) -> bytes:
    import msgpack

    def default(other: object) -> dict[Any, Any]:
        array = np.asarray(other)
        if array.dtype.str not in DTYPES:
            raise TypeError(f"{type(other).__name__} of {array.dtype}, must be numbers")
        return coded(array)

    packed: bytes = msgpack.packb(value, default=default)
    return packed


def _unpack(message: bytes, decoded: Callable[[Mapping[object, object]], Value]) -> Value:
    import msgpack

    try:
        return msgpack.unpackb(
            message, object_hook=decoded, max_array_len=LONGEST_LIST, max_map_len=MOST_ENTRIES
        )
    except Exception as error:  # noqa: BLE001 (msgpack and numpy raise various errors for invalid input)
        reason = abridged(str(error) or type(error).__name__, FAULT_LENGTH)
        raise PackedError(f"{len(message)} bytes that are no message ({reason})") from None


def _openpi_array(array: np.ndarray) -> dict[object, object]:
    return {b"__ndarray__": True, b"data": array.tobytes(), b"dtype": array.dtype.str, b"shape": array.shape}


def _from_openpi(value: Mapping[object, object]) -> Value:
    if b"__ndarray__" in value:
        return _array(value[b"data"], value[b"dtype"], value[b"shape"])
    if b"__npgeneric__" in value:
        number = value[b"data"]
        if not isinstance(number, bool | int | float):
            raise ValueError(f"a {type(number).__name__}, must be a number")
        return number
    return value


def _groot_array(array: np.ndarray) -> dict[object, object]:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


def _from_groot(value: Mapping[Any, Any]) -> Value:
    if "__ndarray_class__" not in value:
        return value
    # Not by numpy.load, which trusts the header's size and parses it with Python at any nesting.
    content = value["as_npy"]
    length = {1: 2, 2: 4}.get(content[6]) if content.startswith(NPY_MAGIC) else None
    if length is None:
        raise ValueError(f"npy file that begins with {content[:8]!r}, must be of version 1 or 2")
    begin = 8 + length
    end = begin + int.from_bytes(content[8:begin], "little")
    header = NPY_HEADER.fullmatch(content[begin:end]) if end - begin <= LONGEST_NPY_HEADER else None
    if header is None:
        raise ValueError("npy file, must have a header of numbers")
    dtype, by_columns, sizes = header.groups()
    shape = [int(size) for size in sizes.split(b",") if size.strip()]
    if by_columns == b"True":
        return _array(content[end:], dtype.decode(), shape[::-1]).T
    return _array(content[end:], dtype.decode(), shape)


def _lerobot_array(array: np.ndarray) -> dict[object, object]:
    coded: dict[object, object] = {"dtype": array.dtype.name, "shape": array.shape, "data": array.tobytes()}
    if array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3:
        return {LEROBOT: "rgb", "encoding": "raw", "channel_order": "RGB", **coded}
    big = array.dtype.byteorder == ">"
    return {LEROBOT: "tensor", "endianness": "big" if big else "little", **coded}


def _from_lerobot(value: Mapping[Any, Any]) -> Value:
    if LEROBOT not in value:
        return value
    if value[LEROBOT] == "rgb" and (value["encoding"], value["channel_order"]) != ("raw", "RGB"):
        raise ValueError(f"image in {value['encoding']!r}, must be raw RGB")
    dtype = LEROBOT_DTYPES.get(value["dtype"], "")
    order = {"little": "<", "big": ">"}[value.get("endianness", "little")]
    return _array(value["data"], f"|{dtype}" if dtype.endswith("1") else f"{order}{dtype}", value["shape"])


def _array(data: Any, dtype: Any, shape: Any) -> np.ndarray:
    """Return the array of a message's entry."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"array of {dtype!r}, must be of numbers")
    if not isinstance(shape, list | tuple) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"array of shape {shape!r}, must be at most {MOST_DIMENSIONS} sizes")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"array of shape {shape!r}, must be sizes")
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if not isinstance(data, bytes) or len(data) != needed:
        raise ValueError(f"array of shape {tuple(shape)} with {len(data)} bytes, must be {needed}")
    return np.frombuffer(data, dtype).reshape(shape)
