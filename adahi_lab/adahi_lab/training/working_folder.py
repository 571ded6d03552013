# SPDX-License-Identifier: Apache-2.0
"""Holds a folder for one process at a time, and locks folders."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORKING = ".working"  # suffix of the file that the process of a folder locks

LONGEST_NOTE = 200


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
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against all other threads and processes of this machine that use this function."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)  # unlocks it
