# SPDX-License-Identifier: Apache-2.0
"""A method over DDS: parameters of the robot's and of the verifier's node."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.evaluation.loaded_policies import DRAFT_CODES, INTENTS, PLANS, PolicyFiles
from adahi_lab.methods.actors import CORRECTOR, DRAFT, ON_ROBOT
from adahi_lab.methods.method_names import COOL
from adahi_lab.methods.methods import on_task
from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.gates.registry import GATES
from adahi_ros.policies.intent.intent import at_target
from adahi_ros.proposers.draft import CODES
from adahi_ros.proposers.registry import PROPOSERS


def node_parameters(
    name: str,
    task: str,
    files: PolicyFiles,
    calibration: Calibration,
    deadline_s: float,
    lockstep: bool = False,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the draft policy node, and of the target verifier node.

    Args:
        name: of a method that a robot can run.
        task: what `make` takes.
        files: draft and target, and a target that plans.
        calibration: thresholds of the gates.
        deadline_s: for a reply that the robot waits for.
        lockstep: the world waits for every command; a reply that the robot does not wait for counts after the
            method's delay, as in an evaluation.

    Raises:
        ValueError: no robot can run it, or its gate was not calibrated.
    """
    method = on_task(name, task)
    files = files.of_method(calibration.task, method.checkpoints, method.backend)
    folder = files.folder.resolve()
    rule = ACCEPTANCES.get(method.acceptance, Acceptance)
    draft = {
        "checkpoint": str(folder / (DRAFT_CODES if method.reply == CODES else DRAFT)),
        "backend": files.backend,
        "gate.name": method.gate,
        "gate.threshold": method.threshold_in(calibration),
        "deadline_s": deadline_s,
        "proposer.name": method.proposer,
        "blend": method.blend,
        **_named("gate", method.gate_arguments, GATES, method.gate),
        **_named("proposer", method.proposer_arguments, PROPOSERS, method.proposer),
    }
    if method.horizon is not None:
        draft["execution_horizon"] = method.horizon
    if method.by_plans:
        late = {"wait_policy": "wait", "command.late_steps": method.delay}
        draft |= late if lockstep else {"wait_policy": method.wait_policy}
        draft |= rule.robot_parameters
        if method.verifiers > 1:
            backups = [f"/server_{number}" for number in range(2, method.verifiers + 1)]
            draft |= {"verification.backups": backups, "verification.hedge": "spread"}
        if method.proposer in (CORRECTOR, *INTENTS):
            draft["proposer.file"] = str(folder / PLANS / method.proposer)
        if method.proposer in INTENTS:
            draft |= {"fallback": "hold", "fallback_limit": 0}  # the draft does not know the goal
        elif DRAFT not in ON_ROBOT.get(method.proposer, (DRAFT,)):
            draft["draft_temperature"] = COOL  # of the draft that acts where there is no plan
    else:
        config = method.config(calibration)
        draft |= {
            "deviation.smoothing": config.smoothing,
            "deviation.normalization": config.normalization,
            "draft_temperature": config.draft_temperature,
        }
    planned = method.by_plans or method.horizon is not None
    target: dict[str, Any] = {
        "checkpoint": str(folder / PLANS / "target" if planned else folder / "target"),
        "backend": files.backend,
        "rule.name": method.acceptance,
        "agreement": method.agreement,
    }
    intent = folder / PLANS / method.proposer
    if method.proposer in INTENTS and at_target(intent):
        target["intent"] = str(intent)
    target |= _named("rule", method.acceptance_arguments, ACCEPTANCES, method.acceptance)
    if lockstep:
        target |= rule.lockstep_parameters
    return draft, target


def _named(
    group: str, arguments: Mapping[str, Any], registry: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Return the arguments of a component, a key of a registry, as parameters of a node in a group.

    Files have their whole paths. ROS takes no integer for a number.
    """
    known = signature(registry[name]).parameters if arguments else {}

    def parameter(name: str, value: Any) -> Any:
        if name == "file":
            return str(Path(value).resolve())
        return float(value) if name in known and type(known[name].default) is float else value

    return {f"{group}.{each}": parameter(each, value) for each, value in arguments.items()}


def goes_ahead(name: str, task: str) -> bool:
    """Return whether a method never waits for a reply, so that its world must run in real time.

    Raises:
        ValueError: no robot can run it.
    """
    method = on_task(name, task)
    return method.by_plans and method.wait_policy == "ahead"
