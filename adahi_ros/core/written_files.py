# SPDX-License-Identifier: Apache-2.0
"""Writes files atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def save_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON file atomically."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(value, indent=2) + "\n")


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
