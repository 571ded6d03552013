# SPDX-License-Identifier: Apache-2.0
"""The networks of intents: an encoder with few int8 outputs, and one that acts by them.

Trained together, with the rounding of the intent passed over in the gradient (straight-through estimator;
Bengio et al., arXiv 1308.3432).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from adahi_ros.policies.corrector.corrector_network import FURTHEST, CorrectorNetwork
from adahi_ros.policies.intent.intent_checkpoint import EncoderCheckpoint, EncoderConfig, IntentCheckpoint
from adahi_ros.policies.intent.intent_features import LARGEST
from adahi_ros.policies.networks.weights_file import network_of


class EncoderNetwork(nn.Module):
    """Takes features of replies (B, F), gives intents (B, Z), whole numbers from -127 to 127 as float32.

    Args:
        sizes: see `EncoderConfig`.
        mean, std: (F,) of the features that it was trained on.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, sizes: EncoderConfig, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(sizes.inputs, sizes.hidden), nn.GELU(), nn.Linear(sizes.hidden, sizes.size)
        )
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", std.float())

    def graded(self, features: Tensor) -> Tensor:
        """Return intents before rounding, with a gradient."""
        scaled = ((features - self.mean) / self.std).clamp(-FURTHEST, FURTHEST)
        return torch.tanh(self.layers(scaled)) * LARGEST

    def forward(self, features: Tensor) -> Tensor:
        """See the class."""
        return self.graded(features).round()


def load_encoder_network(checkpoint: EncoderCheckpoint) -> EncoderNetwork:
    """Return the network of an encoder's checkpoint, ready to run; raises as `network_of`."""
    sizes = checkpoint.sizes
    return network_of(
        checkpoint.weights, lambda tensors: EncoderNetwork(sizes, tensors["mean"], tensors["std"])
    )


def load_intent_network(checkpoint: IntentCheckpoint) -> CorrectorNetwork:
    """Return the network of a checkpoint that acts by intents, ready to run; raises as `network_of`."""
    sizes = checkpoint.sizes
    return network_of(
        checkpoint.weights,
        lambda tensors: CorrectorNetwork(sizes.action_dim, sizes.hidden, tensors["mean"], tensors["std"]),
    )
