# SPDX-License-Identifier: Apache-2.0
"""Runs a VQ-BeT with torch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.networks.computing import OnTorch
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.vqbet.code_policy import CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT, VQBeTConfig


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
    """A `Policy` on torch, on a CPU with torch's own threads; `compute` are arguments of `OnTorch`."""

    def __init__(self, checkpoint: Checkpoint, **compute: Any) -> None:
        super().__init__(checkpoint.sizes, checkpoint.decoder, checkpoint.digest())
        self._run = OnTorch(load_network(checkpoint), **compute)
        self.device = str(self._run.device)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        logits, offsets = self._run(windows, goals)
        return Prediction(logits, offsets)
