# SPDX-License-Identifier: Apache-2.0
"""The YAML file of a fleet: policies, their replicas, and limits of the robots' requests.

policies:                        # the first is the default
  kitchen:
    checkpoint: kitchen/plans/target
    replicas: 2                  # or {least: 1, most: 4, under_way: 2}: as many as the load needs
    num_cpus: 1                  # for each replica
robots: {quota_hz: 100, deadline_s: 1.0, late: answer}
ray: {num_cpus: 2}               # of a Ray started on this machine; or {address: auto}, or HOST:PORT
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.schema import Schema, Text, above, load, must, one_of, shown, within
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.policies.registry import BACKENDS, COMPUTE, DTYPES
from adahi_ros.server.ray.start_condition import StartCondition, start_condition
from adahi_ros.server.request_queue import LATEST_S
from adahi_ros.server.schedule import LATE
from adahi_ros.server.service import TARGETS_MOST
from adahi_ros.server.verifier import AGREEMENTS, SAMPLES

MOST_CPUS = 4096
MOST_MIB = float(1 << 24)
UNDER_WAY = 2
Count = Annotated[int, within(1, 1024, "an integer")]
Processors = Annotated[float, within(0.0, MOST_CPUS)]


class FleetFileError(ValueError):
    """A fleet's file cannot be used; the message names it, the field, its value and what is allowed."""


