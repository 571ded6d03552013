# SPDX-License-Identifier: Apache-2.0
"""The YAML file of a fleet: which policies a verifier serves, on how many replicas, and what robots may ask.

policies:                        # the first is what robots get that name none
  kitchen:
    checkpoint: kitchen/plans/target
    replicas: 2                  # or {least: 1, most: 4, under_way: 2}: as many as the load needs
    num_cpus: 1                  # of each replica
robots: {quota_hz: 100, deadline_s: 1.0, late: answer}
ray: {num_cpus: 2}               # of a Ray that is started here; or {address: auto}, or HOST:PORT
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from adahi_ros.acceptance.interface import WITHIN
from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.policies.registry import BACKENDS, COMPUTE, DTYPES
from adahi_ros.policies.remote.target_fields import flag, known_only, mapping, one_of, positive, text, whole
from adahi_ros.protocol.request import ROUND_TRIP_MS
from adahi_ros.server.request_queue import LATEST_S
from adahi_ros.server.served_targets import TARGETS_MOST
from adahi_ros.server.verifier import AGREEMENTS, SAMPLES

MOST_REPLICAS = 1024
MOST_CPUS = 4096.0
UNDER_WAY = 2
LATE = ("answer", "refuse")


class FleetFileError(ValueError):
    """A fleet's file cannot be used; the message names it, the field, its value and what is allowed."""


@dataclass(frozen=True)
class Replicas:
    """How many replicas a policy has.

    Attributes:
        least, most: there are; Ray Serve adds some, and takes some away, where these differ.
        under_way: batches of each at the same time: one is computed, others are on the way.
    """

    least: int = 1
    most: int = 1
    under_way: int = UNDER_WAY


@dataclass(frozen=True)
class FleetPolicy:
    """A policy of a fleet: what a replica is made of. By its fields as the file and the node have them.

    Attributes:
        name: by which robots ask.
        checkpoint, backend, compute, rule, temperature, distance, semantic, agreement, samples,
            added_compute_s: see the parameters of the verifier's node.
        batch: robots that are computed at once, at most.
        replicas: how many.
        num_cpus, num_gpus: what each of them is given; parts of one may be.
    """

    name: str
    checkpoint: str
    backend: str = "onnxruntime"
    compute: Mapping[str, Any] = field(default_factory=dict)
    rule: str = BY_TARGET
    temperature: float = 1.0
    distance: float = WITHIN
    semantic: Mapping[str, Any] = field(default_factory=dict)
    agreement: str = "none"
    samples: int = SAMPLES
    added_compute_s: float = 0.0
    batch: int = 16
    replicas: Replicas = Replicas()
    num_cpus: float = 1.0
    num_gpus: float = 0.0


@dataclass(frozen=True)
class Fleet:
    """What a fleet's file says.

    Attributes:
        policies: at least one; the first is what robots get that name none.
        robots: what it says of the parameters of the verifier's group `batch`, by their names.
        address: of a Ray that is there; empty for one that is started here.
        num_cpus: that a Ray which is started here may give to replicas; 0 for all of this machine.
    """

    policies: tuple[FleetPolicy, ...]
    robots: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""
    num_cpus: int = 0


def read_fleet(path: Path) -> Fleet:
    """Read a fleet's file.

    Raises:
        FleetFileError: it cannot be read or used.
    """
    try:
        return fleet_of(read_yaml(path))
    except (OSError, ValueError) as error:
        raise FleetFileError(f"{path}: {error}") from None


def fleet_of(content: object) -> Fleet:
    """Return what a fleet's file says.

    Raises:
        ValueError: names the field, its value and what is allowed.
    """
    values = mapping("the file", content)
    known_only("", values, ("policies", "robots", "ray"))
    policies = mapping("policies", values.get("policies"))
    if not 1 <= len(policies) <= TARGETS_MOST:
        raise ValueError(f"policies: {len(policies)}, must be from 1 to {TARGETS_MOST}")
    applications: dict[str, str] = {}
    for name in policies:
        before = applications.setdefault(application_of(name), name)
        if before != name:
            raise ValueError(
                f"policies: {name!r}, must differ from {before!r} in letters, digits or _: all else is - to "
                "Ray Serve"
            )
    ray = mapping("ray", values.get("ray", {}))
    known_only("ray", ray, ("address", "num_cpus"))
    if len(ray) > 1:
        raise ValueError("ray.num_cpus: must not be given beside address: that Ray knows how many it has")
    return Fleet(
        tuple(_policy(name, each) for name, each in policies.items()),
        _robots(mapping("robots", values.get("robots", {}))),
        text("ray.address", ray["address"]) if "address" in ray else "",
        whole("ray.num_cpus", ray["num_cpus"], 1, int(MOST_CPUS)) if "num_cpus" in ray else 0,
    )


