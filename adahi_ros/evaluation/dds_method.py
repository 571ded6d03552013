"""What a method is over DDS: parameters of the robot's and of the verifier's node."""

from __future__ import annotations

from typing import Any

from adahi_ros.evaluation.bench import PolicyFiles
from adahi_ros.evaluation.methods import gated
from adahi_ros.gates.parameter_file import Calibration


def node_parameters(
    name: str, files: PolicyFiles, calibration: Calibration, deadline_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the draft policy node, and of the target verifier node.

    Args:
        name: of a method that a robot can run.
        files: draft and target.
        calibration: thresholds of the gates.
        deadline_s: for the target's reply.

    Raises:
        ValueError: no robot can run it, or its gate was not calibrated.
    """
    method = gated(name)
    config = method.config(calibration)
    folder = files.folder.resolve()
    draft = {
        "checkpoint": str(folder / "draft"),
        "backend": files.backend,
        "gate.name": config.trigger.name,
        "gate.threshold": config.trigger.threshold,
        "deviation.smoothing": config.smoothing,
        "deviation.normalization": config.normalization,
        "draft_temperature": config.draft_temperature,
        "deadline_s": deadline_s,
    }
    target = {"checkpoint": str(folder / "target"), "backend": files.backend, "rule": method.rule}
    return draft, target
