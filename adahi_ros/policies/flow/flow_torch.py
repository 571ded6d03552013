# SPDX-License-Identifier: Apache-2.0
"""Runs a flow policy with torch, and writes its files."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.flow.flow_checkpoint import KIND, READS, FlowCheckpoint
from adahi_ros.policies.flow.flow_network import FlowConfig, FlowNetwork
from adahi_ros.policies.flow.flow_policy import FlowPolicy
from adahi_ros.policies.networks.computing import OnTorch
from adahi_ros.policies.networks.onnx_export import write_onnx
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.networks.weights_file import save_weights

ACTION = ("action_mean", "action_scale", "action_low", "action_high")


def load_network(checkpoint: FlowCheckpoint) -> FlowNetwork:
    """Build the network of a checkpoint, ready to run.

    Raises:
        CheckpointError: the weights are damaged or do not fit the configuration.
    """
    try:
        weights = load_file(checkpoint.weights)
        moments = InputMoments(**{each.name: weights[each.name] for each in fields(InputMoments)})
        config = FlowConfig(**checkpoint.config)
        network = FlowNetwork(config, moments, *(weights[name] for name in ACTION))
        network.load_state_dict(weights)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{checkpoint.weights}: {error}") from None
    return network.eval().requires_grad_(False)


def torch_policy(checkpoint: FlowCheckpoint, **compute: Any) -> FlowPolicy:
    """Return the policy, on a CPU with torch's own threads; `compute` are arguments of `OnTorch`."""
    computes = OnTorch(load_network(checkpoint), **compute)

    def run(windows: np.ndarray, goals: np.ndarray, noise: np.ndarray, known: np.ndarray) -> np.ndarray:
        (plans,) = computes(windows, goals, noise, known)
        return plans

    return FlowPolicy(checkpoint, run, str(computes.device))


def save_flow(directory: Path, name: str, network: FlowNetwork, training: dict[str, Any]) -> None:
    """Write a trained policy."""
    save_weights(
        directory,
        name,
        network.state_dict(),
        kind=KIND,
        parameters=network.parameters_count,
        config=asdict(network.config),
        training=training,
    )


def export(checkpoint: FlowCheckpoint, path: Path) -> None:
    """Write the network of a checkpoint, all steps of its flow, as one ONNX file with a free batch size."""
    network = load_network(checkpoint)
    config = network.config
    # Two rows: with one, the exporter would take the batch size for a constant.
    example = (
        torch.zeros(2, config.window_length, config.observation_dim),
        torch.zeros(2, config.goal_dim),
        torch.zeros(2, config.horizon * config.action_dim),
        torch.zeros(2, config.horizon, config.action_dim),
    )
    batch = torch.export.Dim("batch")
    write_onnx(
        network,
        example,
        path,
        checkpoint.digest(),
        input_names=list(READS),
        output_names=["plans"],
        dynamic_shapes=tuple({0: batch} for _ in READS),
    )