def _policy(name: str, content: object) -> FleetPolicy:
    where = f"policies.{name}"
    if len(name) > NAME_LENGTH or not name.isprintable():
        raise ValueError(f"policies: {name[:NAME_LENGTH]!r}, must have at most {NAME_LENGTH} characters")
    values = mapping(where, content)
    own = {each.name for each in fields(FleetPolicy)} - {"name", "compute"}
    known_only(where, values, (*sorted(own), *COMPUTE))
    told = {key: _read(f"{where}.{key}", key, value) for key, value in values.items()}
    text(f"{where}.checkpoint", told.get("checkpoint"))
    if "semantic" in told and told.get("rule") != "semantic":
        raise ValueError(f"{where}.semantic: must not be given but for the rule semantic")
    compute = {key: told.pop(key) for key in COMPUTE if key in told}
    return FleetPolicy(name, **told, compute=compute)


def _read(where: str, key: str, value: object) -> Any:
    if key == "replicas":
        return _replicas(where, value)
    if key == "semantic":
        return _semantic(where, value)
    if key in ("batch", "samples"):
        return whole(where, value, 1, 1024)
    if key == "compile":
        return flag(where, value)
    if key in NUMBERS:
        return _number(where, value, *NUMBERS[key])
    if key in CHOICES:
        return one_of(where, value, CHOICES[key])
    return text(where, value)


NUMBERS = {
    "temperature": (1e-3, 100.0),
    "distance": (0.0, 1e6),
    "added_compute_s": (0.0, 60.0),
    "num_cpus": (0.0, MOST_CPUS),
    "num_gpus": (0.0, MOST_CPUS),
}
SEMANTIC = {"tolerance": (0.0, 1.0), "patience_ms": (0.0, ROUND_TRIP_MS[1])}
CHOICES = {
    "backend": tuple(sorted(BACKENDS)),
    "rule": (BY_TARGET, *ACCEPTANCES),
    "agreement": tuple(AGREEMENTS),
    "dtype": DTYPES,
}


def _semantic(where: str, value: object) -> dict[str, Any]:
    values = mapping(where, value)
    known_only(where, values, ("file", *SEMANTIC))
    told: dict[str, Any] = {"file": text(f"{where}.file", values.get("file"))}
    return told | {
        key: _number(f"{where}.{key}", values[key], *ends) for key, ends in SEMANTIC.items() if key in values
    }


def _replicas(where: str, value: object) -> Replicas:
    if not isinstance(value, dict):
        count = whole(where, value, 1, MOST_REPLICAS)
        return Replicas(count, count)
    known_only(where, value, ("least", "most", "under_way"))
    least = whole(f"{where}.least", value.get("least", 1), 1, MOST_REPLICAS)
    most = whole(f"{where}.most", value.get("most", least), least, MOST_REPLICAS)
    return Replicas(least, most, whole(f"{where}.under_way", value.get("under_way", UNDER_WAY), 1, 64))


def _robots(values: Mapping[str, Any]) -> dict[str, Any]:
    known_only("robots", values, ("quota_hz", "deadline_s", "late"))
    told: dict[str, Any] = {}
    if "quota_hz" in values:
        told["quota_hz"] = _number("robots.quota_hz", values["quota_hz"], 0.0, 1e6)
    if "deadline_s" in values:
        told["deadline_s"] = positive("robots.deadline_s", values["deadline_s"], LATEST_S)
    if "late" in values:
        told["late"] = one_of("robots.late", values["late"], LATE)
    return told


def _number(where: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{where}: {value!r}, must be a number from {least:g} to {most:g}")
    return float(value)


def application_of(name: str) -> str:
    """Return the name of a policy's application on Ray Serve, which takes fewer characters than we do."""
    return "adahi-" + re.sub(r"[^A-Za-z0-9_-]", "-", name)
