# SPDX-License-Identifier: Apache-2.0
"""Writes a VQ-BeT with its export to ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint, save_policy
from adahi_ros.policies.vqbet.vqbet_network import VQBeT


def save_with_export(directory: Path, name: str, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a trained policy beside its saved tokenizer, and its export."""
    save_policy(directory, name, model, training)
    export(load_checkpoint(directory / name), directory / f"{name}.onnx")
