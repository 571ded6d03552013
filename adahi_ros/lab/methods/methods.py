# SPDX-License-Identifier: Apache-2.0
"""The methods that are compared: those of `METHODS`, and any gate with any rule, or on plans, by a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from adahi_ros.acceptance.interface import codes_differ
from adahi_ros.acceptance.registry import ACCEPTANCES, made, semantic_arguments
from adahi_ros.core.plan import LATEST
from adahi_ros.core.texts import abridged
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.gates.registry import GATES, ORACLE, WITHOUT_THRESHOLD
from adahi_ros.lab.evaluation.loaded_policies import Bench
from adahi_ros.lab.evaluation.rollout import Log, World, rollout
from adahi_ros.lab.methods.file_methods import FILE_GRAMMAR, FileMethod, file_method
from adahi_ros.lab.methods.harm_oracle import HARM_GRAMMAR, HarmOracleMethod, harm_method
from adahi_ros.lab.methods.named_numbers import SHOWN, named_arguments
from adahi_ros.lab.methods.oracle import OracleGate
from adahi_ros.lab.methods.plan_methods import GRAMMAR, PlanMethod, every, plan_method
from adahi_ros.lab.methods.proposer_methods import PROPOSER_GRAMMAR, proposer_method
from adahi_ros.lab.methods.recommended import BestMethod
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

OnStep = Callable[[int], None]
GATED = re.compile(r"(\w+):(\w+)(?::(\w+))?((?::\w+=[^:@=]+)*)")
COOL = 0.3  # a temperature at which the draft hardly ever makes a wild error


class Method(Protocol):
    """One way to share the work between robot and server."""

    @property
    def label(self) -> str:
        """For tables and pictures."""

    @property
    def about(self) -> str:
        """One line for people."""

    @property
    def gate(self) -> str | None:
        """A key of a calibration's thresholds; None without a gate."""

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """Return its gate and that gate's threshold; None without one.

        Raises:
            ValueError: the bench lacks what it needs.
        """

    def run(self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: OnStep) -> Log:
        """Run episodes of a world to their end."""


@dataclass(frozen=True)
class GatedMethod:
    """A gate on the robot, a rule at the verifier: what a robot can do.

    Attributes:
        label, about: see `Method`.
        gate: a key of `gates.GATES`.
        rule: a key of `ACCEPTANCES`.
        draft_temperature: at which the draft samples; None takes the calibration's.
        proposer: a key of `PROPOSERS`.
        arguments: of the rule.
    """

    label: str
    about: str
    gate: str
    rule: str = "speculative"
    draft_temperature: float | None = None
    proposer: str = "draft"
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def config(self, calibration: Calibration) -> ControllerConfig:
        """Return how its controller is configured."""
        config = calibration.controller(self.gate)
        if self.draft_temperature is None:
            return config
        return replace(config, draft_temperature=self.draft_temperature)

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        draft, target = bench.policies.draft.signature, bench.policies.target.signature
        fault = made(self.rule, self.arguments).compatible(draft, target)
        if fault is not None:
            raise ValueError(f"{self.label}: {self.rule}: {fault}")
        return self.gate, bench.calibration.threshold(self.gate)

    def run(self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: OnStep) -> Log:
        """See `Method`."""
        controller = Controller(bench.policies.draft, self.config(bench.calibration), self.proposer)
        verifier = TargetVerifier(bench.policies.target, self.rule, arguments=self.arguments)
        return rollout(world, controller, verifier, seed, episodes, on_step, across=bench.across)


