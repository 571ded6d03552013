# SPDX-License-Identifier: Apache-2.0
"""Tensors of checkpoints in safetensors files: read, checked and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import LARGEST_WEIGHTS, check_size
from adahi_ros.core.written_files import replacing

Shapes = dict[str, tuple[int, ...]]
# Errors of a reader for an invalid file, or for tensors that numpy or torch cannot hold.
UNREADABLE = (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)


@contextmanager
def weights_of(path: Path) -> Iterator[None]:
    """Name the safetensors file in any error."""
    try:
        check_size(path, LARGEST_WEIGHTS)
        yield
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such checkpoint") from None
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the weights in a safetensors file; raises CheckpointError where it is invalid."""
    with weights_of(path):
        return dict(load_file(path))


def read_shapes(path: Path) -> Shapes:
    """Return the shapes of the tensors in a safetensors file, without reading the tensors.

    Raises:
        CheckpointError: there is no such file, it is invalid, or too large.
    """
    with weights_of(path), safe_open(path, framework="numpy") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file; raises as `read_shapes` does."""
    with weights_of(path), safe_open(path, framework="numpy") as file:
        return dict(file.metadata() or {})


def read_arrays(path: Path, what: str, sizes: Callable[[Shapes], Shapes]) -> dict[str, np.ndarray]:
    """Return the weights of a small model as float64: finite, and with a `scale` above 0.

    Args:
        path: of a safetensors file.
        what: expected content, for errors.
        sizes: from the shapes in the file to those of the arrays to read; may raise a ValueError.

    Raises:
        CheckpointError: it is missing, damaged, or of another model.
    """
    shapes = read_shapes(path)
    try:
        wanted = sizes(shapes)
        check_shapes(shapes, wanted)
        tensors = read_tensors(path)
        arrays = {name: tensors[name].astype(np.float64) for name in wanted}
        for name, values in arrays.items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name}: must be finite")
        if not (arrays["scale"] > 0.0).all():
            raise ValueError("scale: must be above 0")
    except CheckpointError:
        raise
    except (ValueError, IndexError) as error:
        raise CheckpointError(f"{path}: not the weights of {what} ({error})") from None
    return arrays


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None) -> None:
    """Write arrays as float64, atomically."""
    tensors = {name: np.ascontiguousarray(values, np.float64) for name, values in arrays.items()}
    with replacing(path) as partial:
        save_file(tensors, partial, metadata)


def check_count(field: str, stated: int, shapes: Shapes, before: str, after: str) -> None:
    """Check that there are as many layers as in a configuration, numbered from 0.

    Args:
        field: of the configuration.
        stated: its value.
        shapes: of the weights.
        before: text before the number in the name of one tensor of each layer.
        after: text after it.

    Raises:
        ValueError: there are more, or fewer.
    """
    found = sum(name.startswith(before) and name.endswith(after) for name in shapes)
    if stated != found:
        raise ValueError(f"{field}: {stated!r}, must be {found}, as many as there are {before}*{after}")


def check_shapes(shapes: Shapes, wanted: Shapes) -> None:
    """Check that weights have the shapes of a configuration, before anything is built from it.

    Raises:
        ValueError: one is missing, or of another shape.
    """
    for name, shape in wanted.items():
        if shapes.get(name) != shape:
            raise ValueError(f"{name}: of shape {shapes.get(name)}, must be {shape} as the config has it")
