# SPDX-License-Identifier: Apache-2.0
"""Builds a corrector's torch network from its checkpoint."""

from __future__ import annotations

from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.networks.weights_file import network_of


def load_network(checkpoint: CorrectorCheckpoint) -> CorrectorNetwork:
    """Return the network of a checkpoint, ready to predict; raises as `network_of`."""
    sizes = checkpoint.sizes
    return network_of(
        checkpoint.weights,
        lambda tensors: CorrectorNetwork(sizes.action_dim, sizes.hidden, tensors["mean"], tensors["std"]),
    )
