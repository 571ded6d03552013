# SPDX-License-Identifier: Apache-2.0
"""A method over DDS: parameters of the robot's and of the verifier's node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.lab.evaluation.loaded_policies import INTENTS, PLANS, PolicyFiles
from adahi_ros.lab.methods.actors import CORRECTOR
from adahi_ros.lab.methods.method_names import COOL
from adahi_ros.lab.methods.methods import on_task
from adahi_ros.policies.intent.intent import at_target


def node_parameters(
    name: str, task: str, files: PolicyFiles, calibration: Calibration, deadline_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the draft policy node, and of the target verifier node.

    Args:
        name: of a method that a robot can run.
        task: what `make` takes.
        files: draft and target, and a target that plans.
        calibration: thresholds of the gates.
        deadline_s: for a reply that the robot waits for.

    Raises:
        ValueError: no robot can run it, or its gate was not calibrated.
    """
    method = on_task(name, task)
    folder = files.folder.resolve()
    draft = {
        "checkpoint": str(folder / "draft"),
        "backend": files.backend,
        "gate.name": method.gate,
        "gate.threshold": method.threshold_in(calibration),
        "deadline_s": deadline_s,
    }
    if method.by_plans:
        draft |= {
            "proposer": method.proposer,
            "wait_policy": method.wait_policy,
            **{f"gate.{name}": str(Path(file).resolve()) for name, file in method.gate_arguments.items()},
        }
        draft |= {f"{method.proposer}.{name}": value for name, value in method.proposer_arguments.items()}
        if method.proposer == CORRECTOR:
            draft["corrector"] = str(folder / PLANS / CORRECTOR)
        if method.proposer in INTENTS:
            draft["intent"] = str(folder / PLANS / method.proposer)
            draft |= {"fallback": "hold", "fallback_limit": 0}  # the draft does not know the goal
        else:
            draft["draft_temperature"] = COOL
    else:
        config = method.config(calibration)
        draft |= {
            "deviation.smoothing": config.smoothing,
            "deviation.normalization": config.normalization,
            "draft_temperature": config.draft_temperature,
        }
    arguments = {
        f"{method.acceptance}.{name}": str(Path(value).resolve()) if name == "file" else value
        for name, value in method.acceptance_arguments.items()
    }
    checkpoint = folder / PLANS / "target" if method.by_plans else folder / "target"
    target = {"checkpoint": str(checkpoint), "backend": files.backend, "rule": method.acceptance}
    intent = folder / PLANS / method.proposer
    if method.proposer in INTENTS and at_target(intent):
        target["intent"] = str(intent)
    return draft, target | arguments


def goes_ahead(name: str, task: str) -> bool:
    """Return whether a method never waits for a reply, so that its world must run in real time.

    Raises:
        ValueError: no robot can run it.
    """
    method = on_task(name, task)
    return method.by_plans and method.wait_policy == "ahead"
