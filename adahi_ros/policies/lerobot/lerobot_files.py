# SPDX-License-Identifier: Apache-2.0
"""Files of LeRobot's checkpoints: JSON and safetensors, or an error that names what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from adahi_ros.core.checkpoint_files import UNREADABLE, CheckpointError
from adahi_ros.core.files import LARGEST_WEIGHTS, check_size, read_json

CONFIG = "config.json"
ACTION = "action"


def read_config(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file.

    Raises:
        CheckpointError: it is missing, or none.
    """
    try:
        return read_json(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; expected the folder of a LeRobot policy") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, by name.

    Raises:
        CheckpointError: it is missing, too large, or none.
    """
    try:
        check_size(path, LARGEST_WEIGHTS)
        return dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file") from None
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error})") from None


def mapping(config: Mapping[str, Any], name: str, where: Path) -> dict[str, Any]:
    """Return an entry of a file that must be a mapping.

    Raises:
        CheckpointError: it is none; names file, field and value.
    """
    value = config.get(name)
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: {name}: {value!r}, must be a mapping")
    return value
