# SPDX-License-Identifier: Apache-2.0
"""Messages of an mcap from its start, without the index at its end."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2.storage_mcap import Schema, get_qos, read_bytes

from adahi_ros.bags.bag_bounds import decompress, definition_of, read_text
from adahi_ros.bags.definitions import BagError

MAGIC: Final = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
HEAD = struct.Struct("<BQ")  # of a record: its type, and its length in bytes
SCHEMA_HEAD = struct.Struct("<H")
CHANNEL_HEAD = struct.Struct("<HH")
MESSAGE_HEAD = struct.Struct("<HIQQ")  # channel, sequence, times of recording and of publishing
CHUNK_HEAD = struct.Struct("<QQQI")  # first and last time, size, checksum
NO_SCHEMA = Schema(0, "", "", "")  # of a channel without one


def scan(file: Path) -> Iterator[tuple[Connection, int, bytes]]:
    """Yield messages with their topics and times in ns, in the order of the file.

    Raises:
        BagError: a record is incomplete, or the file ends too early; the messages before it
            have been yielded.
    """
    schemas: dict[int, Schema] = {}
    connections: dict[int, Connection] = {}
    with file.open("rb") as data:
        if data.read(len(MAGIC)) != MAGIC:
            raise BagError("does not begin as an mcap")
        for what, body in _records(data, file.stat().st_size):
            content = BytesIO(body)
            if what == SCHEMA:
                (number,) = SCHEMA_HEAD.unpack(content.read(SCHEMA_HEAD.size))
                schemas[number] = Schema(number, *(read_text(content) for _ in range(3)))
            elif what == CHANNEL:
                number, of = CHANNEL_HEAD.unpack(content.read(CHANNEL_HEAD.size))
                connections[number] = _connection(number, schemas.get(of) if of else NO_SCHEMA, content)
            elif what == MESSAGE:
                number, _, time_ns, _ = MESSAGE_HEAD.unpack_from(body)
                yield connections[number], time_ns, body[MESSAGE_HEAD.size :]
            elif what in (DATA_END, FOOTER):
                return
        raise BagError(f"ends at byte {data.tell()} without having been closed")


def _connection(number: int, schema: Schema | None, content: BinaryIO) -> Connection:
    if schema is None:
        raise BagError(f"channel {number}: its schema is not in the file")
    topic, encoding, metadata = read_text(content), read_text(content), read_bytes(content)
    extension = ConnectionExtRosbag2(encoding, get_qos(metadata))
    return Connection(number, topic, schema.name, definition_of(schema), "", 0, extension, None)


def _records(data: BinaryIO, size: int, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield records, including those in chunks, even in an incomplete chunk.

    Args:
        data: to read.
        size: its length in bytes.
        at: its offset in its file.
    """
    while head := data.read(HEAD.size):
        begin = data.tell() - len(head)
        what, length = HEAD.unpack(head) if len(head) == HEAD.size else (0, 0)
        whole = length <= size - data.tell()
        if what == CHUNK:
            content = BytesIO(data.read(min(length, size)))
            _, _, unpacked, checksum = CHUNK_HEAD.unpack(content.read(CHUNK_HEAD.size))
            compression = read_text(content)
            content.seek(8, 1)  # length of the following data
            packed_at = at + data.tell() - len(content.getbuffer()) + content.tell()
            packed = content.read()
            if whole or compression:
                packed = decompress(packed, compression, unpacked, checksum)
            yield from _records(BytesIO(packed), len(packed), packed_at)
        elif what and whole:
            yield what, data.read(length)
        if not what or not whole:
            raise BagError(f"no whole record at byte {at + begin} of {at + size}")
