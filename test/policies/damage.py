"""Ways to damage a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_in(path: Path, change: Callable[[Any], object]) -> None:
    """Change what a file of JSON holds, in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def resize(path: Path, **changes: Any) -> None:
    edit(path, config=json.loads(path.read_text())["config"] | changes)


def change(path: Path, tensor: str, value: float | None) -> None:
    """Put a number into a tensor, or take it out."""
    tensors = load_file(path)
    if value is None:
        del tensors[tensor]
    else:
        tensors[tensor].flat[0] = value
    save_file(tensors, path)
