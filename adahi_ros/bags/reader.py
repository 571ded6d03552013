"""Messages of a bag in the order of their coming: sqlite3 or mcap, compressed or not, sound or damaged."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.serde import SerdeError

from adahi_ros.bags.definitions import BagError, carried_types, how_to_recover, types_of
from adahi_ros.bags.topics import NO_TOPICS, Kinds, absolute

MCAP, SQLITE = ".mcap", ".db3"
BAG_FILES = (MCAP, SQLITE)
JOURNALS = ("-journal", "-wal")  # of a database that is, or was, being written
LITTLE_ENDIAN, BIG_ENDIAN, CDR_HEADER_BYTES = b"\0\1", b"\0\0", 4
Decode = Callable[[bytes], Any]


@dataclass(frozen=True)
class Received:
    """One message of a bag.

    Attributes:
        topic: as the contract names it.
        message: has the attributes of rclpy's.
        received_ns: when the recorder got it.
    """

    topic: str
    message: Any
    received_ns: int


def is_bag(path: Path) -> bool:
    """Whether this looks like a bag, closed or not: its folder, or a single file of one."""
    return (path / "metadata.yaml").is_file() or any(_files(path))


def _files(path: Path) -> list[Path]:
    there = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in there if file.is_file() and file.suffix in BAG_FILES]


def files_of(path: Path) -> list[Path]:
    """Return the files of a bag that have its messages, in the order of their names.

    Raises:
        BagError: there is no such bag, or it is none.
    """
    if not path.exists():
        raise BagError(f"{path}: no such bag")
    files = _files(path)
    if not files:
        raise BagError(f"{path}: expected the folder of a bag, or a file {' or '.join(BAG_FILES)}")
    return files


def read_bag(
    path: Path, topics: Kinds, optional: Kinds = NO_TOPICS, namespace: str = ""
) -> Iterator[Received]:
    """Yield the messages of a bag, as they came.

    Args:
        path: folder of the bag, or a single .mcap or .db3 file.
        topics: that must be there and have messages.
        optional: that may be absent.
        namespace: of the robot; topics that begin with a slash are not in it.

    Raises:
        BagError: there is no bag, it is damaged, or not of these topics and types; a damaged one may yield
            messages before.
    """
    kinds = {absolute(topic, namespace): (topic, kind) for topic, kind in {**optional, **topics}.items()}
    came: Counter[str] = Counter()
    with _faults_of(path), Reader(_existing(path)) as reader:
        needed = {absolute(topic, namespace) for topic in topics}
        connections = _chosen(path, reader.connections, kinds, needed)
        decoders = {connection.msgtype: _decoder(path, connection) for connection in connections}
        for connection, received_ns, data in reader.messages(connections) if connections else ():
            topic, kind = kinds[connection.topic]
            try:
                message = decoders[kind](data)
            except (SerdeError, ValueError, struct.error) as error:
                raise BagError(
                    f"{path}: {connection.topic}: message {came[topic]}, "
                    f"expected a {kind} ({in_words(error)})"
                ) from None
            came[topic] += 1
            yield Received(topic, message, received_ns)
    for topic in topics:
        if not came[topic]:
            raise BagError(f"{path}: {absolute(topic, namespace)}: no messages, expected at least one")


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Name the bag in whatever the library makes of a damaged one."""
    try:
        yield
    except BagError:
        raise
    except Exception as error:  # noqa: BLE001 (of garbage the library raises this and that)
        raise BagError(
            f"{path}: expected a rosbag2, sqlite3 or mcap ({in_words(error)}); {how_to_recover(path)}"
        ) from None


def _existing(path: Path) -> Path:
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        hint = (
            f": it was not closed; {how_to_recover(path)}"
            if _files(path)
            else ", expected the folder of a bag"
        )
        raise BagError(f"{path}: no metadata.yaml{hint}")
    for file in _files(path) if path.is_dir() else files_of(path):
        for journal in JOURNALS:
            beside = file.with_name(file.name + journal)
            if beside.exists() and beside.stat().st_size:
                raise BagError(
                    f"{path}: {beside.name} is beside it: it was not closed; {how_to_recover(path)}"
                )
    return path


def _chosen(
    path: Path, connections: Collection[Connection], kinds: Mapping[str, tuple[str, str]], needed: set[str]
) -> list[Connection]:
    """Return the connections of the wanted topics, once these are known to be of the right types."""
    there = {connection.topic for connection in connections}
    for name in sorted(needed - there):
        raise BagError(
            f"{path}: {name}: no such topic, expected {kinds[name][1]}; {_hint(name, sorted(there))}"
        )
    chosen = [connection for connection in connections if connection.topic in kinds]
    for connection in chosen:
        kind = kinds[connection.topic][1]
        if connection.msgtype != kind:
            raise BagError(f"{path}: {connection.topic}: of type {connection.msgtype}, expected {kind}")
    return chosen


def _hint(name: str, there: list[str]) -> str:
    alike = [topic for topic in there if topic.endswith(name)]
    if alike:
        return f"there is {alike[0]}: is the namespace {alike[0].removesuffix(name)}?"
    return f"there are {', '.join(there)}" if there else "the bag has no topics"


def _decoder(path: Path, connection: Connection) -> Decode:
    """Return what makes messages of bytes, by the bag's own definition of them if it has one."""
    kind = connection.msgtype
    if connection.msgdef.format != MessageDefinitionFormat.NONE:
        store = carried_types(kind, connection.msgdef)
    else:
        try:
            store = types_of([kind])
        except BagError as error:
            raise BagError(f"{path}: {connection.topic}: {error}") from None
        if connection.digest and connection.digest != store.hash_rihs01(kind):
            raise BagError(
                f"{path}: {connection.topic}: of another version of {kind}, and the bag does not define it; "
                f"expected {store.hash_rihs01(kind)}"
            )
    definition = store.get_msgdef(kind)
    by_order = {LITTLE_ENDIAN: definition.deserialize_cdr_le, BIG_ENDIAN: definition.deserialize_cdr_be}

    def decode(data: bytes) -> Any:
        # Not `deserialize_cdr`, which refuses what follows the last field: rclpy's serialized messages are as
        # long as they might have become, and end in a few bytes of anything.
        check_cdr(data)
        body = data[CDR_HEADER_BYTES:]
        message, end = by_order[data[:2]](body, 0, definition.cls, store)
        if end > len(body):
            raise SerdeError(f"{len(body)} bytes, must be at least {end}")
        return message

    return decode


def check_cdr(data: bytes) -> None:
    """Refuse what is no serialized message, such as a compressed one.

    Raises:
        SerdeError: names its first bytes.
    """
    if data[:2] not in (LITTLE_ENDIAN, BIG_ENDIAN):
        raise SerdeError(f"a message begins with {data[:2].hex()}, which is not CDR")


def in_words(error: Exception) -> str:
    """Return what the library says, in one line of bearable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
