"""A bag that is being written: serialized messages in, rosbag2 out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import StoragePlugin, Writer

from adahi_ros.bags.definitions import BagError, types_of

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
VERSION: Final = 9  # of rosbag2's metadata, that of Jazzy


class BagWriter:
    """Writes a bag; what has come is safe once it is closed.

    Attributes:
        counts: messages written, by topic.
        newest_ns: time of the newest message; 0 before the first.

    Args:
        path: folder to make.
        storage: a key of `STORAGES`.

    Raises:
        BagError: there is something at this path, or it cannot be made.
    """

    def __init__(self, path: Path, storage: str = "mcap") -> None:
        if path.exists():
            raise BagError(f"{path}: is there already, expected the name of a new bag")
        self.path = path
        self.counts: Counter[str] = Counter()
        self._connections: dict[str, Connection] = {}
        self.newest_ns = 0
        self._writer = Writer(path, version=VERSION, storage_plugin=STORAGES[storage])
        try:
            self._writer.open()
        except OSError as error:
            raise BagError(f"{path}: {error.strerror or error}") from None

    def add(self, topic: str, kind: str, offered: Sequence[Qos] = ()) -> None:
        """Take a topic up, by its full name.

        Raises:
            BagError: the definition of its type is nowhere.
        """
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(
                topic, kind, typestore=types_of([kind]), offered_qos_profiles=offered
            )
            self.counts[topic] = 0

    def write(self, topic: str, data: bytes | memoryview, received_ns: int) -> None:
        """Write a message, serialized as CDR.

        Readers sort by time. So that the order of coming is kept, each message is a nanosecond later than the
        one before where a clock stands still, or goes back by a little.
        """
        self.newest_ns = max(received_ns, self.newest_ns + 1)
        self._writer.write(self._connections[topic], self.newest_ns, data)
        self.counts[topic] += 1

    def close(self) -> None:
        """Write what is left, the index and the metadata."""
        self._writer.close()
