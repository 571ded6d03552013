"""Files that are nearly right: YAML, JSON and XML with a few entries replaced, and text that is torn."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import yaml

from .values import Garbage

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in pairwise("abcdefghi")
)
RANDOM = (
    *("", "[", "{", "- - -", "\t", "%", "&a [*a]", "a: b: c", "? [a]\n: b", "!!float ''", "!!int ''"),
    *("!!bool maybe", "!!timestamp never", "2001-99-99", "!!python/object/apply:os.getcwd []", "<<: 5"),
    *("1:60:1e9", "{" * 3000, "[" * 3000, "0x", "=", "!!binary '*'", "!!set [a]", "!!omap 5", "--- a"),
    *(
        "\ufeff",
        "\x85",
        "'",
        '"\\x',
        "key: |\n",
        "null",
        "12",
        "{1: 2, [3]: 4}",
        "~: ~",
        BOMB,
        "a: &a {b: *a}",
    ),
)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place in a tree, as a container and the key or index in it."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    found = []
    for key in keys:
        found.append((tree, key))
        found += places(tree[key])
    return found


def mutated(tree: Any, garbage: Garbage) -> Any:
    """Return a tree with up to three places changed."""
    tree = copy.deepcopy(tree)
    for _ in range(garbage.pick((1, 1, 1, 2, 3))):
        found = places(tree)
        if not found:
            return garbage.leaf()
        container, key = garbage.pick(found)
        other, other_key = garbage.pick(found)
        how = garbage.count(0, 6)
        if how <= 2:
            container[key] = garbage.leaf()
        elif how == 3:
            container[key] = copy.deepcopy(other[other_key])
        elif how == 4:
            container.pop(key)
        elif isinstance(container, list):
            container.insert(key, garbage.leaf())
        else:
            container[garbage.text()] = container.pop(key) if how == 5 else garbage.leaf()
    return tree


def as_yaml(tree: Any, garbage: Garbage) -> bytes:
    """Return a file that is nearly the tree's; now and then it is torn, or nothing like it."""
    if garbage.chance(0.1):
        return garbage.pick(RANDOM).encode()
    text = yaml.safe_dump(mutated(tree, garbage), sort_keys=False, allow_unicode=True).encode()
    if garbage.chance(0.05):
        return text.replace(b": ", b": " + garbage.pick(RANDOM[:30]).encode() + b" ", garbage.count(1, 3))
    return garbage.damaged(text) if garbage.chance(0.15) else text


def as_json(tree: Any, garbage: Garbage) -> bytes:
    """Likewise in JSON, with its NaN and Infinity."""
    if garbage.chance(0.1):
        return garbage.pick((*RANDOM, "[" * 100_000, '{"format": 1' + "0" * 5000 + "}")).encode()
    text = json.dumps(mutated(tree, garbage)).encode()
    return garbage.damaged(text) if garbage.chance(0.15) else text


def as_xml(text: str, garbage: Garbage) -> bytes:
    """Likewise in XML, with attributes and elements changed."""
    root = ElementTree.fromstring(text)
    for _ in range(garbage.count(1, 3)):
        parent = garbage.pick(list(root.iter()))
        how = garbage.count(0, 3)
        if how <= 1 and parent.attrib:
            value = garbage.pick((str(garbage.float()), garbage.text()))
            parent.set(garbage.pick(sorted(parent.attrib)), _printable(value))
        elif how == 2 and len(parent):
            parent.remove(garbage.pick(list(parent)))
        else:
            parent.append(copy.deepcopy(garbage.pick([each for each in root.iter() if each is not root])))
    data = ElementTree.tostring(root)
    return garbage.damaged(data) if garbage.chance(0.2) else data


def _printable(text: str) -> str:
    return "".join(letter for letter in text[:1000] if letter.isprintable())
