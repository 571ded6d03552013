# SPDX-License-Identifier: Apache-2.0
"""Writes the checkpoint of a torch network, and loads a network from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from adahi_ros.core.checkpoint_files import FORMAT, CheckpointError
from adahi_ros.core.written_files import replacing, save_json

N = TypeVar("N", bound=nn.Module)


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


def network_of(path: Path, make: Callable[[dict[str, Tensor]], N]) -> N:
    """Return a network with the weights of a safetensors file, ready to run.

    Args:
        path: of the file.
        make: builds a network with any weights from the tensors in the file.

    Raises:
        CheckpointError: the weights are damaged or do not fit the network.
    """
    try:
        tensors = load_file(path)
        network = make(tensors)
        network.load_state_dict({name: tensors[name] for name in network.state_dict()})
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: {error}") from None
    return network.eval().requires_grad_(False)
