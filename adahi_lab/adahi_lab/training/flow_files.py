# SPDX-License-Identifier: Apache-2.0
"""Writes a flow policy."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from adahi_lab.training.saved_weights import save_weights
from adahi_ros.policies.flow.flow_checkpoint import FlowCheckpoint
from adahi_ros.policies.flow.flow_network import FlowNetwork


def save_flow(
    directory: Path,
    name: str,
    network: FlowNetwork,
    training: dict[str, object],
    kind: str = FlowCheckpoint.kind,
) -> None:
    """Write a trained policy."""
    save_weights(
        directory,
        name,
        network.state_dict(),
        kind=kind,
        parameters=network.parameters_count,
        config=asdict(network.config),
        training=training,
    )
