"""A whole bag of what can be read of one that was never closed, or has lost its end."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, Writer

from adahi_ros.bags.definitions import BagError, carried_types, types_of
from adahi_ros.bags.mcap_scan import scan
from adahi_ros.bags.reader import MCAP, check_cdr, files_of, in_words
from adahi_ros.bags.writer import STORAGES, VERSION, faults_of_writing

Message = tuple[Connection, int, bytes]


@dataclass
class Recovered:
    """What was found.

    Attributes:
        counts: messages of the new bag, by topic.
        faults: why reading a file ended before its end.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def recover(path: Path, out: Path) -> Recovered:
    """Write a whole bag of the messages that another one has before its first fault.

    SQLite takes back, in the old bag, what was not committed; an mcap is only read.

    Args:
        path: folder of the bag, or a single .mcap or .db3 file.
        out: folder to make.

    Raises:
        BagError: there is no bag, it has no message that can be read, or the new one cannot be written.
    """
    found = Recovered()
    files = files_of(path)
    messages = (message for file in files for message in _messages(file, found.faults))
    first = next(messages, None)
    if first is None:
        raise BagError(f"{path}: no message in it can be read ({'; '.join(found.faults) or 'it has none'})")
    storage = STORAGES["mcap" if files[0].suffix == MCAP else "sqlite3"]
    connections: dict[str, Connection] = {}
    with faults_of_writing(out), Writer(out, version=VERSION, storage_plugin=storage) as writer:
        for connection, time_ns, data in (each for part in ((first,), messages) for each in part):
            topic = connection.topic
            if topic not in connections:
                connections[topic] = _add(writer, path, connection)
            writer.write(connections[topic], time_ns, data)
            found.counts[topic] += 1
    return found


def _messages(file: Path, faults: list[str]) -> Iterator[Message]:
    """Yield what a file has; note why that was not all."""
    try:
        for message in scan(file) if file.suffix == MCAP else _committed(file):
            check_cdr(message[2])
            yield message
    except Exception as error:  # noqa: BLE001 (of garbage the library raises this and that)
        faults.append(in_words(error))


def _committed(file: Path) -> Iterator[Message]:
    with closing(sqlite3.connect(file)) as database:  # a journal beside it is applied
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Reader(file) as reader:
        yield from reader.messages()


def _add(writer: Writer, path: Path, connection: Connection) -> Connection:
    """Add a topic to the new bag; the hash of its type is not in an mcap."""
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    topic, kind, offered = connection.topic, connection.msgtype, connection.ext.offered_qos_profiles
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return writer.add_connection(topic, kind, typestore=types_of([kind]), offered_qos_profiles=offered)
    try:
        digest = connection.digest or carried_types(kind, connection.msgdef).hash_rihs01(kind)
    except Exception as error:  # noqa: BLE001 (of garbage the library raises this and that)
        raise BagError(f"{path}: {topic}: expected a definition of {kind} ({in_words(error)})") from None
    text = connection.msgdef.data
    return writer.add_connection(topic, kind, msgdef=text, rihs01=digest, offered_qos_profiles=offered)
