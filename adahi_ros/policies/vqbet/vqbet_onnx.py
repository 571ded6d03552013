# SPDX-License-Identifier: Apache-2.0
"""Runs a VQ-BeT with ONNX Runtime, which needs neither torch nor its start-up time on the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_ros.policies.networks.onnx_cache import OpenSession, onnx_session
from adahi_ros.policies.vqbet.code_policy import CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint


class OnnxPolicy(CodePolicy):
    """A `Policy` on ONNX Runtime; same output as `TorchPolicy` within 1e-4.

    Args:
        checkpoint: of the network.
        open_session: opens it, at full precision or less.
    """

    def __init__(self, checkpoint: Checkpoint, open_session: OpenSession = onnx_session) -> None:
        super().__init__(checkpoint.sizes, checkpoint.decoder, checkpoint.digest())

        def export_to(path: Path) -> None:
            from adahi_ros.policies.vqbet.vqbet_export import export

            export(checkpoint, path)

        self._session = open_session(checkpoint.weights, checkpoint.digest(), export_to)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        logits, offsets = self._session.run(("logits", "offsets"), {"windows": windows, "goals": goals})
        return Prediction(logits, offsets)
