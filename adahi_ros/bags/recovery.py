# SPDX-License-Identifier: Apache-2.0
"""Writes a complete bag from the readable part of one that was never closed, or has lost its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinitionFormat
from rosbags.rosbag2 import Writer

from adahi_ros.bags.bag_files import MCAP, files_of, storage_of
from adahi_ros.bags.bag_writer import STORAGES, faults_of_writing
from adahi_ros.bags.definitions import VERSION, BagError, carried_types, in_words, types_of
from adahi_ros.bags.partial_bag import whole_messages


@dataclass
class Recovered:
    """The result of a recovery.

    Attributes:
        counts: messages of the new bag, by topic.
        faults: why reading of a file stopped early.
        others: messages that are left out, because they are not CDR, by topic.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


def recover(path: Path, out: Path) -> Recovered:
    """Write a complete bag of another bag's messages before its first fault.

    The old bag is only read.

    Args:
        path: folder of the bag, or a single .mcap or .db3 file.
        out: folder to make.

    Raises:
        BagError: there is no bag, it has no message that can be read, or the new one cannot be written.
    """
    found = Recovered()
    files = files_of(path)
    messages = (message for file in files for message in whole_messages(file, found.faults, found.others))
    first = next(messages, None)
    if first is None:
        raise BagError(f"{path}: no message in it can be read ({'; '.join(found.faults) or 'it has none'})")
    storage = STORAGES["mcap" if storage_of(files[0]) == MCAP else "sqlite3"]
    connections: dict[str, Connection] = {}
    with faults_of_writing(out), Writer(out, version=VERSION, storage_plugin=storage) as writer:
        for connection, time_ns, data in (each for part in ((first,), messages) for each in part):
            topic = connection.topic
            if topic not in connections:
                connections[topic] = _add(writer, path, connection)
            writer.write(connections[topic], time_ns, data)
            found.counts[topic] += 1
    return found


def _add(writer: Writer, path: Path, connection: Connection) -> Connection:
    """Add a topic to the new bag; the hash of its type is not in an mcap."""
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    topic, kind, offered = connection.topic, connection.msgtype, connection.ext.offered_qos_profiles
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return writer.add_connection(topic, kind, typestore=types_of([kind]), offered_qos_profiles=offered)
    try:
        digest = connection.digest or carried_types(kind, connection.msgdef).hash_rihs01(kind)
    except Exception as error:  # noqa: BLE001 (the library raises many kinds of errors for invalid data)
        raise BagError(f"{path}: {topic}: expected a definition of {kind} ({in_words(error)})") from None
    text = connection.msgdef.data
    return writer.add_connection(topic, kind, msgdef=text, rihs01=digest, offered_qos_profiles=offered)
