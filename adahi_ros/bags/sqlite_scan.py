# SPDX-License-Identifier: Apache-2.0
"""Messages of a database from its first row, as far as SQLite can read its pages."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2.metadata import parse_qos

from adahi_ros.bags.bag_files import journals_of
from adahi_ros.bags.definitions import BagError

PAGE_SIZE: Final = slice(16, 18)  # bytes with a database's page size
LARGEST_PAGE: Final = 1 << 16  # stored as 1
FORMATS: Final = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}


def scan(file: Path) -> Iterator[tuple[Connection, int, bytes]]:
    """Yield messages with their topics and times in ns, in the order of writing.

    The file is not changed: a journal beside it is applied to a copy.

    Raises:
        BagError: a row is not a recorder's; the messages before it have been yielded.
        sqlite3.Error: the rest of the database is missing or damaged; likewise.
    """
    with _opened(file) as database:
        connections = _connections(database)
        last = -1
        rows = database.execute("SELECT id, topic_id, timestamp, data FROM messages ORDER BY id")
        for number, topic, time_ns, data in rows:
            if number <= last or topic not in connections or not isinstance(data, bytes):
                raise BagError(f"no whole row after row {last}")
            yield connections[topic], time_ns, data
            last = number


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database that may lack its end; a partial page counts as missing."""
    journals, cut = journals_of(file), _bytes_of_a_part(file)
    with TemporaryDirectory() as folder:
        if journals or cut:
            for each in (file, *journals):
                shutil.copyfile(each, Path(folder, each.name))
            file = Path(folder, file.name)
            with file.open("r+b") as copied:
                copied.truncate(file.stat().st_size - cut)
        how = "" if journals else "?mode=ro&immutable=1"
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}{how}", uri=True)) as database:
            database.execute("PRAGMA writable_schema = ON")  # else it refuses a file that has lost pages
            yield database


def _bytes_of_a_part(file: Path) -> int:
    """Return the size of a partial last page."""
    with file.open("rb") as data:
        size = int.from_bytes(data.read(PAGE_SIZE.stop)[PAGE_SIZE], "big")
    size = LARGEST_PAGE if size == 1 else size
    return file.stat().st_size % size if size else 0


def _connections(database: sqlite3.Connection) -> dict[int, Connection]:
    """Return the topics by their numbers; older databases have fewer columns."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    known = _rows(database, "message_definitions") if "message_definitions" in tables else []
    definitions: dict[tuple[str, str], MessageDefinition] = {}  # of a type and its hash; of the type alone
    for each in known:
        kind, digest = each["topic_type"], each.get("type_description_hash", "")
        found = MessageDefinition(FORMATS[each["encoding"]], each["encoded_message_definition"])
        definitions |= {(kind, digest): found, (kind, ""): found}
    none = MessageDefinition(MessageDefinitionFormat.NONE, "")
    return {
        each["id"]: Connection(
            each["id"],
            each["name"],
            each["type"],
            definitions.get((each["type"], each.get("type_description_hash", "")), none),
            each.get("type_description_hash", ""),
            0,
            ConnectionExtRosbag2(
                each["serialization_format"], parse_qos(each.get("offered_qos_profiles", ""))
            ),
            None,
        )
        for each in _rows(database, "topics")
    }


def _rows(database: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    found = database.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description]
    rows: list[dict[str, Any]] = []
    with suppress(sqlite3.DatabaseError):
        for row in found:
            rows.append(dict(zip(names, row, strict=True)))  # rows before a fault are kept
    return rows
