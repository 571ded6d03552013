# SPDX-License-Identifier: Apache-2.0
"""Writes the checkpoint of a torch network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from adahi_ros.core.checkpoint_files import FORMAT
from adahi_ros.core.written_files import replacing, save_json


def save_weights(directory: Path, name: str, tensors: Mapping[str, Tensor], **described: object) -> None:
    """Write `NAME.safetensors` and `NAME.json`.

    Args:
        directory: gets the files.
        name: of the files, without suffix.
        tensors: the weights, by name.
        **described: entries of the JSON file after the format, in this order.
    """
    with replacing(directory / f"{name}.safetensors") as partial:
        save_file({key: value.contiguous() for key, value in tensors.items()}, partial)
    save_json(directory / f"{name}.json", {"format": FORMAT, **described})
