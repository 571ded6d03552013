# SPDX-License-Identifier: Apache-2.0
"""Export of a VQ-BeT from torch to ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from adahi_ros.policies.networks.onnx_export import write_onnx
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint, load_checkpoint, save_policy
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network


def save_with_export(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside the saved tokenizer that it speaks, and its export."""
    save_policy(directory, name, model, training)
    export(load_checkpoint(directory / name), directory / f"{name}.onnx")


def export(checkpoint: Checkpoint, path: Path) -> None:
    """Write the network of a checkpoint as one ONNX file with a free batch size.

    The file names the weights that it was made from, so that a stale one is never run; the JSON beside it
    gets its hash, so that no other is.
    """
    sizes = checkpoint.sizes
    # Two rows: with one, the exporter would take the batch size for a constant.
    example = (torch.zeros(2, sizes.window_length, sizes.observation_dim), torch.zeros(2, sizes.goal_dim))
    batch = torch.export.Dim("batch")
    write_onnx(
        load_network(checkpoint),
        example,
        path,
        checkpoint.digest(),
        input_names=["windows", "goals"],
        output_names=["logits", "offsets"],
        dynamic_shapes=({0: batch}, {0: batch}),
    )
