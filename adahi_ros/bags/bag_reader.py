# SPDX-License-Identifier: Apache-2.0
"""Reads a bag's messages in order of arrival: sqlite3 or mcap, compressed or not, complete or damaged."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection, MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.serde import SerdeError

from adahi_ros.bags.bag_files import closed, damaged
from adahi_ros.bags.definitions import (
    BIG_ENDIAN,
    LITTLE_ENDIAN,
    BagError,
    carried_types,
    check_cdr,
    how_to_read,
    in_words,
    types_of,
)
from adahi_ros.bags.partial_bag import PartialBag, read_metadata
from adahi_ros.bags.recorded_topics import ASSIGNMENTS, NO_TOPICS, Kinds, absolute

CDR_HEADER_BYTES = 4
Decode = Callable[[bytes], Any]
OnLoss = Callable[[str], None]
"""Called for a bag that was cut off, with the reason and the readable amount."""


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


def read_bag(
    path: Path,
    topics: Kinds,
    optional: Kinds = NO_TOPICS,
    namespace: str = "",
    on_loss: OnLoss | None = None,
) -> Iterator[Received]:
    """Yield the messages of a bag, in order of arrival. The topic of `ASSIGNMENTS` may have any name.

    Args:
        path: folder of the bag, or a single .mcap or .db3 file.
        topics: required, with messages.
        optional: may be absent.
        namespace: of the robot; topics with a leading slash are outside of it.
        on_loss: if given, the readable part of a damaged or cut-off bag is read, and this is called with
            the reason before the first message. Without it, damaged bags are refused.

    Raises:
        BagError: there is no bag, it is damaged, or lacks these topics or types; a damaged one may yield
            messages first.
    """
    kinds = {absolute(topic, namespace): (topic, kind) for topic, kind in {**optional, **topics}.items()}
    came: Counter[str] = Counter()
    with _faults_of(path), _opened(path, on_loss) as reader:
        needed = {absolute(topic, namespace) for topic in topics if topic not in ASSIGNMENTS}
        for topic, kind in ASSIGNMENTS.items() & {**optional, **topics}.items():
            kinds |= {each.topic: (topic, kind) for each in reader.connections if each.msgtype == kind}
        connections = _chosen(path, reader.connections, kinds, needed)
        decoders = {_definition(connection): _decoder(path, connection) for connection in connections}
        for connection, received_ns, data in reader.messages(connections) if connections else ():
            topic, kind = kinds[connection.topic]
            try:
                message = decoders[_definition(connection)](data)
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


def topics_in(path: Path, on_loss: OnLoss | None = None) -> dict[str, str]:
    """Return the topics of a bag, with their types; for arguments and errors see `read_bag`."""
    with _faults_of(path), _opened(path, on_loss) as reader:
        return {each.topic: each.msgtype for each in reader.connections}


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Name the bag, and its file, in any error of the library for a damaged bag."""
    try:
        yield
    except BagError:
        raise
    except Exception as error:  # noqa: BLE001 (the library raises many kinds of errors for invalid data)
        raise BagError(
            f"{path}: {damaged(path)}expected a rosbag2, sqlite3 or mcap ({in_words(error)}); "
            f"{how_to_read(path)}"
        ) from None


@contextmanager
def _opened(path: Path, on_loss: OnLoss | None) -> Iterator[Reader | PartialBag]:
    metadata = read_metadata(path)
    if on_loss is None and (metadata is None or not metadata.odd):
        with Reader(closed(path)) as reader:
            yield reader
        return
    remains = PartialBag(path)
    if remains.loss:
        if on_loss is None:
            raise BagError(f"{remains.loss}; {how_to_read(path)}")
        on_loss(remains.loss)
    yield remains


def _chosen(
    path: Path, connections: Collection[Connection], kinds: Mapping[str, tuple[str, str]], needed: set[str]
) -> list[Connection]:
    """Return the connections of the wanted topics, after a check of their types."""
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


def _definition(connection: Connection) -> tuple[str, MessageDefinition, str]:
    """Return what tells the types of two topics apart: one file may define a type twice."""
    return connection.msgtype, connection.msgdef, connection.digest


def _decoder(path: Path, connection: Connection) -> Decode:
    """Return the deserializer of messages, with the bag's own definition if it has one."""
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
        # Not `deserialize_cdr`, which refuses bytes after the last field: rclpy's serialized messages are
        # padded to their largest size with arbitrary bytes.
        check_cdr(data)
        body = data[CDR_HEADER_BYTES:]
        message, end = by_order[data[:2]](body, 0, definition.cls, store)
        if end > len(body):
            raise SerdeError(f"{len(body)} bytes, must be at least {end}")
        return message

    return decode
