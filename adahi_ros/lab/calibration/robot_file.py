# SPDX-License-Identifier: Apache-2.0
"""A robot's parameter file, read without ROS: what its node observes, by which policies, and when it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import contract_path, load_contract
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.parameter_sections import parameters_for, section_names
from adahi_ros.core.signature import Signature
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.lab.calibration.replayed_targets import Observed, asked_of, asked_once, observed
from adahi_ros.lab.calibration.target_inputs import Jpeg
from adahi_ros.lab.evaluation.loaded_policies import Policies
from adahi_ros.lab.methods.recommended import Recommendation
from adahi_ros.policies.backends import is_policy
from adahi_ros.robot.compatibility import contract_of_joints
from adahi_ros.vision.interface import QUALITIES, QUALITY

ROBOT, VERIFIER = "draft_policy", "target_verifier"
# As the node has them where the file says nothing; test/nodes holds that against the node.
DEFAULTS: Mapping[str, Any] = {
    "contract": "",
    "joint_names": ("plate_roll_joint", "plate_pitch_joint"),
    "command.joint_names": (),
    "command.field": "positions",
    "control_rate_hz": 20.0,
    "max_skew_s": 0.0,
    "max_age_s": 0.2,
    "proposer": "draft",
    "corrector": "",
    "wait_policy": "wait",
    "gate.name": "deviation",
    "verification.jpeg_quality": QUALITY,
    "verification.jpeg_budget_bytes": 0,
    "instruction": "",
    "draft_temperature": 1.0,
}

KINDS = {str: "a string", int: "an integer", float: "a number"}


@dataclass(frozen=True)
class RobotFile:
    """What a parameter file says of the robot's node, and of the verifier that it asks.

    Attributes:
        path: of the file.
        robot, verifier: their parameters, by full name.
        chosen: the target that a user gives beside the file; None for that of the file.
        said: what a user says to the target; '' for what the file says.
    """

    path: Path
    robot: Mapping[str, Any]
    verifier: Mapping[str, Any]
    chosen: Path | None = None
    said: str = ""

    @classmethod
    def absent(cls) -> RobotFile:
        """Return what stands in for a file where there is none."""
        return cls(Path("--params"), {}, {})

    @classmethod
    def read(cls, path: Path, namespace: str = "") -> RobotFile:
        """Read a file.

        Raises:
            ValueError: it is none, or has no section for the robot's node.
        """
        try:
            content = read_yaml(path)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        inside = f"/{namespace.strip('/')}" if namespace.strip("/") else ""
        robot, verifier = (parameters_for(content, f"{inside}/{node}") for node in (ROBOT, VERIFIER))
        if not robot:
            there = ", ".join(section_names(content)) or "no section"
            raise ValueError(f"{path}: has {there}, must have parameters of {inside}/{ROBOT}, or of /**")
        if verifier.get("checkpoint") == robot.get("checkpoint"):  # said to all nodes
            verifier.pop("checkpoint", None)
        return cls(path, robot, verifier)

    def with_options(
        self, contract: str | None, draft: Path | None, target: Path | None, instruction: str
    ) -> RobotFile:
        """Return it with what a user gives beside the file, which counts instead of what the file says."""
        given = {}
        if contract is not None:
            is_file = Path(contract).suffix in (".yaml", ".yml")
            given["contract"] = str(contract_path(contract).resolve()) if is_file else contract
        if draft is not None:
            given["checkpoint"] = str(draft.expanduser().resolve())
        if instruction:
            given["instruction"] = instruction
        chosen = None if target is None else target.expanduser()
        return replace(self, robot={**self.robot, **given}, chosen=chosen, said=instruction)

    def _value(self, name: str) -> Any:
        """Return a parameter of the robot; raises ValueError where it is of another type than the node's."""
        value, usual = self.robot.get(name, DEFAULTS[name]), DEFAULTS[name]
        kind = type(usual)
        if kind is tuple:
            if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
                raise ValueError(f"{self.path}: {name}: {value!r}, must be a list of strings")
            return tuple(each for each in value if each)  # ROS has no empty list: [''] is one
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(f"{self.path}: {name}: {value!r}, must be {KINDS[kind]}")
        return kind(value)

    @property
    def contract(self) -> Contract | None:
        """The contract that it names; None where joints and a task's state are observed.

        Raises:
            ValueError: there is none of that name, or it says nothing that can be used.
        """
        name = self._value("contract")
        return load_contract(name) if name else None

    @property
    def said_in(self) -> Path:
        """The file that says what is observed: that of the contract that it names, or itself."""
        name = self._value("contract")
        return contract_path(name) if name else self.path

    def contract_of(self, signature: Signature) -> Contract:
        """Return the contract that it names, else that of the names of joints for a draft of this signature.

        Raises:
            ValueError: they do not fit.
        """
        if self.contract is not None:
            return self.contract
        try:
            read = contract_of_joints(
                self._value("joint_names"),
                self._value("command.joint_names"),
                self._value("command.field"),
                self._value("control_rate_hz"),
                self._value("max_skew_s"),
                self._value("max_age_s"),
                signature,
            )
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None
        return replace(read, robot_type=self.robot_type)

    @property
    def robot_type(self) -> str:
        """That of the contract, else what it was calibrated for, else the folder of its draft."""
        if self.contract is not None:
            return self.contract.robot_type
        return str(self.robot.get("calibration.task", self.draft.parent.name))

    @property
    def calibrated(self) -> bool:
        """Whether it is a file of `adahi thresholds`, which has the thresholds of every gate."""
        return "calibration.task" in self.robot

    @property
    def draft(self) -> Path:
        """The policy on the robot.

        Raises:
            ValueError: none is named.
        """
        name = self.robot.get("checkpoint")
        if type(name) is not str or not name:
            raise ValueError(
                f"{self.path}: checkpoint: {name!r}, must be FOLDER/NAME of a policy, or give --draft"
            )
        return named(name, CHECKPOINTS)

    @property
    def jpeg(self) -> Jpeg:
        """How images are compressed that are sent to the target."""
        quality, budget = (self._value(f"verification.jpeg_{name}") for name in Jpeg._fields)
        low, high = QUALITIES
        if not low <= quality <= high:
            name = "verification.jpeg_quality"
            raise ValueError(f"{self.path}: {name}: {quality}, must be from {low} to {high}")
        return Jpeg(quality, budget)

    @property
    def draft_temperature(self) -> float:
        """At which the draft samples."""
        return float(self._value("draft_temperature"))

    @property
    def instruction(self) -> str:
        """What a target that is told in a sentence is told, until the topic `instruction` says otherwise."""
        return str(self._value("instruction"))

    @property
    def _executes_plans(self) -> bool:
        return bool(self._value("proposer") != DEFAULTS["proposer"])

    @property
    def by_plans(self) -> Recommendation | None:
        """How it goes by a target's plans; None where it does not.

        Raises:
            ValueError: what it says of that cannot be used.
        """
        if not self._executes_plans:
            return None
        threshold = self.robot.get("gate.threshold")
        if type(threshold) is not float:
            raise ValueError(f"{self.path}: gate.threshold: {threshold!r}, must be a floating-point number")
        proposer, wait_policy, gate = (self._value(name) for name in ("proposer", "wait_policy", "gate.name"))
        try:
            return Recommendation(proposer, wait_policy, gate, threshold)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None

    @property
    def plans(self) -> tuple[Path | None, Path | None]:
        """The target that plans and the corrector of its plans, where they are named."""
        if not self._executes_plans:
            return None, None
        corrector = self._value("corrector")
        return self.target, named(corrector, CHECKPOINTS) if corrector else None

    @property
    def target(self) -> Path | None:
        """The target that the verifier has, where it is named."""
        target = self.verifier.get("checkpoint")
        return named(target, CHECKPOINTS) if type(target) is str and target else None

    @property
    def policies(self) -> tuple[Path, Path]:
        """Draft and target: the target that a user gives, else that beside the draft, else the verifier's."""
        draft = self.draft
        beside = draft.with_name("target")
        return draft, self.chosen or (beside if self.target is None or is_policy(beside) else self.target)

    def observed(
        self,
        pair: Policies,
        bags: Sequence[Path],
        namespace: str,
        backend: str,
        seed: int,
        plans: tuple[Path | None, Path | None],
        folder: Path | None = None,
        keep_failures: bool = False,
        on_loss: OnLoss | None = None,
        on_steps: Callable[[int], None] = lambda steps: None,
    ) -> Observed:
        """Read bags of the robot, and have its target say what it plans there, where it must be asked.

        Args:
            pair: the loaded `policies`.
            bags: of it.
            namespace: of its topics.
            backend: of the policies.
            seed: of all draws.
            plans: see `replayed_targets.observed`; likewise the further ones.
            folder: keeps the answers of a target that is asked; None for that of the draft.
            keep_failures: whether episodes that failed count.
            on_loss: receives what a bag that was cut off lacks.
            on_steps: receives how many more steps are planned for.

        Raises:
            BagError: a bag cannot be used.
            TargetUnavailableError: the target is not to be had now.
            ValueError: something does not fit; names it.
        """
        draft, target = self.policies
        contract, wants = self.contract_of(pair.draft.signature), pair.target.signature
        asked = asked_of(
            *(bags, contract, self.said_in, namespace, target, pair.target, backend),
            seed=seed,
            jpeg=self.jpeg,
        )
        # Only a user's own sentence is a mistake where the target takes none.
        words = self.said or (self.instruction if wants.instruction else "")
        answers, once = folder or draft.parent, asked_once(target, wants)
        return observed(pair, asked, words, answers, once, plans, keep_failures, on_loss, on_steps)
