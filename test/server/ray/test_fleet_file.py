"""What a fleet's file says, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.core.schema import checked
from adahi_ros.server.ray.fleet_file import (
    Fleet,
    FleetFileError,
    FleetPolicy,
    Replicas,
    Rule,
    read_fleet,
)

ARM = {"checkpoint": "ball/target"}


def policies(**changes: Any) -> dict[str, Any]:
    return {"policies": {"arm": {**ARM, **changes}}}


def test_what_a_file_says_is_what_replicas_are_made_of() -> None:
    fleet = checked(
        Fleet,
        {
            "policies": {
                "arm": {
                    "checkpoint": "a",
                    "replicas": {"least": 1, "most": 3},
                    "device": "cuda:0",
                    "num_gpus": 0.5,
                },
                "leg": {
                    "checkpoint": "b",
                    "replicas": 2,
                    "rule": {"name": "distance", "within": 1},
                    "batch": 4,
                },
            },
            "robots": {"quota_hz": 5, "deadline_s": 0.5, "late": "refuse"},
            "ray": {"num_cpus": 2},
        },
    )
    arm, leg = fleet.named
    assert arm == FleetPolicy("a", name="arm", device="cuda:0", replicas=Replicas(1, 3), num_gpus=0.5)
    assert arm.compute == {"device": "cuda:0"}
    assert leg == FleetPolicy(
        "b", name="leg", replicas=Replicas(2, 2), rule=Rule("distance", {"within": 1.0}), batch=4
    )
    assert fleet.robots.given == {"quota_hz": 5.0, "deadline_s": 0.5, "late": "refuse"}
    assert (fleet.ray.address, fleet.ray.num_cpus) == ("", 2)
    assert checked(Fleet, {**policies(), "ray": {"address": "auto"}}).ray.address == "auto"


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        ([], r"file: \[\], must be a mapping"),
        ({}, "policies: missing"),
        ({"policies": {}}, "policies: {}, must be of 1 entries at least"),
        ({"policies": {"arm": {}}}, r"policies\.arm\.checkpoint: missing"),
        ({**policies(), "rob": {}}, "rob: unknown, must be one of policies, robots, ray"),
        (policies(replica=2), r"policies\.arm\.replica: unknown, must be one of .*replicas"),
        (
            policies(semantic={"file": "a"}),
            r"policies\.arm\.semantic: unknown \(gone since 0\.4\.0; .*\), must",
        ),
        (policies(rule="replace"), r"arm\.rule: 'replace', must be a mapping since 0\.4\.0, such as \{name"),
        (policies(distance=1.0), r"policies\.arm\.distance: unknown"),
        (
            policies(rule={"name": "distance", "width": 1}),
            r"rule\.width: unknown, must be one of name, within",
        ),
        (
            policies(rule={"name": "distance", "within": -1}),
            r"rule\.within: -1\.0, must be from 0 to 1000000",
        ),
        (
            policies(rule={"name": "semantic"}),
            r"policies\.arm\.rule\.name: 'semantic' \(gone since 0\.4\.0; .*\), must",
        ),
        (policies(replicas=0), r"policies\.arm\.replicas\.least: 0, must be an integer from 1 to 1024"),
        (policies(replicas={"least": 3, "most": 2}), r"replicas\.most: 2, must be at least 3"),
        (
            policies(rule={"name": "best"}),
            r"policies\.arm\.rule\.name: 'best', must be one of by_target, .*replace",
        ),
        (policies(num_cpus=-1), r"policies\.arm\.num_cpus: -1, must be a number from 0 to 4096"),
        (
            {**policies(), "robots": {"late": "never"}},
            r"robots\.late: 'never', must be one of answer, refuse",
        ),
        (
            {**policies(), "robots": {"deadline_s": 9}},
            r"robots\.deadline_s: 9, must be a number above 0 and at most 5",
        ),
        ({**policies(), "ray": {"address": "auto", "num_cpus": 2}}, "ray.num_cpus: must not be given with"),
        (
            {"policies": {"arm/left": ARM, "arm-left": ARM}},
            "policies: 'arm-left', must differ from 'arm/left' in letters, digits or _",
        ),
        ({"policies": {"a" * 100: ARM}}, "policies.a+: 'a.*a', must have at most 64 characters"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(content: Any, stated: str) -> None:
    with pytest.raises(ValueError, match=stated):
        checked(Fleet, content)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match=r"none\.yaml: .*No such file"):
        read_fleet(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", sorted(asset("config/fleets").glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_shipped_can_be_read_and_its_policies_are_there(path: Path) -> None:
    for policy in read_fleet(path).policies.values():
        assert asset(f"checkpoints/{policy.checkpoint}.json").is_file()
