# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files of networks: weights as safetensors, everything else as JSON beside them. No pickle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

from adahi_ros.core.files import LARGEST_WEIGHTS, check_size, read_json
from adahi_ros.core.texts import abridged

FORMAT = 1
LARGEST_SIZE = 2**31
T = TypeVar("T")
Shapes = dict[str, tuple[int, ...]]
# What a reader raises of a file that is none, or has tensors that numpy or torch cannot hold.
UNREADABLE = (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another tokenizer. The message says which and why.

    So much of it as bears reading: it may hold whatever a file says.
    """

    def __init__(self, message: str) -> None:
        super().__init__(abridged(message))


def kind_of(path: Path) -> str | None:
    """Return of which kind the checkpoint at `DIRECTORY/NAME` says that it is; None where it says nothing.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    kind = read_description(_description_file(path)).get("kind")
    return kind if isinstance(kind, str) else None


def description_of_kind(path: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    """Return the description of a checkpoint at `DIRECTORY/NAME`, with or without suffix, and its file.

    Raises:
        CheckpointError: it is missing, damaged, or of another kind.
    """
    file = _description_file(path)
    meta = read_description(file)
    if meta.get("kind") != kind:
        raise CheckpointError(f"{file}: kind: {meta.get('kind')!r}, must be {kind!r}")
    return file, meta


def _description_file(path: Path) -> Path:
    return path if path.suffix == ".json" else path.with_name(path.name + ".json")


def read_description(path: Path) -> dict[str, Any]:
    """Return the description of a checkpoint; raises CheckpointError where it is none."""
    try:
        value = read_json(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    if value.get("format") != FORMAT:
        raise CheckpointError(f"{path}: format: must be {FORMAT}")
    return value


def read_safetensors(path: Path, read: Callable[[Path], T]) -> T:
    """Return what `read` makes of a safetensors file.

    Raises:
        CheckpointError: there is no such file, it is none, or too large.
    """
    try:
        check_size(path, LARGEST_WEIGHTS)
        return read(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the weights in a safetensors file; raises as `read_safetensors`."""
    return read_safetensors(path, load_file)


def read_shapes(path: Path) -> Shapes:
    """Return the shapes of the tensors in a safetensors file, which are not read; raises likewise."""

    def shapes(path: Path) -> Shapes:
        with safe_open(path, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}

    return read_safetensors(path, shapes)


def read_metadata(path: Path) -> dict[str, str]:
    """Return what a safetensors file says of itself in words; raises likewise."""

    def metadata(path: Path) -> dict[str, str]:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {})

    return read_safetensors(path, metadata)


def check_count(field: str, asked: int, shapes: Shapes, before: str, after: str) -> None:
    """Check that there are as many layers as a configuration asks for, numbered from 0.

    Args:
        field: of the configuration.
        asked: its value.
        shapes: of the weights.
        before: what is left of the number in the name of one tensor of each layer.
        after: what is right of it.

    Raises:
        ValueError: there are more, or fewer.
    """
    found = sum(name.startswith(before) and name.endswith(after) for name in shapes)
    if asked != found:
        raise ValueError(f"{field}: {asked!r}, must be {found}, as many as there are {before}*{after}")


def check_shapes(shapes: Shapes, wanted: Shapes) -> None:
    """Check that weights have the shapes that a configuration asks for, before anything is made by it.

    Raises:
        ValueError: one is missing, or of another shape.
    """
    for name, shape in wanted.items():
        if shapes.get(name) != shape:
            raise ValueError(f"{name}: of shape {shapes.get(name)}, must be {shape} as the config has it")


def check_integers(sizes: dict[str, Any], most: int = LARGEST_SIZE) -> None:
    for size, value in sizes.items():
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(f"{size}: {value!r}, must be an integer from 0 to {most}")