@dataclass(frozen=True)
class OracleMethod:
    """Verify where the target really is likely to reject: what no robot can know, and no upper bound."""

    label: str
    about: str
    gate: str = ORACLE

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        fault = codes_differ(bench.policies.draft.signature, bench.policies.target.signature)
        if fault is not None:
            raise ValueError(f"{self.label}: {fault}")
        return self.gate, bench.calibration.threshold(self.gate)

    def run(self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: OnStep) -> Log:
        """See `Method`."""
        policies = bench.policies
        at, gate = bench.calibration.threshold(self.gate), OracleGate(policies.target, world)
        config = replace(bench.calibration.controller("always"), trigger=ThresholdedGate(self.gate, at, gate))
        controller, verifier = Controller(policies.draft, config), TargetVerifier(policies.target)
        return rollout(world, controller, verifier, seed, episodes, on_step, across=bench.across)


@dataclass(frozen=True)
class DistilledMethod:
    """What was distilled from the target that plans, alone: nothing is ever sent."""

    label: str
    about: str
    gate: str = "never"

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        self._policy(bench)
        return self.gate, 0.0

    def run(self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: OnStep) -> Log:
        """See `Method`."""
        policy = self._policy(bench)
        controller = Controller(policy, ControllerConfig(ThresholdedGate(self.gate, 0.0)))
        verifier = TargetVerifier(policy, "replace")  # of nothing; the target itself need not be run
        return rollout(world, controller, verifier, seed, episodes, on_step, across=bench.across)

    def _policy(self, bench: Bench) -> Policy:
        if bench.policies.distilled is None:
            raise ValueError(
                f"{self.label}: there is no checkpoint distilled beside these policies' plans; 'adahi train "
                "TASK --only distilled' makes one by a recipe such as config/recipes/ball-plans.yaml"
            )
        return bench.policies.distilled


class Methods(dict[str, Method]):
    """By name.

    Methods without an entry: GATE:RULE or GATE:RULE:PROPOSER, of what the registries have, with arguments of
    the rule behind it, as in always:semantic:file=head.safetensors:tolerance=0.3; and what `plan_method`,
    `proposer_method`, `harm_method` and `file_method` know.
    """

    def __missing__(self, name: str) -> Method:
        """Return the method that such a name says.

        Raises:
            KeyError: it is no such name.
            ValueError: it is one, but for a number in it.
        """
        known = plan_method(name) or proposer_method(name) or harm_method(name) or file_method(name)
        if known is not None:
            return known
        told = GATED.fullmatch(name)
        gate, rule, proposer = ("", "", "") if told is None else (told[1], told[2], told[3] or "draft")
        if told is None or gate not in GATES or rule not in ACCEPTANCES or proposer not in PROPOSERS:
            raise KeyError(name)
        return GatedMethod(name, "", gate, rule, proposer=proposer, arguments=named_arguments(name, told[4]))

    def __contains__(self, name: object) -> bool:
        """Whether `[name]` returns one; raises as it does, but for KeyError."""
        try:
            return bool(self[str(name)])
        except KeyError:
            return False


PLANS = (2, 4, 8)  # steps; of plans that need no entry, these are compared by default

METHODS = Methods(
    {
        "adahi": GatedMethod("ADAHI", "verify where the action deviates", "deviation"),
        "hybrid": GatedMethod("Hybrid", "verify every step", "always"),
        "draft": GatedMethod("Draft only", "never ask the target", "never"),
        "target": GatedMethod(
            "Target only", "the target acts, every observation is sent", "always", "replace"
        ),
        "random": GatedMethod("Random", "verify at random, at ADAHI's rate", "random"),
        "uncertainty": GatedMethod("Uncertainty", "verify where the draft was unsure", "uncertainty"),
        "random_cool": GatedMethod(
            "Cool random", f"at random, the draft at temperature {COOL}", "random", draft_temperature=COOL
        ),
        "oracle": OracleMethod("Oracle", "verify where the target is likely to reject"),
        "distilled": DistilledMethod("Distilled", "a small policy distilled from the target, alone"),
        "best": BestMethod("Best", "what we recommend: config/best/TASK.yaml"),
        **{f"plan_{steps}": every("plan", steps) for steps in PLANS},
    }
)

DRAFTLESS = ("target",)  # the robot drafts at every step of the others


