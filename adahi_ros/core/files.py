# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted files up to a size, and writes files atomically."""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LARGEST_TEXT = 1 << 22  # of a JSON file or a URDF, bytes
LARGEST_WEIGHTS = 1 << 31  # of a network; ONNX has no larger ones either
LARGEST_RECORDING = 1 << 34
WORKING = ".working"  # suffix of the file that the process of a folder locks
LONGEST_NOTE = 200


def check_size(path: Path, most: int) -> None:
    """Refuse a file before it is read.

    Raises:
        OSError: there is none, or it is not accessible.
        ValueError: it is larger than `most` bytes, or not a regular file; does not name it.
    """
    state = path.stat()
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):  # a folder, reading names
        raise ValueError("a device, pipe or socket, must be a file")
    if state.st_size > most and stat.S_ISREG(state.st_mode):
        raise ValueError(f"{state.st_size} bytes, must be at most {most}")


def read_bytes(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """Return the content of a file; raises as `check_size` does."""
    check_size(path, most)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:  # it grew, or its size is unknown
        raise ValueError(f"more than {most} bytes, must be at most that")
    return content


def parse_json(content: str | bytes) -> Any:
    """Return the content of a JSON file: plain data, every number finite and every key once.

    Raises:
        ValueError: it is no such JSON; does not name the file.
    """
    try:
        return json.loads(content, object_pairs_hook=_of_pairs, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it cannot be read, is not JSON, or no mapping; names the file.
    """
    try:
        value = parse_json(read_bytes(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: must be a mapping")
    return value


def _of_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r}: there twice, must be one key")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]}: must be finite")
    return number


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
