# SPDX-License-Identifier: Apache-2.0
"""Builds a flow policy for torch from its checkpoint."""

from __future__ import annotations

from adahi_ros.policies.flow.flow_checkpoint import FlowCheckpoint
from adahi_ros.policies.flow.flow_network import FlowNetwork
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.networks.weights_file import network_of

ACTION = ("action_mean", "action_scale", "action_low", "action_high")


def load_network(checkpoint: FlowCheckpoint) -> FlowNetwork:
    """Return the network of a checkpoint, ready to run; raises as `network_of`."""
    return network_of(
        checkpoint.weights,
        lambda tensors: FlowNetwork(
            checkpoint.sizes, InputMoments.among(tensors), *(tensors[name] for name in ACTION)
        ),
    )
