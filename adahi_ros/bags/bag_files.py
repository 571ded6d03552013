# SPDX-License-Identifier: Apache-2.0
"""A bag's files, and whether it was closed."""

from __future__ import annotations

import re
from pathlib import Path

from rosbags.rosbag2 import Reader

from adahi_ros.bags.bag_bounds import bind_library
from adahi_ros.bags.definitions import BagError, how_to_read

bind_library()  # all code that opens a bag by the library imports this module

METADATA = "metadata.yaml"
MCAP, SQLITE = ".mcap", ".db3"
STORED_IN = (MCAP, SQLITE)
PACKED = ".zstd"  # suffix of a file that is compressed as a whole
JOURNALS = ("-journal", "-wal")  # of a database that is, or was, being written


def is_bag(path: Path) -> bool:
    """Whether this looks like a bag, closed or not: its folder, or a single file."""
    return (path / METADATA).is_file() or any(bag_files(path))


def bags_in(path: Path) -> list[Path]:
    """Return the bags in a folder of bags, in the order of their numbers; else the path itself."""
    inside = sorted(path.iterdir(), key=_by_number) if path.is_dir() and not is_bag(path) else []
    return [each for each in inside if each.is_dir() and is_bag(each)] or [path]


def bag_files(path: Path) -> list[Path]:
    """Return the files with a bag's messages, in the recorder's order; none where it is no bag.

    A file that was being compressed exists twice; the uncompressed one is returned.
    """
    there = sorted(path.iterdir(), key=_by_number) if path.is_dir() else [path]
    found = [each for each in there if each.is_file() and storage_of(each) in STORED_IN]
    names = {each.name for each in found}
    return [each for each in found if each.suffix != PACKED or each.stem not in names]


def _by_number(file: Path) -> list[str | int]:
    parts = re.split(r"(\d+)", file.name)
    return [int(part) if row % 2 else part for row, part in enumerate(parts)]


def storage_of(file: Path) -> str:
    """Return the suffix of a bag's file; of a compressed one, the suffix before compression."""
    return Path(file.name.removesuffix(PACKED)).suffix


def files_of(path: Path) -> list[Path]:
    """Return the files with a bag's messages; see `bag_files`.

    Raises:
        BagError: there is no such bag, or it is no bag.
    """
    if not path.exists():
        raise BagError(f"{path}: no such bag")
    files = bag_files(path)
    if not files:
        raise BagError(f"{path}: expected the folder of a bag, or a file {' or '.join(STORED_IN)}")
    return files


def journals_of(file: Path) -> list[Path]:
    """Return the file that SQLite has left beside a database that was not closed."""
    beside = (file.with_name(file.name + journal) for journal in JOURNALS)
    return [each for each in beside if each.exists() and each.stat().st_size]


def why_unclosed(path: Path) -> str:
    """Return the reason why a bag counts as not closed; empty for a closed one, or for no bag."""
    if path.is_dir() and not (path / METADATA).is_file():
        return "no metadata.yaml: it was not closed" if bag_files(path) else ""
    beside = next((each for file in bag_files(path) for each in journals_of(file)), None)
    return f"{beside.name} is beside it: it was not closed" if beside is not None else ""


def closed(path: Path) -> Path:
    """Return a bag that was closed.

    Raises:
        BagError: it was not, or there is none; names a way to read it.
    """
    if why := why_unclosed(path):
        raise BagError(f"{path}: {why}; {how_to_read(path)}")
    if not path.is_dir():
        files_of(path)
    elif not (path / METADATA).is_file():
        raise BagError(f"{path}: no metadata.yaml, expected the folder of a bag")
    return path


def damaged(path: Path) -> str:
    """Return the first file of a bag's folder that cannot be opened, or the only one; else nothing."""
    files = bag_files(path) if path.is_dir() else []
    found = files if len(files) == 1 else (file for file in files if not _opens(file))
    return next((f"{file.name}: " for file in found), "")


def _opens(file: Path) -> bool:
    try:
        with Reader(file):
            return True
    except Exception:  # noqa: BLE001 (the library raises many kinds of errors for invalid data)
        return False
