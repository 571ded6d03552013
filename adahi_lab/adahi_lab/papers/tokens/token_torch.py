# SPDX-License-Identifier: Apache-2.0
"""Builds a token policy's network for torch from its checkpoint, and writes its files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from adahi_lab.papers.tokens.token_checkpoint import KIND, TokenCheckpoint, load_codec, load_tokens
from adahi_lab.papers.tokens.token_network import TokenNetwork
from adahi_lab.training.saved_weights import save_weights
from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.networks.weights_file import network_of


def load_network(checkpoint: TokenCheckpoint) -> TokenNetwork:
    """Return the network of a checkpoint, ready to run; raises as `network_of`."""
    return network_of(
        checkpoint.weights, lambda tensors: TokenNetwork(checkpoint.sizes, InputMoments.among(tensors))
    )


def save_tokens(
    directory: Path, name: str, network: TokenNetwork, training: dict[str, object], half: bool = False
) -> None:
    """Write a trained policy beside its saved tokenizer.

    Args:
        directory: gets the files.
        name: of the policy.
        network: its trained network.
        training: how it was made, for its description.
        half: write the layers' matrices as float16, and no export: each machine makes its own.
    """
    weights = network.state_dict()
    if half:
        matrices = [each for each in weights if each.startswith("blocks.") and weights[each].ndim == 2]
        weights |= {each: weights[each].half() for each in matrices}
    save_weights(
        directory,
        name,
        weights,
        kind=KIND,
        fingerprint=load_codec(directory).fingerprint,
        parameters=network.parameters_count,
        config=asdict(network.config),
        training=training,
    )
    if not half:
        export(load_tokens(directory / name), directory / f"{name}.onnx")
