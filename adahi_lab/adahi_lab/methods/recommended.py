# SPDX-License-Identifier: Apache-2.0
"""The recommendation for a task, named `best`: config/best/TASK.yaml, which the nodes also read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from adahi_lab.evaluation.loaded_policies import PLANS
from adahi_lab.methods.actors import ON_ROBOT
from adahi_lab.methods.method import Method
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.gone_names import gone
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.loop import WAIT_POLICIES

ROBOT = "/draft_policy"


@dataclass(frozen=True)
class Recommendation:
    """How a robot executes the target's plans.

    Attributes:
        proposer: a key of `PROPOSERS`.
        wait_policy: one of `WAIT_POLICIES`.
        gate: name of the gate, a key of `GATES`.
        threshold: of the gate.
        proposer_arguments: of the proposer, by name; those without a value have their defaults.
    """

    proposer: str
    wait_policy: str
    gate: str
    threshold: float
    proposer_arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("proposer", self.proposer, tuple(PROPOSERS)),
            ("wait_policy", self.wait_policy, WAIT_POLICIES),
        ):
            if value not in allowed:
                raise ValueError(f"{name}: {value!r}{gone(value)}, must be one of {', '.join(allowed)}")
        ThresholdedGate(self.gate, self.threshold)

    @property
    def name(self) -> str:
        """The method's name in a calibration, which searches its threshold."""
        return f"{self.proposer}+{self.gate}"

    def method(self, best: Method) -> Method:
        """Return it as the complete method `best`."""
        return replace(
            best,
            proposer=self.proposer,
            gate=self.gate,
            at=self.threshold,
            delay=int(self.wait_policy == "ahead"),
            wait_policy=self.wait_policy,
            proposer_arguments=self.proposer_arguments,
            source=None,
        )


def _recommended(method: Method, task: str) -> Method:
    """Complete the method `best`: see `Method.source`.

    In one process, a robot that prefetches receives each reply at the step after.
    """
    return recommended(task).method(method) if task else replace(method, source=None)


BEST = Method(
    "best",
    "Best",
    "what we recommend: config/best/TASK.yaml",
    proposer="plan",
    acceptance="replace",
    source=_recommended,
)


def default_methods(task: str, checkpoints: Path) -> str:
    """Return the methods that `adahi demo` compares by default, separated by commas.

    Args:
        task: what `make` takes.
        checkpoints: folder; without plans, recommended methods cannot run.
    """
    if with_best("", task, checkpoints):
        return "best,adahi,plan_8,hybrid"
    return "adahi,hybrid,draft,target,random"


def with_best(methods: str, task: str, checkpoints: Path) -> str:
    """Return methods with `best` before them where a task has a recommendation and plans."""
    has_best = shipped(_relative(task)) and has_plans(checkpoints)
    return ",".join(filter(None, ("best" * has_best, methods)))


def has_plans(checkpoints: Path) -> bool:
    """Return whether a folder of checkpoints has a target that sends plans."""
    return (checkpoints / PLANS).is_dir()


@lru_cache(maxsize=8)
def recommended(task: str) -> Recommendation:
    """Return the recommendation for a task.

    Args:
        task: what `make` takes.

    Raises:
        ValueError: there is none, or the file is invalid; names file and field.
    """
    relative = _relative(task)
    if not shipped(relative):
        raise ValueError(f"best: nothing is recommended for the task {task!r}; there is no {relative}")
    path = asset(relative)
    try:
        robot: Mapping[str, Any] = parameters_for(read_yaml(path), ROBOT)
        when = robot["wait_policy"], str(robot["gate.name"]), float(robot["gate.threshold"])
        return Recommendation(robot["proposer.name"], *when, arguments_among(robot))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {ROBOT}: lacks {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def arguments_among(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proposer's arguments among the parameters of a robot's node, by full name.

    Without the file of a proposer with weights among `Policies`.
    """
    group = "proposer."
    given = {name.removeprefix(group): value for name, value in parameters.items() if name.startswith(group)}
    if given.pop("name") in ON_ROBOT:
        given.pop("file", None)
    return given


def _relative(task: str) -> str:
    return f"config/best/{make(task).spec.name}.yaml"
