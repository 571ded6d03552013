"""Runs a VQ-BeT with torch."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from adahi_ros.networks.checkpoint_files import CheckpointError
from adahi_ros.networks.transformer import InputMoments
from adahi_ros.policy.vqbet.checkpoint import Checkpoint
from adahi_ros.policy.vqbet.code_policy import CodePolicy, Prediction
from adahi_ros.policy.vqbet.network import VQBeT, VQBeTConfig


def load_network(checkpoint: Checkpoint) -> VQBeT:
    """Build the network of a checkpoint, ready to predict.

    Raises:
        CheckpointError: the weights are damaged or do not fit the configuration.
    """
    try:
        weights = load_file(checkpoint.weights)
        moments = InputMoments(**{each.name: weights[each.name] for each in fields(InputMoments)})
        model = VQBeT(VQBeTConfig(**checkpoint.config), moments, weights["action_scale"])
        model.load_state_dict(weights)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{checkpoint.weights}: {error}") from None
    return model.eval().requires_grad_(False)


class TorchPolicy(CodePolicy):
    """A `Policy` on torch. Batches run on the CPU with torch's own threads."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.sizes, checkpoint.decoder, checkpoint.digest())
        self._model = load_network(checkpoint)

    @torch.inference_mode()
    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        logits, offsets = self._model(torch.from_numpy(windows), torch.from_numpy(goals))
        return Prediction(logits.numpy(), offsets.numpy())
