# SPDX-License-Identifier: Apache-2.0
"""What a method is over DDS: parameters of the robot's and of the verifier's node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_ros.lab.methods.methods import COOL, on_task
from adahi_ros.lab.methods.plan_methods import PlanMethod


def node_parameters(
    name: str, task: str, files: PolicyFiles, calibration: Calibration, deadline_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the draft policy node, and of the target verifier node.

    Args:
        name: of a method that a robot can run.
        task: what `make` takes.
        files: draft and target, and a target that plans.
        calibration: thresholds of the gates.
        deadline_s: for a reply that is waited for.

    Raises:
        ValueError: no robot can run it, or its gate was not calibrated.
    """
    method = on_task(name, task)
    if isinstance(method, PlanMethod):
        return _by_plan(method, files, calibration, deadline_s)
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
    told = {
        name: str(Path(value).resolve()) if name == "file" else value
        for name, value in method.arguments.items()
    }
    return draft, {**target, **{f"{method.rule}.{name}": value for name, value in told.items()}}


def goes_by_plans(name: str, task: str) -> bool:
    """Return whether a method goes on by plans of the target.

    Raises:
        ValueError: no robot can run it.
    """
    return isinstance(on_task(name, task), PlanMethod)


def goes_ahead(name: str, task: str) -> bool:
    """Return whether a method waits for no reply, so that its world must run by the clock.

    Raises:
        ValueError: no robot can run it.
    """
    method = on_task(name, task)
    return isinstance(method, PlanMethod) and method.wait_policy == "ahead"


def _by_plan(
    method: PlanMethod, files: PolicyFiles, calibration: Calibration, deadline_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = files.folder.resolve()
    weights = {f"gate.{name}": str(Path(file).resolve()) for name, file in method.arguments.items()}
    corrector = {"corrector": str(folder / PLANS / "corrector")} if method.proposer == "corrector" else {}
    draft = {
        "checkpoint": str(folder / "draft"),
        "backend": files.backend,
        "proposer": method.proposer,
        **corrector,
        "wait_policy": method.wait_policy,
        "gate.name": method.asks,
        "gate.threshold": calibration.threshold(method.label) if method.at is None else method.at,
        "draft_temperature": COOL,
        **weights,
        "deadline_s": deadline_s,
    }
    target = {"checkpoint": str(folder / PLANS / "target"), "backend": files.backend, "rule": "replace"}
    return draft, target
