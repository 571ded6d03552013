# SPDX-License-Identifier: Apache-2.0
"""Definitions of message types: ROS 2 Jazzy's, those of installed packages, and those in a bag."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat, Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from adahi_ros.core.assets import asset

VERSION: Final = 9  # of rosbag2's metadata in Jazzy
IDL_SEPARATOR = "=" * 80 + "\nIDL: "
LITTLE_ENDIAN, BIG_ENDIAN = b"\0\1", b"\0\0"  # header of a message in CDR


class BagError(ValueError):
    """A bag that cannot be used; names the file, the topic and what was expected."""


def types_of(kinds: Iterable[str]) -> Typestore:
    """Return the types of ROS 2 Jazzy, and of these kinds those that it lacks.

    Args:
        kinds: such as adahi_msgs/msg/TaskState.

    Raises:
        BagError: the definition of one is not found.
    """
    store = get_typestore(Stores.ROS2_JAZZY)
    missing = [kind for kind in kinds if kind not in store.fielddefs]
    found: dict[str, Any] = {}
    while missing:
        package = missing[0].split("/")[0]
        found |= _of_package(package)
        if missing[0] not in found:
            raise BagError(
                f"{missing[0]}: unknown; expected {package} to be installed and sourced (AMENT_PREFIX_PATH)"
            )
        needed = {*missing, *(name for _, fields in found.values() for name in _references(fields))}
        missing = sorted(needed - found.keys() - store.fielddefs.keys())
    store.register({kind: each for kind, each in found.items() if kind not in store.fielddefs})
    return store


def how_to_recover(path: Path) -> str:
    """Return how to read a bag that was not closed, or is damaged."""
    return f"'adahi bag repair {path} --out NEW' writes a complete bag from its readable part"


def how_to_read(path: Path) -> str:
    """Return what a verb that reads bags can do with a damaged one."""
    return (
        "give --incomplete to read its complete part, or write that part to a new bag: "
        f"'adahi bag repair {path} --out NEW'"
    )


def check_cdr(data: bytes) -> None:
    """Refuse a message that is not serialized as CDR.

    Raises:
        SerdeError: names its first bytes.
    """
    if data[:2] not in (LITTLE_ENDIAN, BIG_ENDIAN):
        raise SerdeError(f"a message begins with {data[:2].hex()}, which is not CDR")


def in_words(error: Exception) -> str:
    """Return a library's error in one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


@lru_cache(maxsize=64)
def carried_types(kind: str, definition: MessageDefinition) -> Typestore:
    """Return the types that a bag defines for one kind of message."""
    text = definition.data
    if definition.format == MessageDefinitionFormat.MSG:
        types = get_types_from_msg(text, kind)
    else:
        types = {}
        for part in text.removeprefix(IDL_SEPARATOR).split(IDL_SEPARATOR):
            types |= get_types_from_idl(part.partition("\n")[2] if text.startswith(IDL_SEPARATOR) else part)
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    return store


def _of_package(package: str) -> dict[str, Any]:
    types: dict[str, Any] = {}
    folder = next(_folders(package), None)
    for file in sorted(folder.glob("*.msg")) if folder is not None else ():
        types |= get_types_from_msg(file.read_text(), f"{package}/msg/{file.stem}")
    return types


def _folders(package: str) -> Iterator[Path]:
    """Yield folders with the definitions of a package: installed in ROS, or shipped for our own packages."""
    prefixes = [
        Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
    ]
    for prefix in prefixes:
        if (prefix / "share" / package / "msg").is_dir():
            yield prefix / "share" / package / "msg"
    if package == "adahi_msgs":
        yield asset("adahi_msgs/msg")


def _references(fields: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield the types of fields, except the basic ones."""
    for _, (node, of) in fields:
        element, name = of[0] if node in (Nodetype.ARRAY, Nodetype.SEQUENCE) else (node, of)
        if element == Nodetype.NAME:
            yield name
