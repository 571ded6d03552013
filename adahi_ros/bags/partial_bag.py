# SPDX-License-Identifier: Apache-2.0
"""The readable part of a bag that was never closed, has lost its end, or is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.storage_mcap import zstd  # type: ignore[attr-defined]  # as the library uses it

from adahi_ros.bags import mcap_scan, sqlite_scan
from adahi_ros.bags.bag_bounds import copy_unpacked, unpacked
from adahi_ros.bags.bag_files import (
    MCAP,
    METADATA,
    PACKED,
    SQLITE,
    damaged,
    files_of,
    storage_of,
    why_unclosed,
)
from adahi_ros.bags.definitions import VERSION, BagError, check_cdr, in_words
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.files import read_bytes
from adahi_ros.core.yaml_files import parse_yaml

Message = tuple[Connection, int, bytes]
"""A stored message: its topic, its time in ns, its bytes as CDR."""

SCANS = {MCAP: mcap_scan.scan, SQLITE: sqlite_scan.scan}
CDR = "cdr"
PACKED_MESSAGE = b"\x28\xb5\x2f\xfd"  # header of zstd data


def whole_messages(file: Path, faults: list[str], others: Counter[str] | None = None) -> Iterator[Message]:
    """Yield the messages of a file up to its first fault, in the order of the file.

    Args:
        file: of a bag.
        faults: gets the fault.
        others: gets the number of messages that are not CDR, such as JSON, by topic.
    """
    others = Counter() if others is None else others
    try:
        with _unpacked(file) as plain:
            for connection, time_ns, data in SCANS[storage_of(file)](plain):
                if _serialization(connection) != CDR:
                    others[connection.topic] += 1
                    continue
                if data.startswith(PACKED_MESSAGE):
                    data = unpacked(data)
                check_cdr(data)
                yield connection, time_ns, data
    except Exception as error:  # noqa: BLE001 (the libraries raise many kinds of errors for invalid data)
        faults.append(f"{file.name}: {in_words(error)}")


def _serialization(connection: Connection) -> str:
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    return connection.ext.serialization_format


@contextmanager
def _unpacked(file: Path) -> Iterator[Path]:
    """Yield the file; for a file that is compressed as a whole, a copy of the unpackable part."""
    if file.suffix != PACKED:
        yield file
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, file.stem)
        # The reader of the copy reports the missing part.
        with suppress(EOFError, zstd.ZstdError), zstd.open(file) as packed, copy.open("wb") as plain:
            copy_unpacked(packed, plain, file.stat().st_size)
        yield copy


class PartialBag:
    """The messages of a bag, of each file up to its first fault. Reads all of them once on construction.

    Has the interface of `Reader` for readers: `connections` and `messages`.

    Args:
        path: folder of the bag, or a single file.

    Attributes:
        connections: topics that have messages.
        loss: why the bag is damaged, how much of it is read, and how much is lost, if known; empty for a
            closed and complete bag.

    Raises:
        BagError: there is no such bag, or no message in it can be read.
    """

    def __init__(self, path: Path) -> None:
        self._faults: list[str] = []
        self._connections: dict[tuple[str, str], Connection] = {}
        metadata = read_metadata(path)
        self._parts = [self._survey(file) for file in self._files(path, metadata)]
        count = sum(part.count for part in self._parts)
        if not count:
            raise BagError(
                f"{path}: no message in it can be read ({'; '.join(self._faults) or 'it has none'})"
            )
        self.connections = list(self._connections.values())
        self.loss = ""
        if faults := self._faults or _refusal(path, metadata):
            read_s = sum(part.duration_s for part in self._parts)
            lost = "unknown"
            if metadata is not None:
                messages, seconds = max(0, metadata.messages - count), max(0.0, metadata.duration_s - read_s)
                lost = f"{messages} messages, {seconds:.1f} s"
            read = f"read: {count} messages, {read_s:.1f} s"
            self.loss = f"{path}: cut off or damaged: {'; '.join(faults)}; {read}; left out: {lost}"

    def messages(self, connections: Collection[Connection]) -> Iterator[Message]:
        """Yield the messages of these topics, file by file, in the order of their times."""
        wanted = {(each.topic, each.msgtype) for each in connections}
        for part in self._parts:
            for message in in_time(islice(whole_messages(part.file, []), part.count), part.behind_ns):
                if (message[0].topic, message[0].msgtype) in wanted:
                    yield message

    def _files(self, path: Path, metadata: _Metadata | None) -> list[Path]:
        """Return the files to read: those in the metadata, or all of them without metadata."""
        files = files_of(path)
        if path.is_dir() and metadata is None:
            self._faults.append("no metadata.yaml that can be read")
        if metadata is None:
            return files
        there = {file.name.removesuffix(PACKED): file for file in files}
        named = [name.removesuffix(PACKED) for name in metadata.files]
        self._faults += [f"{name}: missing" for name in named if name not in there]
        self._faults += [f"{name}: {METADATA} does not name it" for name in there if name not in named]
        return [there[name] for name in named if name in there]

    def _survey(self, file: Path) -> _SoundPart:
        count, oldest, newest, behind_ns = 0, 0, 0, 0
        for connection, time_ns, _ in whole_messages(file, self._faults):
            self._connections.setdefault((connection.topic, connection.msgtype), connection)
            oldest = min(oldest, time_ns) if count else time_ns
            newest = max(newest, time_ns) if count else time_ns
            behind_ns = max(behind_ns, newest - time_ns)
            count += 1
        return _SoundPart(file, count, (newest - oldest) / NANOSECONDS, behind_ns)


@dataclass(frozen=True)
class _SoundPart:
    """A file of a bag, up to its first fault: no message is over `behind_ns` behind an earlier one."""

    file: Path
    count: int
    duration_s: float
    behind_ns: int


@dataclass(frozen=True)
class _Metadata:
    """The metadata of a bag.

    Attributes:
        files: names.
        messages: in all files.
        duration_s: of all files.
        odd: the library refuses or misreads them, though every message may be there: no storage is named, as
            after a `ros2 bag reindex`; they are of a newer ROS; a topic is not CDR; a type is defined twice.
    """

    files: list[str]
    messages: int
    duration_s: float
    odd: bool


def read_metadata(path: Path) -> _Metadata | None:
    """Return the metadata of a bag; None where they cannot be read."""
    try:
        values = parse_yaml(read_bytes(path / METADATA))["rosbag2_bagfile_information"]
        return _Metadata(
            [PurePath(name).name for name in values["relative_file_paths"]],
            int(values["message_count"]),
            int(values["duration"]["nanoseconds"]) / NANOSECONDS,
            _is_odd(values),
        )
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _is_odd(values: dict[str, Any]) -> bool:
    topics = [each["topic_metadata"] for each in values["topics_with_message_count"]]
    definitions = {(each["type"], each.get("type_description_hash", "")) for each in topics}
    return (
        not values["storage_identifier"]
        or values["version"] > VERSION
        or any(each["serialization_format"] != CDR for each in topics)
        or len(definitions) > len({kind for kind, _ in definitions})
    )


def _refusal(path: Path, metadata: _Metadata | None) -> list[str]:
    """Return why a bag cannot be opened, although all of its messages are readable."""
    if why := why_unclosed(path):
        return [why]
    if metadata is not None and metadata.odd:
        return []
    try:
        with Reader(path):
            return []
    except Exception as error:  # noqa: BLE001 (as above)
        return [f"{damaged(path)}cannot be opened ({in_words(error)})"]


def in_time(messages: Iterable[Message], behind_ns: int) -> Iterator[Message]:
    """Yield messages by time; equal times in order of arrival.

    Args:
        messages: to sort.
        behind_ns: largest age of a message relative to any before it.
    """
    held: list[tuple[int, int, Message]] = []
    newest_ns = -1
    for number, message in enumerate(messages):
        newest_ns = max(newest_ns, message[1])
        heappush(held, (message[1], number, message))
        while held and held[0][0] <= newest_ns - behind_ns:
            yield heappop(held)[2]
    while held:
        yield heappop(held)[2]
