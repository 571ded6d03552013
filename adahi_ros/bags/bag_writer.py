# SPDX-License-Identifier: Apache-2.0
"""Writes a bag: serialized messages in, rosbag2 out."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError

from adahi_ros.bags.definitions import VERSION, BagError, types_of

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


@contextmanager
def faults_of_writing(path: Path) -> Iterator[None]:
    """Name the bag that cannot be written.

    Raises:
        BagError: its folder exists, the disk is full, or the like.
    """
    try:
        yield
    except (OSError, sqlite3.Error, WriterError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise BagError(f"{path}: cannot be written ({why or error})") from None


class UnwrittenBag:
    """Counts messages as `BagWriter` does between two bags, and writes none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self.newest_ns = 0

    def add(self, topic: str, kind: str, offered: Sequence[Qos] = ()) -> None:
        """See `BagWriter`."""

    def write(self, topic: str, data: bytes | memoryview, received_ns: int) -> None:
        """See `BagWriter`."""
        self.counts[topic] += 1

    def flush(self) -> None:
        """See `BagWriter`."""

    def close(self) -> None:
        """See `BagWriter`."""


class BagWriter:
    """Writes a bag; messages before a `flush` are safe, and all of them once the bag is closed.

    Attributes:
        counts: messages written, by topic.
        newest_ns: time of the newest message; 0 before the first.

    Args:
        path: folder to make.
        storage: a key of `STORAGES`.

    Raises:
        BagError: the path exists, or cannot be written. Writing raises it too; the writer is then unusable,
            and flushed messages can be recovered.
    """

    def __init__(self, path: Path, storage: str = "mcap") -> None:
        if path.exists():
            raise BagError(f"{path}: is there already, expected the name of a new bag")
        self.path = path
        self.counts: Counter[str] = Counter()
        self._connections: dict[str, Connection] = {}
        self.newest_ns = 0
        self._flushed_ns = 0
        with faults_of_writing(path):
            self._writer = Writer(path, version=VERSION, storage_plugin=STORAGES[storage])
            self._writer.open()

    def add(self, topic: str, kind: str, offered: Sequence[Qos] = ()) -> None:
        """Add a topic, by its full name.

        Raises:
            BagError: the definition of its type is not found.
        """
        if topic not in self._connections:
            types = types_of([kind])
            with self._giving_up():
                self._connections[topic] = self._writer.add_connection(
                    topic, kind, typestore=types, offered_qos_profiles=offered
                )
            self.counts[topic] = 0

    def write(self, topic: str, data: bytes | memoryview, received_ns: int) -> None:
        """Write a message, serialized as CDR.

        Readers sort by time. To keep the order of arrival, each message is a nanosecond later than the
        previous one where a clock stands still, or goes back slightly.
        """
        self.newest_ns = max(received_ns, self.newest_ns + 1)
        with self._giving_up():
            self._writer.write(self._connections[topic], self.newest_ns, data)
        self.counts[topic] += 1

    def flush(self) -> None:
        """Write all messages to the disk, where they can be recovered."""
        if self._flushed_ns == self.newest_ns:
            return
        storage: Any = self._writer.storage  # rosbags itself writes a mebibyte at a time, or all at the end
        with self._giving_up():
            if self._writer.storage_plugin is StoragePlugin.MCAP:
                if storage.chunk.msgs:
                    storage.close_chunk()
                storage.bio.flush()
                os.fsync(storage.bio.fileno())
            else:
                storage.conn.commit()
        self._flushed_ns = self.newest_ns

    def close(self) -> None:
        """Write the remaining messages, the index and the metadata."""
        with self._giving_up():
            self._writer.close()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Leave the files as they are after a write error: more data would be misplaced."""
        try:
            with faults_of_writing(self.path):
                yield
        except BagError:
            with suppress(OSError, sqlite3.Error):
                self._writer.abort()
            raise
