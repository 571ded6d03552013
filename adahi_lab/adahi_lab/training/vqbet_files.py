# SPDX-License-Identifier: Apache-2.0
"""Writes a VQ-BeT and its action tokenizer, and reads the tokenizer to encode with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from adahi_lab.training.saved_weights import save_weights
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_ros.core.checkpoint_files import CheckpointError, read_description
from adahi_ros.core.schema import checked
from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.networks.weights_file import network_of
from adahi_ros.policies.vqbet.code_policy import ActionDecoder
from adahi_ros.policies.vqbet.vqbet_checkpoint import TABLE, Checkpoint, load_checkpoint, load_decoder
from adahi_ros.policies.vqbet.vqbet_network import VQBeT


def save_tokenizer(directory: Path, tokenizer: ActionTokenizer, training: dict[str, Any]) -> ActionDecoder:
    """Write a trained tokenizer with its decode table; return the decoder as a reader gets it."""
    decoder = tokenizer.freeze()
    save_weights(
        directory,
        "tokenizer",
        {**tokenizer.state_dict(), TABLE: torch.from_numpy(decoder.table)},
        fingerprint=decoder.fingerprint,
        config=asdict(tokenizer.config),
        training=training,
    )
    return decoder


def load_tokenizer(directory: Path) -> ActionTokenizer:
    """Read a saved tokenizer, to encode with it.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    load_decoder(directory)
    path = directory / "tokenizer.safetensors"
    try:
        values = read_description(directory / "tokenizer.json")["config"]
        config: TokenizerConfig = checked(TokenizerConfig, values)
        config.check_weights(path)
        return network_of(
            path, lambda tensors: ActionTokenizer(config, tensors["action_mean"], tensors["action_scale"])
        )
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: does not fit the config in tokenizer.json ({error})") from None


def save_policy(directory: Path, name: str, model: VQBeT, training: dict[str, object]) -> None:
    """Write a trained policy beside its saved tokenizer."""
    save_weights(
        directory,
        name,
        model.state_dict(),
        kind=Checkpoint.kind,
        fingerprint=load_decoder(directory).fingerprint,
        parameters=model.parameters_count,
        config=asdict(model.config),
        training=training,
    )


def save_with_export(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside its saved tokenizer, and its export."""
    save_policy(directory, name, model, training)
    export(load_checkpoint(directory / name), directory / f"{name}.onnx")
