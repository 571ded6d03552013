# SPDX-License-Identifier: Apache-2.0
"""Builds a VQ-BeT for torch from its checkpoint."""

from __future__ import annotations

from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.networks.weights_file import network_of
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT


def load_network(checkpoint: Checkpoint) -> VQBeT:
    """Return the network of a checkpoint, ready to predict; raises as `network_of`."""
    return network_of(
        checkpoint.weights,
        lambda tensors: VQBeT(checkpoint.sizes, InputMoments.among(tensors), tensors["action_scale"]),
    )
