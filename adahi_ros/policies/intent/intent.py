# SPDX-License-Identifier: Apache-2.0
"""The encoder of intents and the robot's network that acts by them, on ONNX Runtime."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import OBSERVATION, Observations, Signature
from adahi_ros.policies.corrector.corrector import RANGE_MARGIN, Correction
from adahi_ros.policies.intent.intent_checkpoint import (
    EncoderCheckpoint,
    IntentCheckpoint,
    encoder_path,
    load_encoder_checkpoint,
    load_intent_checkpoint,
)
from adahi_ros.policies.intent.intent_features import RepliesView, acting_features, reply_features
from adahi_ros.policies.interface import Actor
from adahi_ros.policies.networks.network_checkpoint import RunNetwork


class IntentEncoder:
    """Makes intents of a target's replies, on the robot or beside the target.

    Attributes:
        sizes: see `EncoderConfig`.
        fingerprint: of its configuration and weights, 16 hexadecimal digits.
        parameters: number of its weights.

    Args:
        checkpoint: of the network.
        network: runs it, from features (B, F) to intents (B, Z); None runs the exported one.
    """

    def __init__(self, checkpoint: EncoderCheckpoint, network: RunNetwork | None = None) -> None:
        self.sizes = checkpoint.sizes
        self.fingerprint = checkpoint.digest()
        self.parameters = checkpoint.parameters
        self._run = checkpoint.on_onnx() if network is None else network

    @property
    def size(self) -> int:
        """Z, numbers of an intent."""
        return self.sizes.size

    def check_target(self, signature: Signature) -> None:
        """Check that it can read the replies of a target, beside it.

        Raises:
            ValueError: names the size, its value and what is allowed.
        """
        seen = {feature.name: feature.size for feature in signature.features}
        beside = sum(size for name, size in seen.items() if name != OBSERVATION) + signature.goal_dim
        allowed = {
            "observation_dim": seen.get(OBSERVATION, 0),
            "action_dim": signature.action_dim,
            "horizon": signature.horizon,
            "extra_dim": beside,
            "replies": 1,
        }
        for name, wanted in allowed.items():
            if (its := getattr(self.sizes, name)) != wanted:
                raise ValueError(
                    f"intent: its encoder's {name} is {its}, must be {wanted}, as for the target"
                )

    def encode(self, view: RepliesView) -> np.ndarray:
        """Return the intents of B robots, (B, Z) int8."""
        (intent,) = self._run(reply_features(view, self.sizes))
        with np.errstate(invalid="ignore"):  # a plan that is not finite is refused elsewhere
            return intent.astype(np.int8)

    def encode_replies(self, observations: Observations, plans: np.ndarray) -> np.ndarray:
        """Return the intents (B, Z) int8 of one reply of each robot, beside the target.

        Args:
            observations: as the target reads them.
            plans: (B, T, A).
        """
        return self.encode(
            RepliesView(
                observations.features[OBSERVATION][:, -1:],
                plans[:, None],
                np.zeros((len(plans), 1), dtype=np.int64),
                extra_of(observations),
            )
        )


class Intent(Actor):
    """An `Actor` that acts by the intent of the target's last reply, and reads no plan.

    Attributes:
        encoder: of its intents; None where only the verifier has it.
        encoder_fingerprint: of the encoder that it was trained with.
        size: Z, numbers of an intent.

    Args:
        checkpoint: of the network.
        encoder: of its intents; None where only the verifier has it.
        network: runs it, from features (B, F) to actions (B, A) in action scales and their log variance
            (B,); None runs the exported one.

    Raises:
        CheckpointError: it was trained with another encoder.
    """

    def __init__(
        self,
        checkpoint: IntentCheckpoint,
        encoder: IntentEncoder | None,
        network: RunNetwork | None = None,
    ) -> None:
        sizes = checkpoint.sizes
        if encoder is not None and encoder.fingerprint != sizes.encoder:
            raise CheckpointError(
                f"{checkpoint.weights}: encoder: {encoder.fingerprint}, must be {sizes.encoder}, "
                "as in its training"
            )
        margin = RANGE_MARGIN * checkpoint.action_scale
        allowed = ActionRange(checkpoint.action_low - margin, checkpoint.action_high + margin)
        signature = checkpoint.signature
        if encoder is not None and not encoder.sizes.extra_dim:
            signature = replace(signature, parameters=signature.parameters + encoder.parameters)
        super().__init__(signature, allowed, checkpoint.action_scale, checkpoint.digest())
        self.encoder = encoder
        self.encoder_fingerprint = sizes.encoder
        self.size = sizes.size
        self._mean = checkpoint.action_mean
        self._run = checkpoint.on_onnx() if network is None else network

    @property
    def at_target(self) -> bool:
        """Whether the verifier makes its intents, and the robot none."""
        return self.encoder is None or self.encoder.sizes.extra_dim > 0

    @property
    def encoder_of_target(self) -> IntentEncoder | None:
        """The encoder, where it reads what only the target reads; else None."""
        return self.encoder if self.encoder is not None and self.encoder.sizes.extra_dim else None

    def act(self, observation: np.ndarray, previous: np.ndarray, intent: np.ndarray) -> Correction:
        """Return the actions (B, A) and expected errors of B robots; see `acting_features`."""
        action, log_variance = self._run(acting_features(observation, previous, intent))
        actions = (self._mean + action * self.action_scale).astype(np.float32)
        return Correction(actions, np.exp(0.5 * log_variance))


def extra_of(observations: Observations) -> np.ndarray:
    """Return what only the target reads: its newest features but the observation, and conditions, (B, E)."""
    parts = [values[:, -1] for name, values in observations.features.items() if name != OBSERVATION]
    parts += list(observations.conditions.values())
    batch = len(observations.features[OBSERVATION])
    return np.concatenate([np.zeros((batch, 0), dtype=np.float32), *parts], axis=1)


def load_intent(path: Path, with_encoder: bool = False) -> Intent:
    """Load the network at `DIRECTORY/NAME`, and its encoder if that runs on the robot, or if wanted.

    Raises:
        CheckpointError: one cannot be used.
    """
    checkpoint, beside = load_intent_checkpoint(path), encoder_path(path)
    if not with_encoder and not beside.with_name(f"{beside.name}.json").exists():
        return Intent(checkpoint, None)  # only the verifier has it
    encoder = load_encoder_checkpoint(beside)
    wanted = with_encoder or not encoder.sizes.extra_dim
    return Intent(checkpoint, IntentEncoder(encoder) if wanted else None)


def at_target(path: Path) -> bool:
    """Return whether the encoder of the checkpoint `DIRECTORY/NAME` is for the verifier.

    Raises:
        CheckpointError: it cannot be read.
    """
    return load_encoder_checkpoint(encoder_path(path)).sizes.extra_dim > 0


def load_encoder(path: Path) -> IntentEncoder:
    """Load the encoder of the intents of the checkpoint `DIRECTORY/NAME`.

    Raises:
        CheckpointError: it cannot be used.
    """
    return IntentEncoder(load_encoder_checkpoint(encoder_path(path)))