def gates_of_methods(names: Iterable[str] = METHODS) -> dict[str, str]:
    """Return the gate of every method, or of some, whose rate of transmission a threshold decides."""
    gates = {name: METHODS[name].gate for name in names}
    return {name: gate for name, gate in gates.items() if gate is not None and gate not in WITHOUT_THRESHOLD}


def parse_methods(text: str, on_air: bool = False, own: bool = False) -> list[str]:
    """Split a comma-separated list of methods.

    Args:
        text: the list.
        on_air: only what a robot can do over ROS is allowed.
        own: classes in files are allowed.

    Raises:
        ValueError: one that is not allowed, or cannot be had of its file, or none.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))

    def allows(method: Method) -> bool:
        return own if isinstance(method, FileMethod) else runs_on_robot(method) or not on_air

    unknown = [name for name in names if name not in METHODS or not allows(METHODS[name])]
    if unknown or not names:
        allowed = [name for name, method in METHODS.items() if runs_on_robot(method) or not on_air]
        refused = ", ".join(abridged(name, SHOWN) for name in unknown)
        raise ValueError(
            f"methods: {refused or text!r}, must be of {', '.join(allowed)}, or GATE:RULE of the "
            f"gates {', '.join(GATES)} and the rules {', '.join(ACCEPTANCES)}"
            f", or {GRAMMAR}"
            + f", or {PROPOSER_GRAMMAR}, or {HARM_GRAMMAR}" * (not on_air)
            + f", or {FILE_GRAMMAR}" * own
        )
    for name in names:
        method = METHODS[name]
        if isinstance(method, FileMethod):
            method.told()  # says what is wrong with it
    return names


def for_task(text: str, task: str, folder: Path) -> str:
    """Return methods as they are on a task: its name for {task}, for {checkpoints} its policies' folder.

    Args:
        text: as `parse_methods` takes it.
        task: by its spec's name.
        folder: of its policies.
    """
    return text.replace("{task}", task).replace("{checkpoints}", str(folder))


def on_every_task(plans: bool) -> list[str]:
    """Return the names in `METHODS` of those that any task has, not what is recommended, or was distilled.

    Args:
        plans: each has a target that plans, too.
    """
    return [
        name
        for name, method in METHODS.items()
        if not isinstance(method, BestMethod | DistilledMethod)
        and (plans or not isinstance(method, PlanMethod))
    ]


def goes_by_plans(method: Method) -> bool:
    """Return whether a method, as it is on any task, goes on by plans of the target."""
    if isinstance(method, FileMethod):
        return method.told().by_plans
    return not method.drafts if isinstance(method, HarmOracleMethod) else isinstance(method, PlanMethod)


RULE_TOLD = signature(semantic_arguments).parameters.keys()
"""Arguments of a rule that the verifier's node has parameters for."""


def runs_on_robot(method: Method) -> bool:
    """Return whether a robot can run a method over ROS."""
    if isinstance(method, PlanMethod):
        # Of a gate's arguments, a robot's node has a parameter for its file alone.
        return method.blend == LATEST and method.late == 0 and method.arguments.keys() <= {"file"}
    if isinstance(method, GatedMethod):
        return method.proposer == "draft" and method.arguments.keys() <= RULE_TOLD
    return isinstance(method, BestMethod)


def gated(name: str) -> GatedMethod:
    """Return a method of a draft that a robot can run.

    Raises:
        ValueError: it is another.
    """
    method = METHODS[parse_methods(name, on_air=True)[0]]
    if not isinstance(method, GatedMethod):
        raise ValueError(f"methods: {name}, must be one that drafts")
    return method


def on_task(name: str, task: str) -> GatedMethod | PlanMethod:
    """Return a method that a robot can run, as it is on a task.

    Raises:
        ValueError: it is another; or nothing is recommended for the task.
    """
    method = METHODS[parse_methods(name, on_air=True)[0]]
    if isinstance(method, BestMethod):
        return method.on(task)
    assert isinstance(method, GatedMethod | PlanMethod)
    return method
