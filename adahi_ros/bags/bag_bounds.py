# SPDX-License-Identifier: Apache-2.0
"""Limits of unpacked data, checked while unpacking: a small file can expand to gigabytes.

It also lets the library open an mcap with channels that are not ROS's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import reader as library
from rosbags.rosbag2 import storage_mcap
from rosbags.rosbag2.storage_mcap import zstd  # type: ignore[attr-defined]

from adahi_ros.bags.definitions import BagError
from adahi_ros.core.files import LARGEST_RECORDING

LARGEST_CHUNK = 1 << 28  # bytes; recorders write chunks of about 1 MB, and at least one message
LARGEST_MESSAGE = 1 << 28
MOST_EXPANSION = 200  # times its size that a file may unpack to
ALWAYS_ALLOWED = 1 << 26  # bytes that any file may unpack to
BLOCK = 1 << 16  # data before a damaged part is kept to within a block


def unpacked(packed: bytes, most: int = LARGEST_MESSAGE) -> bytes:
    """Return unpacked zstd data.

    Raises:
        BagError: it is more than `most` bytes, or incomplete.
    """
    parts, size = [], 0
    while packed:
        unpacker = zstd.ZstdDecompressor()
        part = unpacker.decompress(packed, max_length=most - size + 1)
        packed = _rest(unpacker, part, size, most)
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _unpacked_lz4(packed: bytes, most: int) -> bytes:
    unpacker = LZ4FrameDecompressor()
    part: bytes = unpacker.decompress(packed, max_length=most + 1)
    _rest(unpacker, part, 0, most)
    return part


def _rest(unpacker: Any, part: bytes, before: int, most: int) -> bytes:
    if before + len(part) > most:
        raise BagError(f"unpacks to more than {most} bytes, must be at most that")
    if not unpacker.eof:
        raise BagError("compressed data are incomplete")
    rest: bytes = unpacker.unused_data or b""
    return rest


def decompress(data: bytes, compression: str, size: int, crc: int) -> bytes:
    """Return a chunk of an mcap, as the library does, but refuse a large one before unpacking.

    Raises:
        BagError: its size is above `LARGEST_CHUNK`, or it unpacks to more than its stated size.
    """
    if size > LARGEST_CHUNK:
        raise BagError(f"uncompressed_size: {size}, must be at most {LARGEST_CHUNK}")
    if compression in _UNPACK:
        data, compression = _UNPACK[compression](data, size), ""
    return _library_decompress(data, compression, size, crc)


_UNPACK: dict[str, Callable[[bytes, int], bytes]] = {"zstd": unpacked, "lz4": _unpacked_lz4}
_library_decompress = storage_mcap.decompress


def copy_unpacked(packed: Any, plain: BinaryIO, size: int) -> None:
    """Copy a stream that unpacks a file of this many bytes.

    Raises:
        BagError: it unpacks to more than allowed.
    """
    most = min(LARGEST_RECORDING, max(ALWAYS_ALLOWED, MOST_EXPANSION * size))
    written = 0
    while block := packed.read(BLOCK):
        written += len(block)
        if written > most:
            raise BagError(f"{size} bytes unpack to more than {most}, must be at most that")
        plain.write(block)


class _Zstd:
    """The part of zstd that the library's reader uses, with limits."""

    decompress = staticmethod(unpacked)
    open = staticmethod(zstd.open)


class _Copies:
    """The part of shutil that the library's reader uses, with limits."""

    @staticmethod
    def copyfileobj(packed: Any, plain: BinaryIO) -> None:
        copy_unpacked(packed, plain, _packed_size(packed))


def _packed_size(packed: Any) -> int:
    """Return the size of the file that a stream of zstd reads."""
    raw = packed._fp
    here = raw.tell()
    size: int = raw.seek(0, 2)
    raw.seek(here)
    return size


OF_ROS = ("ros2msg", "ros2idl", "omgidl", "")  # encodings of definitions
_library_definition = storage_mcap.get_msgdef


def read_text(content: BinaryIO) -> str:
    """Return a string of an mcap; the schema of a channel that is not ROS's may be no text."""
    return storage_mcap.read_bytes(content).decode(errors="replace")


def definition_of(schema: storage_mcap.Schema | None) -> MessageDefinition:
    """Return the definition in a schema; none where it is not ROS's, such as protobuf's or JSON's."""
    if schema is not None and schema.encoding not in OF_ROS:
        return MessageDefinition(MessageDefinitionFormat.NONE, "")
    return _library_definition(schema)


def bind_library() -> None:
    """Make the library's reader unpack within these limits; it has none, and no parameter for them."""
    storage_mcap.decompress = decompress
    storage_mcap.read_string = read_text  # type: ignore[assignment]
    storage_mcap.get_msgdef = definition_of
    library.zstd = _Zstd  # type: ignore[assignment,attr-defined]
    library.shutil = _Copies  # type: ignore[assignment,attr-defined]
