# SPDX-License-Identifier: Apache-2.0
"""Tensors of checkpoints in safetensors files: read, checked and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import LARGEST_WEIGHTS, check_size

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
