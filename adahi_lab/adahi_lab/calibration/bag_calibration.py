# SPDX-License-Identifier: Apache-2.0
"""Calibrates a robot's gates on its bags, and returns the values of its parameter file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from adahi_lab.calibration.calibrate import OF_PLANS, Wanted, calibrate_recorded, methods_to_calibrate
from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.replay import check_sizes, load_pair
from adahi_lab.calibration.robot_file import RobotFile
from adahi_lab.calibration.target_replies import asking_rate
from adahi_lab.evaluation.loaded_policies import INTENTS
from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.core.parameter_sections import nested
from adahi_ros.safety.named_limits import limits_of_task

SEARCHED = tuple(gate for gate in OF_PLANS if gate not in ("change", "online"))  # have a threshold


class Calibrated(NamedTuple):
    """The result of a calibration on bags.

    Attributes:
        found: thresholds of the gates.
        node: parameters of the robot's node beside these.
        verifier: of the verifier's; none where only the robot's are to be written.
    """

    found: Calibration
    node: dict[str, Any]
    verifier: dict[str, Any]


def calibrate_bags(
    robot: RobotFile,
    bags: Sequence[Path],
    namespace: str,
    backend: str,
    wanted: Wanted,
    seed: int,
    on_loss: OnLoss | None = None,
    on_steps: Callable[[int], None] = lambda steps: None,
    say: Callable[[str], None] = lambda line: None,
) -> Calibrated:
    """Calibrate every gate of a robot in open loop, on its recorded observations.

    If the robot executes plans, its own gate is among them; if it acts by intents, only for a given rate.

    Args:
        robot: its parameters.
        bags: of the robot.
        namespace: of its topics.
        backend: of the policies.
        wanted: the goal of the calibration. By default, a robot that executes plans executes half of each
            plan; the default temperature is that of the robot's file.
        seed: of all draws.
        on_loss: see `read_bag`.
        on_steps: called with the number of steps that a target has just planned.
        say: called with a description of each stage.

    Raises:
        BagError: a bag cannot be used.
        TargetUnavailableError: the target is not available now.
        ValueError: parts do not match; names them.
    """
    by_plans, (draft, target), plans = robot.by_plans, robot.policies, robot.plans
    say("reading")
    pair = load_pair(draft, target, backend, robot.contract if robot.draftless else None)
    if by_plans is not None:
        plans = plans._replace(plans=robot.chosen or plans.plans or target)
    if wanted.rate is not None and by_plans is not None and by_plans.gate not in SEARCHED:
        raise ValueError(
            f"--rate: {wanted.rate:g}, must be left out: the threshold of the gate {by_plans.gate!r} of "
            "--params is not searched; `adahi bag evaluate` compares methods that end with @THRESHOLD"
        )
    own = () if by_plans is None or by_plans.gate not in SEARCHED else (by_plans.name,)
    if wanted.rate is None and by_plans is not None and by_plans.proposer in INTENTS:
        own = ()  # how old an intent may be does not follow from the length of a plan
    if not own:
        plans = plans.without_intents()
    seen = robot.observed(pair, bags, namespace, backend, seed, plans, on_loss=on_loss, on_steps=on_steps)
    check_sizes(seen.policies.draft.signature, seen.recorded)
    if wanted.draft_temperature is None:
        wanted = replace(wanted, draft_temperature=robot.draft_temperature)
    planner = seen.policies.plans
    if wanted.rate is None and by_plans is not None and planner is not None:
        wanted = replace(wanted, rate=asking_rate(planner.signature.horizon))
    wanted = replace(wanted, methods=[*methods_to_calibrate(seen.policies), *own])
    found = calibrate_recorded(seen.policies, seen.recorded, wanted, seed, say)
    node, verifier = _of_file(robot)
    for name in own:
        node["gate"]["threshold"] = found.thresholds[name]
        drafts = {gate: value for gate, value in found.thresholds.items() if gate != name}
        rates = found.figures["measured_rates"]
        rates[node["gate"]["name"]] = rates.pop(name)
        found = replace(found, thresholds=drafts)
    return Calibrated(found, node, verifier)


def _of_file(robot: RobotFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of robot and verifier that are not calibrated."""
    limits = limits_of_task(robot.robot_type)
    replaced = ("calibration.", "deviation.", *(() if robot.by_plans is not None else ("gate.",)))
    kept = {name: value for name, value in robot.robot.items() if not name.startswith(replaced)}
    first = {name: kept[name] for name in ("checkpoint", "contract") if name in kept}
    verifier: dict[str, Any] = {}
    if robot.target is not None:
        verifier = nested(robot.verifier)
        if robot.chosen is not None:
            verifier["checkpoint"] = str(robot.chosen.resolve())
    return nested(first | ({"safety.limits": limits} if limits else {}) | kept), verifier
