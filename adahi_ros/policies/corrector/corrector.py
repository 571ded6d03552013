# SPDX-License-Identifier: Apache-2.0
"""A corrector, on ONNX Runtime: tens of microseconds a step on a robot, and no torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adahi_ros.core.proposal import ActionRange
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint
from adahi_ros.policies.corrector.corrector_features import PlanView, features
from adahi_ros.policies.interface import Actor
from adahi_ros.policies.networks.network_checkpoint import RunNetwork

RANGE_MARGIN = 3.0  # in units of the action scale, beyond the demonstrations


class Correction(NamedTuple):
    """Corrected actions of B robots.

    Attributes:
        actions: (B, A) float32 in action units.
        expected_error: (B,) in action scales, the predicted standard deviation of its error.
    """

    actions: np.ndarray
    expected_error: np.ndarray


class Corrector(Actor):
    """An `Actor` that corrects plans, and has none of its own.

    Args:
        checkpoint: of the network.
        network: runs it, from features (B, F) to corrections (B, A) in action scales and their log variance
            (B,), all float32; None runs the exported one.
    """

    def __init__(self, checkpoint: CorrectorCheckpoint, network: RunNetwork | None = None) -> None:
        self.scales = checkpoint.scales
        scale = checkpoint.scales.action_scale
        margin = RANGE_MARGIN * scale
        allowed = ActionRange(checkpoint.action_low - margin, checkpoint.action_high + margin)
        super().__init__(checkpoint.signature, allowed, scale, checkpoint.digest())
        self._run = checkpoint.on_onnx() if network is None else network

    def correct(self, view: PlanView) -> Correction:
        """Return the corrected actions of B robots that have a plan."""
        correction, log_variance = self._run(features(view, self.scales))
        planned = view.ahead[:, 0]
        actions = (planned + correction * self.scales.action_scale).astype(np.float32)
        return Correction(actions, np.exp(0.5 * log_variance))
