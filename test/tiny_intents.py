"""Intents without training: a network that acts by them, and its encoder, as small as they get."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from adahi_lab.training.intent_training import IntentNetworks, save_intent
from adahi_ros.core.signature import OBSERVATION, Signature
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.policies.intent.intent_checkpoint import EncoderConfig
from adahi_ros.policies.intent.intent_torch import EncoderNetwork

SIZE, HIDDEN = 4, 6
# An intent in a recipe.
STUDENT = {"seed": 3, "size": {"size": 3, "hidden": 4}, "fit": {"steps": 5, "batch_size": 16}, "hidden": 4}


def tiny_intents(
    folder: Path, name: str, target: Signature, at_target: bool = True, seed: int = 0, replies: int = 1
) -> Intent:
    """Write the checkpoints `name` and `name_encoder` for a target; return the acting one.

    Args:
        folder: of both.
        name: of the acting network.
        target: whose plans the encoder reads.
        at_target: the encoder also reads what only the target knows.
        seed: of the weights.
        replies: that the encoder reads.
    """
    torch.manual_seed(seed)
    read = sum(feature.size for feature in target.features if feature.name == OBSERVATION)
    extra = target.observation_dim - read + target.goal_dim if at_target else 0
    action = target.action_dim
    sizes = EncoderConfig(read, action, target.horizon, extra, replies, SIZE, HIDDEN)
    mean, inputs = torch.zeros(sizes.inputs), 2 * read + SIZE
    encoder = EncoderNetwork(sizes, mean, torch.ones(sizes.inputs))
    acting = CorrectorNetwork(action, HIDDEN, torch.zeros(inputs), torch.ones(inputs))
    one = np.ones(action, np.float32)
    actions = {"action_mean": 0 * one, "action_scale": one, "action_low": -9 * one, "action_high": 9 * one}
    folder.mkdir(parents=True, exist_ok=True)
    return save_intent(folder, name, IntentNetworks(encoder, acting), sizes, HIDDEN, actions, {})
