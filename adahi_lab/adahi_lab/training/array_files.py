# SPDX-License-Identifier: Apache-2.0
"""Weights of small models in safetensors files, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.tensor_files import Shapes, check_shapes, read_shapes, read_tensors, weights_of
from adahi_ros.core.written_files import replacing


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
