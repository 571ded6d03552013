# SPDX-License-Identifier: Apache-2.0
"""A corrector, on ONNX Runtime: tens of microseconds a step on a robot, and no torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adahi_ros.core.proposal import ActionRange
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint
from adahi_ros.policies.corrector.corrector_features import PlanView, features
from adahi_ros.policies.interface import Actor
from adahi_ros.policies.networks.onnx_cache import onnx_session

RANGE_MARGIN = 3.0  # in units of the action scale, beyond the demonstrations
Network = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From features (B, F) to corrections (B, A) in action scales and their log variance (B,), all float32."""


class Correction(NamedTuple):
    """What B robots are to do in place of what is planned.

    Attributes:
        actions: (B, A) float32 in action units.
        expected_error: (B,) in action scales, the standard deviation that it expects of itself.
    """

    actions: np.ndarray
    expected_error: np.ndarray


class Corrector(Actor):
    """An `Actor` that corrects plans, and has none of its own.

    Args:
        checkpoint: of the network.
        network: that runs it; None runs the exported one.
    """

    def __init__(self, checkpoint: CorrectorCheckpoint, network: Network | None = None) -> None:
        self.digest = checkpoint.digest()
        self.signature = checkpoint.signature
        self.scales = checkpoint.scales
        self.action_scale = checkpoint.scales.action_scale
        self.draws = 0
        margin = RANGE_MARGIN * self.action_scale
        self._range = ActionRange(checkpoint.action_low - margin, checkpoint.action_high + margin)
        self._network = _exported(checkpoint) if network is None else network

    def correct(self, view: PlanView) -> Correction:
        """Return what is to be done now by B robots that have a plan."""
        correction, log_variance = self._network(features(view, self.scales))
        planned = view.ahead[:, 0]
        actions = (planned + correction * self.scales.action_scale).astype(np.float32)
        return Correction(actions, np.exp(0.5 * log_variance))

    def sound(self, actions: np.ndarray) -> np.ndarray:
        """See `Actor.sound`."""
        return self._range.sound(actions)

    def check(self, actions: np.ndarray) -> None:
        """See `Actor.check`."""
        self._range.check(actions)


def _exported(checkpoint: CorrectorCheckpoint) -> Network:
    def export_to(path: Path) -> None:
        from adahi_ros.policies.corrector.corrector_export import export

        export(checkpoint, path)

    session = onnx_session(checkpoint.weights, checkpoint.digest(), export_to)

    def run(read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        correction, log_variance = session.run(("correction", "log_variance"), {"features": read})
        return correction, log_variance

    return run
