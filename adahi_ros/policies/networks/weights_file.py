# SPDX-License-Identifier: Apache-2.0
"""Loads a torch network from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from adahi_ros.core.checkpoint_files import CheckpointError

N = TypeVar("N", bound=nn.Module)


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
