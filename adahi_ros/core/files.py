# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted files up to a size."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

LARGEST_TEXT = 1 << 22  # of a JSON file or a URDF, bytes
LARGEST_WEIGHTS = 1 << 31  # of a network; ONNX has no larger ones either
LARGEST_RECORDING = 1 << 34
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LARGEST_POINTER = 1024  # bytes


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
    if len(LFS_POINTER) < state.st_size < LARGEST_POINTER and stat.S_ISREG(state.st_mode):
        with path.open("rb") as file:
            if file.read(len(LFS_POINTER)) == LFS_POINTER:
                raise ValueError("a Git LFS pointer, must be the file itself: run 'git lfs pull' there")


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
