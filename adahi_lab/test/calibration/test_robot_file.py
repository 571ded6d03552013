"""Parameter files of a robot's node, read without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration.robot_file import RobotFile
from adahi_lab.evaluation.loaded_policies import PlanFiles
from adahi_lab.methods.recommended import Recommendation
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import CHECKPOINTS, asset, asset_files, named
from adahi_ros.policies.backends import is_policy

SHIPPED = [
    f"{folder}/{path.name}".removeprefix("config/")
    for folder in ("config", "config/best")
    for path in asset_files(folder)
    if path.name != "verifier.yaml"
]


def written(path: Path, **parameters: Any) -> Path:
    given = {"checkpoint": "ball/draft", "contract": "ball", **parameters}
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_say_what_the_robot_observes_and_by_which_policies(name: str) -> None:
    file = RobotFile.read(asset(f"config/{name}"))
    task = Path(name).stem
    assert is_policy(file.draft)
    assert file.contract == load_contract(task)
    assert file.calibrated == (name == f"{task}.yaml")
    assert (file.by_plans is None) == file.calibrated
    if file.by_plans is not None:
        acts = "intent" if file.by_plans.proposer == "intent" else "corrector"
        paths = (named(f"{task}/plans/{each}", CHECKPOINTS) for each in ("target", acts))
        assert file.plans == PlanFiles(**dict(zip(("plans", acts), paths, strict=True)))
        assert all(is_policy(path) for path in file.plans if path is not None)
    else:
        assert file.robot_type == task


def test_there_is_something_shipped() -> None:
    assert {"ball.yaml", "best/ball.yaml", "kitchen_camera.yaml", "best/metaworld_50.yaml"} <= set(SHIPPED)


def test_sections_are_taken_as_ros_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "/**": {"ros__parameters": {"checkpoint": "ball/draft", "gate.name": "age"}},
                "/r1/draft_policy": {"ros__parameters": {"checkpoint": "kitchen/draft"}},
                "r2": {"draft_policy": {"ros__parameters": {"checkpoint": "swarm/draft"}}},
            },
            sort_keys=False,
        )
    )
    for namespace, folder in (("", "ball"), ("r1", "kitchen"), ("/r2/", "swarm")):
        assert RobotFile.read(path, namespace).draft == named(f"{folder}/draft", CHECKPOINTS)
    path.write_text("/r1/draft_policy: {ros__parameters: {checkpoint: b/draft}}")
    with pytest.raises(
        ValueError, match=r"params.yaml: has /r1/draft_policy, must have .* of /draft_policy, or"
    ):
        RobotFile.read(path)


def test_a_file_of_ones_own_says_how_it_goes_by_plans(tmp_path: Path) -> None:
    given = {"wait_policy": "wait", "gate": {"name": "age", "threshold": 4.0}}
    own = written(tmp_path / "own.yaml", proposer={"name": "plan"}, **given)
    file = RobotFile.read(own)
    assert file.by_plans == Recommendation("plan", "wait", "age", 4.0)
    assert file.plans == PlanFiles()  # the checkpoint is the robot's: what is for all is not the verifier's
    assert RobotFile.read(written(own, proposer={"name": "draft"})).by_plans is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint": ""}, "checkpoint: '', must be FOLDER/NAME of a policy, or give --draft"),
        ({"contract": "chess"}, "contract: 'chess', must be a YAML file or one of "),
        ({"contract": ""}, "contract: '', must be a YAML file or one of "),
        ({"contract": 3}, "contract: 3, must be a string"),
        ({"verification": {"jpeg_quality": 0}}, "verification.jpeg_quality: 0, must be from 1 to 95"),
        ({"verification": {"jpeg_quality": 8.0}}, "verification.jpeg_quality: 8.0, must be an integer"),
        ({"verification": {"jpeg_budget_bytes": True}}, "jpeg_budget_bytes: True, must be an integer"),
        ({"proposer.name": "plan"}, "gate.threshold: None, must be a floating-point number"),
        ({"proposer.name": "guess", "gate.threshold": 1.0}, "proposer: 'guess', must be one of draft, "),
        (
            {"proposer.name": "plan", "gate": {"name": "guess", "threshold": 1.0}},
            "gate: 'guess', must be one of",
        ),
    ],
)
def test_what_cannot_be_used_is_reported_by_file_field_and_value(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = written(tmp_path / "params.yaml", **changes)

    def use() -> Any:
        file = RobotFile.read(path)
        return file.draft, file.by_plans, file.jpeg, file.contract

    with pytest.raises(ValueError, match=message) as refused:
        use()
    assert str(refused.value).startswith((f"{path}: ", "contract: '"))


def test_what_is_sent_is_reported(tmp_path: Path) -> None:
    file = RobotFile.read(written(tmp_path / "params.yaml"))
    assert (file.jpeg, file.instruction) == ((80, 0), "")
    sent = {"jpeg_quality": 60, "jpeg_budget_bytes": 900}
    file = RobotFile.read(written(tmp_path / "params.yaml", verification=sent, instruction="wave"))
    assert (file.jpeg, file.instruction) == ((60, 900), "wave")


def test_a_target_is_that_beside_the_draft_else_the_verifiers(tmp_path: Path) -> None:
    path, there = written(tmp_path / "params.yaml"), named("ball/target", CHECKPOINTS)
    draft = tmp_path / "draft"

    def target(draft: Path, chosen: Path | None = None) -> Path:
        return RobotFile.read(path).with_options(None, draft, chosen, "").policies[1]

    assert target(draft) == tmp_path / "target"
    sections = yaml.safe_load(path.read_text())
    sections["/**/target_verifier"] = {"ros__parameters": {"checkpoint": "/arm/target.yaml"}}
    path.write_text(yaml.safe_dump(sections))
    assert target(draft) == Path("/arm/target.yaml")
    assert target(there.with_name("draft")) == there
    assert target(draft, Path("mine/target")) == Path("mine/target")


@pytest.mark.parametrize("damaged", ["{", "[]", "/**: {}", "/**: {ros__parameters: 5}", "\udc80"])
def test_what_is_no_parameter_file_is_reported(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(damaged, errors="surrogateescape")
    with pytest.raises(ValueError, match=f"^{path}: "):
        RobotFile.read(path)