@dataclass(frozen=True)
class Replicas(Schema):
    """Number of a policy's replicas.

    Attributes:
        least, most: bounds; if they differ, Ray Serve adapts the number to the load.
        objective_ms: adapt it so that the 95th percentile of a request's time at the replicas stays below;
            0: by the requests in progress.
        memory_mib: of each, which its machine must have; 0 for any.
        budget_mib: of all together; there are never more than fit in; 0 for no budget.
        under_way: batches per replica at once: one is computed, others are in transit.
    """

    least: Count = 1
    most: Count = 1
    under_way: Annotated[int, within(1, 64, "an integer")] = UNDER_WAY
    objective_ms: Annotated[float, within(0.0, 60_000.0)] = 0.0
    memory_mib: Annotated[float, within(0.0, MOST_MIB)] = 0.0
    budget_mib: Annotated[float, within(0.0, MOST_MIB)] = 0.0

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        """See `Schema`: the default of `most` is `least`."""
        return {"most": values.get("least", 1), **values}

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ValueError(f"most: {self.most}, must be at least {self.least}, what `least` is")
        if self.budget_mib and not self.memory_mib:
            raise ValueError("memory_mib: 0, must be given with a budget")
        if self.budget_mib and self.least * self.memory_mib > self.budget_mib:
            needed = f"{self.least * self.memory_mib:g}, for `least`"
            raise ValueError(f"budget_mib: {self.budget_mib:g}, must be at least {needed}")

    @property
    def fitting(self) -> int:
        """The largest number of replicas, within the budget of memory."""
        return min(self.most, int(self.budget_mib // self.memory_mib)) if self.budget_mib else self.most


@dataclass(frozen=True)
class Rule(Schema):
    """The rule for drafts.

    Attributes:
        name: of the rule.
        arguments: other keys are arguments of the rule.
    """

    name: Annotated[str, one_of((BY_TARGET, *ACCEPTANCES))] = BY_TARGET
    arguments: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        """See `Schema`: other keys than `name` are arguments."""
        given = {key: value for key, value in values.items() if key not in ("name", "arguments")}
        kept: dict[object, object] = {key: values[key] for key in values if key == "name"}
        return {**kept, "arguments": given} if given else values

    def __post_init__(self) -> None:
        known = {} if self.name == BY_TARGET else arguments_of(ACCEPTANCES[self.name])
        for name, value in self.arguments.items():
            if name not in known:
                raise ValueError(f"{name}: unknown, must be one of {', '.join(['name', *known])}")
            self.arguments[name] = known[name].checked(value)


@dataclass(frozen=True)
class FleetPolicy(Schema):
    """A policy of a fleet.

    Attributes:
        checkpoint, backend, device, dtype, compile, rule, temperature, agreement, samples,
            added_compute_s, intent: see the parameters of the verifier's node.
        batch: largest number of robots in a batch.
        replicas: how many.
        num_cpus, num_gpus: of each replica; may be fractions.
        start_condition: what must hold before a replica loads the policy; None for nothing.
        name: that requests use; the policy's key in the file.
    """

    checkpoint: Text
    backend: Annotated[str, one_of(sorted(BACKENDS))] = "onnxruntime"
    device: Text | None = None
    dtype: Annotated[str, one_of(DTYPES)] | None = None
    compile: bool | None = None
    rule: Rule = Rule()
    temperature: Annotated[float, within(1e-3, 100.0)] = 1.0
    agreement: Annotated[str, one_of(AGREEMENTS)] = "none"
    samples: Count = SAMPLES
    added_compute_s: Annotated[float, within(0.0, 60.0)] = 0.0
    intent: Text | None = None
    batch: Count = 16
    replicas: Replicas = Replicas()
    num_cpus: Processors = 1.0
    num_gpus: Processors = 0.0
    start_condition: StartCondition | None = None
    name: str = ""

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        """See `Schema`: a single number of replicas is both least and most."""
        replicas, condition = values.get("replicas"), values.get("start_condition")
        if isinstance(rule := values.get("rule"), str):
            raise ValueError(f"rule: {shown(rule)}, must be a mapping since 0.4.0, such as {{name: replace}}")
        if isinstance(replicas, int):
            values["replicas"] = {"least": replicas}
        if isinstance(condition, dict):
            values["start_condition"] = start_condition(condition)
        return values

    @property
    def compute(self) -> dict[str, Any]:
        """Place and way of computing: the given fields among `COMPUTE`."""
        return {name: getattr(self, name) for name in COMPUTE if getattr(self, name) is not None}


@dataclass(frozen=True)
class Robots(Schema):
    """Parameters of the verifier's group `batch`; None keeps the default."""

    quota_hz: Annotated[float, within(0.0, 1e6)] | None = None
    deadline_s: Annotated[float, above(0.0, LATEST_S)] | None = None
    late: Annotated[str, one_of(LATE)] | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class RayCluster(Schema):
    """The Ray that computes.

    Attributes:
        address: of a running Ray; empty to start one on this machine.
        num_cpus: for replicas of a Ray that is started; 0 for all of this machine.
    """

    address: Text = ""
    num_cpus: Annotated[int, within(1, MOST_CPUS, "an integer")] = 0

    def __post_init__(self) -> None:
        if self.address and self.num_cpus:
            raise ValueError("num_cpus: must not be given with address: a running Ray has its own number")


def _is_name(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= NAME_LENGTH


Name = Annotated[str, must(f"have at most {NAME_LENGTH} characters", _is_name)]


@dataclass(frozen=True)
class Fleet(Schema):
    """A fleet's file.

    Attributes:
        policies: by name; the first is the default.
        robots: limits of their requests.
        ray: that computes.
    """

    policies: Annotated[dict[Name, FleetPolicy], Field(min_length=1, max_length=TARGETS_MOST)]
    robots: Robots = Robots()
    ray: RayCluster = RayCluster()

    def __post_init__(self) -> None:
        applications: dict[str, str] = {}
        for name, policy in self.policies.items():
            if policy.name:
                raise ValueError(f"policies.{name}.name: {policy.name!r}, must be left out")
            before = applications.setdefault(application_of(name), name)
            if before != name:
                raise ValueError(
                    f"policies: {name!r}, must differ from {before!r} in letters, digits or _: Ray Serve "
                    "replaces other characters by -"
                )

    @property
    def named(self) -> tuple[FleetPolicy, ...]:
        """The policies with their names."""
        return tuple(replace(policy, name=name) for name, policy in self.policies.items())


def read_fleet(path: Path) -> Fleet:
    """Read a fleet's file.

    Raises:
        FleetFileError: it cannot be read or used.
    """
    try:
        return load(Fleet, path)
    except ValueError as error:
        raise FleetFileError(str(error)) from None
    except OSError as error:
        raise FleetFileError(f"{path}: {error}") from None


def application_of(name: str) -> str:
    """Return the name of a policy's application on Ray Serve, which allows fewer characters."""
    return "adahi-" + re.sub(r"[^A-Za-z0-9_-]", "-", name)
