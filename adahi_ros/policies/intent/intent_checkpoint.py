# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of intents: the encoder that makes them, and the network that acts by them. No torch here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import must, within
from adahi_ros.core.signature import Signature
from adahi_ros.core.tensor_files import Shapes, read_tensors
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.interface import FINGERPRINT
from adahi_ros.policies.networks.network_checkpoint import (
    LONGEST,
    Length,
    NetworkCheckpoint,
    NetworkSizes,
    read_network,
)

LONGEST_INTENT = 64
"""Numbers of an intent at most, as in `VerifyDraft.srv`."""
MOST_REPLIES = 8
ACTIONS = ("action_mean", "action_scale", "action_low", "action_high")
SUFFIX = "_encoder"
"""The encoder of the intents of NAME is the checkpoint NAME_encoder."""


@dataclass(frozen=True)
class EncoderConfig(NetworkSizes):
    """Sizes of an encoder.

    Attributes:
        observation_dim, action_dim, horizon: O, A and T of the target's plans.
        extra_dim: E, numbers that only the target reads, such as a goal; 0 for an encoder on the robot.
        replies: M, number of the newest replies that it reads.
        size: Z, numbers of an intent.
        hidden: units of its layer.
    """

    observation_dim: Length
    action_dim: Length
    horizon: Length
    extra_dim: Annotated[int, within(0, LONGEST, "an integer")]
    replies: Annotated[int, within(1, MOST_REPLIES, "an integer")]
    size: Annotated[int, within(1, LONGEST_INTENT, "an integer")] = 8
    hidden: Length = 96

    @property
    def reply_dim(self) -> int:
        """Number of values that describe one reply, see `intent_features.reply_features`."""
        return 2 + self.observation_dim + self.horizon * self.action_dim

    @property
    def inputs(self) -> int:
        """Number of the encoder's inputs."""
        return self.replies * self.reply_dim + self.extra_dim

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        return {
            "mean": (self.inputs,),
            "std": (self.inputs,),
            "layers.0.weight": (self.hidden, self.inputs),
            "layers.2.weight": (self.size, self.hidden),
        }


@dataclass(frozen=True)
class IntentConfig(NetworkSizes):
    """Sizes of the network that acts by intents.

    Attributes:
        observation_dim, action_dim, horizon: O, A and T of the target's plans.
        size: Z, numbers of an intent.
        encoder: fingerprint of the encoder that it was trained with.
        hidden: units of each of its two layers.
    """

    observation_dim: Length
    action_dim: Length
    horizon: Length
    size: Annotated[int, within(1, LONGEST_INTENT, "an integer")]
    encoder: Annotated[str, must("be 16 hexadecimal digits", re.compile(FINGERPRINT).fullmatch)]
    hidden: Length = 128

    @property
    def inputs(self) -> int:
        """Number of the network's inputs, see `intent_features.acting_features`."""
        return 2 * self.observation_dim + self.size

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        return {
            "mean": (self.inputs,),
            "std": (self.inputs,),
            "layers.0.weight": (self.hidden, self.inputs),
            "layers.2.weight": (self.hidden, self.hidden),
            "layers.4.weight": (self.action_dim + 1, self.hidden),
            **dict.fromkeys(ACTIONS, (self.action_dim,)),
        }


@dataclass(frozen=True)
class EncoderCheckpoint(NetworkCheckpoint[EncoderConfig]):
    """An encoder on disk, read but not yet running."""

    kind = "intent_encoder"
    network = "adahi_ros.policies.intent.intent_torch:load_encoder_network"
    outputs = ("intent",)

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`."""
        return {"features": (self.sizes.inputs,)}


@dataclass(frozen=True)
class IntentCheckpoint(NetworkCheckpoint[IntentConfig]):
    """A network that acts by intents on disk, read but not yet running.

    Attributes:
        action_mean, action_scale: (A,) float32, of the target's actions.
        action_low, action_high: (A,) float32, their range.
    """

    kind = "intent"
    network = "adahi_ros.policies.intent.intent_torch:load_intent_network"
    outputs = ("action", "log_variance")

    action_mean: np.ndarray
    action_scale: np.ndarray
    action_low: np.ndarray
    action_high: np.ndarray

    @property
    def signature(self) -> Signature:
        """A robot's observations and actions; the horizon is that of the target's plans."""
        sizes = self.sizes
        return flat_signature(
            1, sizes.horizon, sizes.action_dim, sizes.observation_dim, parameters=self.parameters
        )

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`."""
        return {"features": (self.sizes.inputs,)}


def load_encoder_checkpoint(path: Path) -> EncoderCheckpoint:
    """Read an encoder's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing or damaged.
    """
    return EncoderCheckpoint(*read_network(path, EncoderCheckpoint.kind, EncoderConfig))


def load_intent_checkpoint(path: Path) -> IntentCheckpoint:
    """Read the description of a network that acts by intents; as `load_encoder_checkpoint`.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    weights, sizes, description = read_network(path, IntentCheckpoint.kind, IntentConfig)
    tensors = read_tensors(weights)
    for name in ACTIONS:
        positive = name != "action_scale" or (tensors[name] > 0).all()
        if not (np.isfinite(tensors[name]).all() and positive):
            raise CheckpointError(f"{weights}: {name}: must be finite, and positive where it is a scale")
    return IntentCheckpoint(weights, sizes, description, *(tensors[name] for name in ACTIONS))


def encoder_path(path: Path) -> Path:
    """Return the path of the encoder of a checkpoint `DIRECTORY/NAME`."""
    return path.with_name(f"{path.name}{SUFFIX}")
