# SPDX-License-Identifier: Apache-2.0
"""A VQ-BeT as a policy, whatever runs the network."""

from __future__ import annotations

import numpy as np

from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.vqbet.code_policy import CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint


class VQBeTPolicy(CodePolicy):
    """A VQ-BeT as a `Policy`.

    Args:
        checkpoint: of the network.
        run: runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: Checkpoint, run: RunNetwork, device: str = "cpu") -> None:
        super().__init__(checkpoint.signature, checkpoint.decoder, checkpoint.digest())
        self.device = device
        self._run = run

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        return Prediction(*self._run(windows, goals))
