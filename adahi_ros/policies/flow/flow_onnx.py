# SPDX-License-Identifier: Apache-2.0
"""Runs a flow policy with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_ros.policies.flow.flow_checkpoint import READS, FlowCheckpoint
from adahi_ros.policies.flow.flow_policy import FlowPolicy
from adahi_ros.policies.networks.onnx_cache import OpenSession, onnx_session


def onnx_policy(checkpoint: FlowCheckpoint, open_session: OpenSession = onnx_session) -> FlowPolicy:
    """Return the policy; same plans as on torch within 1e-4 of the action scale.

    Args:
        checkpoint: of the network.
        open_session: opens it, at full precision or less.
    """

    def export_to(path: Path) -> None:
        from adahi_ros.policies.flow.flow_torch import export

        export(checkpoint, path)

    session = open_session(checkpoint.weights, checkpoint.digest(), export_to)
    read = [each.name for each in session.get_inputs()]  # without a goal, the exporter leaves it out

    def run(windows: np.ndarray, goals: np.ndarray, noise: np.ndarray, known: np.ndarray) -> np.ndarray:
        given = dict(zip(READS, (windows, goals, noise, known), strict=True))
        plans: np.ndarray = session.run(("plans",), {name: given[name] for name in read})[0]
        return plans

    return FlowPolicy(checkpoint, run)
