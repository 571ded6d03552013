# SPDX-License-Identifier: Apache-2.0
"""A robot's parameter file, read without ROS: its node's observations, policies and gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adahi_lab.calibration.replayed_targets import Observed, observed, queried_once, query_of
from adahi_lab.calibration.target_inputs import Jpeg
from adahi_lab.evaluation.loaded_policies import PlanFiles, Policies
from adahi_lab.methods.recommended import Recommendation, arguments_among
from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import contract_path, load_contract
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.parameter_sections import section_names
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.backends import is_policy
from adahi_ros.vision.interface import QUALITIES, QUALITY

ROBOT, VERIFIER = "draft_policy", "target_verifier"
# The node's defaults; a test in test/nodes compares them with the node.
DEFAULTS: Mapping[str, Any] = {
    "contract": "",
    "proposer.name": "draft",
    "proposer.file": "",
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
    """The parameters of the robot's node and of its verifier, from a file.

    Attributes:
        path: of the file.
        robot, verifier: their parameters, by full name.
        chosen: the target that a user selects; None for that of the file.
        given_instruction: the user's instruction for the target; '' for that of the file.
    """

    path: Path
    robot: Mapping[str, Any]
    verifier: Mapping[str, Any]
    chosen: Path | None = None
    given_instruction: str = ""

    @classmethod
    def absent(cls) -> RobotFile:
        """Return a replacement for a missing file."""
        return cls(Path("--params"), {}, {})

    @classmethod
    def read(cls, path: Path, namespace: str = "") -> RobotFile:
        """Read a file.

        Raises:
            ValueError: it is no parameter file, or has no section for the robot's node.
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
        if verifier.get("checkpoint") == robot.get("checkpoint"):  # given for all nodes
            verifier.pop("checkpoint", None)
        return cls(path, robot, verifier)

    def with_options(
        self, contract: str | None, draft: Path | None, target: Path | None, instruction: str
    ) -> RobotFile:
        """Return it with the user's values, which override those of the file."""
        given = {}
        if contract is not None:
            is_file = Path(contract).suffix in (".yaml", ".yml")
            given["contract"] = str(contract_path(contract).resolve()) if is_file else contract
        if draft is not None:
            given["checkpoint"] = str(draft.resolve())
        if instruction:
            given["instruction"] = instruction
        chosen = target
        return replace(self, robot={**self.robot, **given}, chosen=chosen, given_instruction=instruction)

    def _value(self, name: str) -> Any:
        """Return a parameter of the robot; raises ValueError where its type differs from the node's."""
        value, usual = self.robot.get(name, DEFAULTS[name]), DEFAULTS[name]
        kind = type(usual)
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(f"{self.path}: {name}: {value!r}, must be {KINDS[kind]}")
        return kind(value)

    def _named(self, parameter: str, name: str) -> Path:
        """Return the path of a checkpoint; raises ValueError where its folder is missing."""
        try:
            return named(name, CHECKPOINTS)
        except FileNotFoundError as error:
            raise ValueError(f"{self.path}: {parameter}: {name!r}, must be FOLDER/NAME: {error}") from error

    @property
    def contract(self) -> Contract:
        """The contract named in the file.

        Raises:
            ValueError: none is named, or there is none of that name, or it is invalid.
        """
        return load_contract(self._value("contract"))

    @property
    def robot_type(self) -> str:
        """The name in the contract."""
        return self.contract.robot_type

    @property
    def calibrated(self) -> bool:
        """Whether it is a file of `adahi thresholds`, with the thresholds of every gate."""
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
        return self._named("checkpoint", name)

    @property
    def draftless(self) -> bool:
        """Whether the robot has no policy of its own: it executes plans of its target."""
        unnamed = not self.robot.get("checkpoint")
        return unnamed and (
            self._executes_plans or (self.chosen is not None and not self.robot.get("gate.name"))
        )

    @property
    def jpeg(self) -> Jpeg:
        """How images for the target are compressed."""
        quality, budget = (self._value(f"verification.jpeg_{name}") for name in Jpeg._fields)
        low, high = QUALITIES
        if not low <= quality <= high:
            name = "verification.jpeg_quality"
            raise ValueError(f"{self.path}: {name}: {quality}, must be from {low} to {high}")
        return Jpeg(quality, budget)

    @property
    def draft_temperature(self) -> float:
        """The temperature at which the draft samples."""
        return float(self._value("draft_temperature"))

    @property
    def instruction(self) -> str:
        """The instruction of a target that takes one, until the topic `instruction` has another."""
        return str(self._value("instruction"))

    @property
    def _executes_plans(self) -> bool:
        return bool(self._value("proposer.name") != DEFAULTS["proposer.name"])

    @property
    def by_plans(self) -> Recommendation | None:
        """How it executes a target's plans; None where it does not.

        Raises:
            ValueError: these parameters are invalid.
        """
        if not self._executes_plans:
            return None
        threshold = self.robot.get("gate.threshold")
        if type(threshold) is not float:
            raise ValueError(f"{self.path}: gate.threshold: {threshold!r}, must be a floating-point number")
        names = "proposer.name", "wait_policy", "gate.name"
        proposer, wait_policy, gate = (self._value(name) for name in names)
        try:
            own = arguments_among(self.robot)
            return Recommendation(proposer, wait_policy, gate, threshold, own)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None

    @property
    def plans(self) -> PlanFiles:
        """The target that plans, and what acts by its replies, where named."""
        if not self._executes_plans:
            return PlanFiles()
        acting, file = self._value("proposer.name"), self._value("proposer.file")
        named_here = acting in PlanFiles._fields and file
        return PlanFiles(self.target, **{acting: self._named("proposer.file", file)} if named_here else {})

    @property
    def target(self) -> Path | None:
        """The verifier's target, where named."""
        target = self.verifier.get("checkpoint")
        return self._named("checkpoint", target) if type(target) is str and target else None

    @property
    def policies(self) -> tuple[Path, Path]:
        """Draft and target: the user's target, else the one beside the draft, else the verifier's.

        Without a draft, the target twice.
        """
        if self.draftless and (target := self.chosen or self.target):
            return target, target
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
        plans: PlanFiles,
        folder: Path | None = None,
        keep_failures: bool = False,
        on_loss: OnLoss | None = None,
        on_steps: Callable[[int], None] = lambda steps: None,
    ) -> Observed:
        """Read bags of the robot; request its target's plans at their steps where needed.

        Args:
            pair: the loaded `policies`.
            bags: of the robot.
            namespace: of its topics.
            backend: of the policies.
            seed: of all draws.
            plans: see `replayed_targets.observed`.
            folder: stores the target's replies; None for the draft's folder.
            keep_failures: whether failed episodes count.
            on_loss: called with what a truncated bag lacks.
            on_steps: called with the number of steps that have just been planned.

        Raises:
            BagError: a bag cannot be used.
            TargetUnavailableError: the target is not available now.
            ValueError: parts do not match; names them.
        """
        draft, target = self.policies
        name, wants = self._value("contract"), pair.target.signature
        query = query_of(
            *(bags, self.contract, contract_path(name), namespace, target, pair.target, backend),
            seed=seed,
            jpeg=self.jpeg,
        )
        # Only an instruction from the user is an error if the target takes none.
        words = self.given_instruction or (self.instruction if wants.instruction else "")
        answers, once = folder or draft.parent, queried_once(target, wants)
        return observed(pair, query, words, answers, once, plans, keep_failures, on_loss, on_steps)
