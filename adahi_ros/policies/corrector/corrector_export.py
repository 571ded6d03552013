# SPDX-License-Identifier: Apache-2.0
"""A corrector's network, read from its checkpoint and written as ONNX."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.networks.onnx_export import write_onnx


def load_network(checkpoint: CorrectorCheckpoint) -> CorrectorNetwork:
    """Build the network of a checkpoint, ready to predict.

    Raises:
        CheckpointError: the weights are damaged or do not fit the configuration.
    """
    try:
        weights = load_file(checkpoint.weights)
        mean, std = weights["mean"], weights["std"]
        network = CorrectorNetwork(checkpoint.config["action_dim"], checkpoint.config["hidden"], mean, std)
        network.load_state_dict({name: weights[name] for name in network.state_dict()})
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{checkpoint.weights}: {error}") from None
    return network.eval().requires_grad_(False)


def export(checkpoint: CorrectorCheckpoint, path: Path) -> None:
    """Write the network of a checkpoint as one ONNX file with a free batch size.

    Raises:
        CheckpointError: the weights are damaged or do not fit the configuration.
    """
    network = load_network(checkpoint)
    batch = torch.export.Dim("batch")
    write_onnx(
        network,
        (torch.zeros(2, len(network.mean)),),
        path,
        checkpoint.digest(),
        input_names=["features"],
        output_names=["correction", "log_variance"],
        dynamic_shapes=({0: batch},),
    )
