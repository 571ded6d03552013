# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted YAML: plain data of limited size, or an error with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from adahi_ros.core.files import read_bytes

LARGEST = 1 << 18  # bytes; PyYAML takes seconds for them
MOST_ENTRIES = 100_000  # with aliases and merge keys written out: a few lines of them can make billions
LONGEST_NUMBER = 1000  # characters; the time for some forms grows with the square of that
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """Reads angles as xacro does: `!degrees 90` is 1.5708."""


def _angle(loader: yaml.SafeLoader, node: ScalarNode) -> float:
    try:
        number = float(loader.construct_yaml_float(node))
    except ValueError:
        fault = f"{node.value!r}, must be a number"
        raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from None
    return math.radians(number) if node.tag == "!degrees" else number


for tag in ("!degrees", "!radians"):
    _Loader.add_constructor(tag, _angle)


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file; see `parse_yaml`.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is not YAML, or too large or too deep; does not name the file.
    """
    return parse_yaml(read_bytes(path, LARGEST))


def parse_yaml(content: str | bytes) -> Any:
    """Return the content of a YAML text.

    Its integers may be too large for a float.

    Raises:
        ValueError: it is not YAML, or too large or too deep.
    """
    try:
        loader = _Loader(content)
        node = loader.get_single_node()
        if node is None:
            return None
        entries = _entries(node, {})  # counted before they are created
        if entries > MOST_ENTRIES:
            raise ValueError(f"{entries} entries with aliases written out, must be {MOST_ENTRIES} at most")
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("not YAML of a file: nested too deeply") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
    ) as error:  # PyYAML's, of tags that do not fit their values
        raise ValueError(f"not YAML: {type(error).__name__}, a tag does not fit its value") from None


def _entries(node: Node, counted: dict[int, int | None]) -> int:
    """Count entries; each container once, even with several names.

    Raises:
        ValueError: an entry is recursive, too long, or repeated.
    """
    if id(node) not in counted:
        counted[id(node)] = None
        counted[id(node)] = 1 + sum(_entries(part, counted) for part in _parts(node))
    entries = counted[id(node)]
    if entries is None:
        raise ValueError("an alias names what it is in, must name what is before it")
    return entries


def _parts(node: Node) -> Iterable[Node]:
    if isinstance(node, MappingNode):
        _check_keys(node)
        return [part for pair in node.value for part in pair]
    if isinstance(node, SequenceNode):
        return node.value
    if node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(node.value)} characters, must be {LONGEST_NUMBER} at most")
    return ()


def _check_keys(node: MappingNode) -> None:
    """Refuse a duplicate key: readers see the first, the loader takes the last."""
    found: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, ScalarNode) and (key.tag, key.value) in found:
            raise ValueError(f"{key.value[:100]!r}: there twice in a mapping, must be once")
        if isinstance(key, ScalarNode):
            found.add((key.tag, key.value))
