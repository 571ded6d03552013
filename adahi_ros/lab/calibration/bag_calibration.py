# SPDX-License-Identifier: Apache-2.0
"""Calibrating a robot's gates on its bags, and what its parameter file is to say then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import contract_path, load_contract
from adahi_ros.core.parameter_sections import nested
from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.lab.calibration.calibrate import OF_PLANS, RATE, calibrate_recorded, methods_to_calibrate
from adahi_ros.lab.calibration.replay import check_sizes, load_pair
from adahi_ros.lab.calibration.replayed_targets import asked_of, asked_once, observed
from adahi_ros.lab.calibration.robot_file import RobotFile
from adahi_ros.lab.calibration.target_inputs import AS_BY_DEFAULT
from adahi_ros.lab.calibration.target_replies import asking_rate
from adahi_ros.safety.named_limits import limits_of_task

SEARCHED = tuple(gate for gate in OF_PLANS if gate not in ("learned", "online"))  # have a threshold, no file

NO_CONTRACT = "contract: none, must be given with a bag, or be in the file of --params"


@dataclass(frozen=True)
class CalibratedRobot:
    """A robot that is to be calibrated.

    Attributes:
        contract: a shipped one's name, or a file; None for that of `file`.
        draft: its policy; None for that of `file`.
        target: of the verifier; None for that beside the draft, else that of `file`.
        instruction: what the target is told until a bag says otherwise; '' for what `file` says.
        file: its parameters, where there are some.
    """

    contract: str | None
    draft: Path | None
    target: Path | None
    instruction: str = ""
    file: RobotFile | None = None

    @property
    def read(self) -> Contract | None:
        """What is observed; None where names of joints in the file say so.

        Raises:
            ValueError: nothing says so, or it cannot be used.
        """
        if self.contract is not None:
            return load_contract(self.contract)
        if self.file is None:
            raise ValueError(NO_CONTRACT)
        return self.file.contract

    @property
    def said_in(self) -> Path:
        """The file that says so; raises as `read`."""
        if self.contract is not None:
            return contract_path(self.contract)
        if self.file is None:
            raise ValueError(NO_CONTRACT)
        return self.file.said_in

    @property
    def robot_type(self) -> str:
        """What it is called; raises as `read`."""
        read = self.read
        if read is not None:
            return read.robot_type
        assert self.file is not None
        return self.file.robot_type

    @property
    def policies(self) -> tuple[Path, Path]:
        """Draft and target.

        Raises:
            ValueError: nothing names a draft.
        """
        if self.draft is None and self.file is None:
            raise ValueError("draft: none, must be given with a bag, or be in the file of --params")
        draft = self.file.draft if self.draft is None and self.file is not None else self.draft
        assert draft is not None
        draft = draft.expanduser()
        if self.target is not None:
            return draft, self.target.expanduser()
        return draft, draft.with_name("target") if self.file is None else self.file.target_of(draft)


class Calibrated(NamedTuple):
    """What came of bags.

    Attributes:
        found: thresholds of the gates.
        node: parameters of the robot's node beside these.
        verifier: of the verifier's; none where only the robot's are to be written.
    """

    found: Calibration
    node: dict[str, Any]
    verifier: dict[str, Any]


def calibrate_bags(
    robot: CalibratedRobot,
    bags: Sequence[Path],
    namespace: str,
    backend: str,
    rate: float | None,
    seed: int,
    smoothing: float | None = None,
    normalization: str | None = None,
    draft_temperature: float | None = None,
    on_loss: OnLoss | None = None,
    on_steps: Callable[[int], None] = lambda steps: None,
    say: Callable[[str], None] = lambda line: None,
) -> Calibrated:
    """Calibrate every gate of a robot in open loop, on what it has observed.

    Where the robot's file says that it goes by plans, its own gate is among them.

    Args:
        robot: which.
        bags: of it.
        namespace: of its topics.
        backend: of the policies.
        rate: transmission rate to reach; None for what is usual of a robot that drafts, and of one that goes
            by plans for what has half of each plan gone by.
        seed: of all draws.
        smoothing: see `calibrate`.
        normalization: likewise.
        draft_temperature: likewise; None for that of the robot's file, else 1.
        on_loss: see `read_bag`.
        on_steps: told how many more steps a target has planned for.
        say: told what is being done.

    Raises:
        BagError: a bag cannot be used.
        TargetUnavailableError: the target is not to be had now.
        ValueError: something does not fit; names it.
    """
    file, read, (draft, target) = robot.file, robot.read, robot.policies
    by_plans = None if file is None else file.by_plans
    say("reading")
    pair = load_pair(draft, target, backend)
    if read is None:
        assert file is not None
        read = file.contract_of(pair.draft.signature)
    jpeg = AS_BY_DEFAULT if file is None else file.jpeg
    of_file = "" if file is None or not pair.target.signature.instruction else file.instruction
    seen = observed(
        pair,
        asked_of(bags, read, robot.said_in, namespace, target, pair.target, backend, seed=seed, jpeg=jpeg),
        robot.instruction or of_file,
        draft.parent,
        asked_once(target, pair.target.signature),
        _plans(robot, target),
        on_loss=on_loss,
        on_steps=on_steps,
    )
    check_sizes(seen.policies.draft.signature, seen.recorded)
    if draft_temperature is None:
        draft_temperature = 1.0 if file is None else file.draft_temperature
    plans = seen.policies.plans
    if rate is None:
        rate = RATE if by_plans is None or plans is None else asking_rate(plans.signature.horizon)
    methods = methods_to_calibrate(seen.policies)
    own = () if by_plans is None or by_plans.gate not in SEARCHED else (by_plans.name,)
    how = smoothing, normalization, draft_temperature
    found = calibrate_recorded(seen.policies, seen.recorded, rate, seed, *how, say, [*methods, *own])
    node, verifier = _of_file(robot)
    for name in own:
        node["gate"]["threshold"] = found.thresholds[name]
        drafts = {gate: value for gate, value in found.thresholds.items() if gate != name}
        rates = found.figures["measured_rates"]
        rates[node["gate"]["name"]] = rates.pop(name)
        found = replace(found, thresholds=drafts)
    return Calibrated(found, node, verifier)


def _plans(robot: CalibratedRobot, target: Path) -> tuple[Path | None, Path | None]:
    """Return the target that plans and the corrector of its plans, where the robot goes by plans."""
    if robot.file is None or robot.file.by_plans is None:
        return None, None
    named, corrector = robot.file.plans
    return target if robot.target is not None or named is None else named, corrector


def _of_file(robot: CalibratedRobot) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what robot and verifier are told beside what is calibrated."""
    draft, target = robot.policies
    limits = limits_of_task(robot.robot_type)
    told: dict[str, Any] = {"safety.limits": limits} if limits else {}
    verifier: dict[str, Any] = {}
    if robot.file is not None:
        by_plans = robot.file.by_plans is not None
        replaced = ("calibration.", "deviation.", *(() if by_plans else ("gate.",)))
        said = robot.file.robot.items()
        told |= {name: value for name, value in said if not name.startswith(replaced)}
        if robot.file.target is not None:
            verifier = nested(robot.file.verifier)
            if robot.target is not None:
                verifier["checkpoint"] = str(target.resolve())
    if robot.instruction:
        told["instruction"] = robot.instruction
    if robot.draft is not None:
        told["checkpoint"] = str(draft.resolve())
    if robot.contract is not None:
        is_file = Path(robot.contract).suffix in (".yaml", ".yml")
        told["contract"] = str(contract_path(robot.contract).resolve()) if is_file else robot.contract
    first = {name: told[name] for name in ("checkpoint", "contract") if name in told}
    return nested(first | told), verifier
