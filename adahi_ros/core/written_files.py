# SPDX-License-Identifier: Apache-2.0
"""Writes files atomically, and locks folders."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

WORKING = ".working"  # suffix of the file that the process of a folder locks
LONGEST_NOTE = 200


def save_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON file atomically."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(value, indent=2) + "\n")


def check_writable(path: Path) -> None:
    """Check that a file, with its folder, can be written later; leave nothing behind.

    Raises:
        OSError: it cannot.
    """
    path = path.resolve()
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch()
            path.unlink()
        elif path.is_file() or path.is_dir():  # a check would end a pipe's reader
            path.open("ab").close()
    finally:
        with suppress(OSError):  # another process uses them by now
            for folder in missing:
                folder.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against all other threads and processes of this machine that use this function."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)  # unlocks it


@contextmanager
def working_in(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder for one process at a time, until the process ends in any way.

    Args:
        folder: to hold; need not exist.
        what: the purpose, for the message to a second process.

    Raises:
        RuntimeError: another process holds it.
    """
    beside = folder.resolve()  # not inside: a training replaces its folder
    beside.parent.mkdir(parents=True, exist_ok=True)
    path = beside.with_name(f".{beside.name}{WORKING}")
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a process never excludes itself
            if not path.exists() or os.fstat(opened).st_ino != path.stat().st_ino:
                raise BlockingIOError  # the previous one has just ended, and another may have started
        except (BlockingIOError, PermissionError):
            other = os.read(opened, LONGEST_NOTE).decode(errors="replace").strip()
            raise RuntimeError(
                f"{folder}: another process works in this folder ({other or 'unknown'}); wait until it ends, "
                "or name another folder"
            ) from None
        os.ftruncate(opened, 0)
        os.write(opened, f"{what}, process {os.getpid()}".encode()[:LONGEST_NOTE])
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(opened)  # unlocks it


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write, which is then moved to a path: there is never a partial file.

    If writing fails, the path is unchanged.
    """
    path = path.resolve()  # a link stays a link: its target is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.touch()
        usual = partial.stat().st_mode
        partial.unlink()
        yield partial
        partial.chmod(usual)  # safetensors writes files that only their owner may read
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
