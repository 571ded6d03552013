"""`adahi contract`: a contract to start from, and names of joints that no robot has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_ros.cli.lab.task_contract import ARMS
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset
from test.cli.conftest import Fails, Run

URDF = """<robot name="arm"><joint name="shoulder_pan" type="revolute"><limit lower="-1" upper="1"
velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.parametrize("arm", ARMS)
def test_an_arms_contract_is_written_with_its_comments(
    arm: str, tmp_path: Path, run: Run, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("contract", "write", arm)
    written = tmp_path / f"{arm}.yaml"
    first, text = written.read_text().split("\n", 1)
    assert first.startswith("# Written by: ")
    assert text == asset(f"config/contracts/{arm}.yaml").read_text()
    assert load_contract(str(written)).robot_type == load_contract(arm).robot_type
    written.write_text("mine")
    assert fails("contract", "write", arm).startswith(f"adahi: --out: {arm}.yaml, exists; ")
    assert written.read_text() == "mine"
    run("contract", "write", arm, "--overwrite")
    assert load_contract(str(written)).robot_type == load_contract(arm).robot_type


def test_each_shipped_contract_is_of_an_arm_or_of_a_task(run: Run, fails: Fails) -> None:
    from adahi_ros.lab.tasks import TASKS

    shipped = {path.stem for path in asset("config/contracts").glob("*.yaml")}
    assert shipped - set(ARMS) <= set(TASKS) | {"inverted_pendulum"}
    said = fails("contract", "write", "so100")
    assert said.endswith(f"or an arm: {', '.join(ARMS)} (did you mean 'so101'?)\n")
    assert "expected one of ball, " in said


def arm(tmp_path: Path, old: str = "", new: str = "", **more: Any) -> Path:
    """Write the so101's contract, changed."""
    text = asset("config/contracts/so101.yaml").read_text().replace(old, new)
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(text) | more))
    return path


@pytest.mark.parametrize("name", sorted(path.stem for path in asset("config/contracts").glob("*.yaml")))
def test_no_shipped_contract_has_a_joint_that_its_robot_lacks(name: str, run: Run) -> None:
    assert "warning" not in run("contract", "check", name).output


@pytest.mark.parametrize("path", ["positions.elbow_flex", "position.elbow_flex"])
def test_a_misspelt_joint_is_warned_of_without_a_bag(path: str, tmp_path: Path, run: Run) -> None:
    said = run("contract", "check", arm(tmp_path, path, path.replace("flex", "flx"))).output
    assert "joints: 6 of 7 are in limits/so101.yaml\n" in said
    assert "  warning: 'elbow_flx' is not in limits/so101.yaml (did you mean 'elbow_flex'?)\n" in said


def test_the_joints_are_compared_with_the_files_that_are_given(tmp_path: Path, run: Run) -> None:
    path, urdf = arm(tmp_path, robot_type="mine"), tmp_path / "arm.urdf"
    urdf.write_text(URDF)
    assert "joints: compared with no robot; --limits FILE names" in run("contract", "check", path).output
    said = run("contract", "check", path, "--limits", urdf).output
    assert said.count("warning: ") == 5  # all but the shoulder's pan
    both = run("contract", "check", path, "--limits", urdf, "--limits", asset("config/limits/so101.yaml"))
    assert "joints: 6 of 6 are in " in both.output


def test_images_for_the_target_need_no_encoder(tmp_path: Path, run: Run) -> None:
    camera = {
        "channel": {"topic": "front/image_raw", "type": "sensor_msgs/msg/Image"},
        "apply": [{"resize": [96, 96]}],
    }
    observed = yaml.safe_load(asset("config/contracts/so101.yaml").read_text())["observations"]
    seeing = observed | {"observation.images.front": camera}
    path = arm(tmp_path, observations=seeing, images_for_target=True)
    said = run("contract", "check", path).output
    assert "observation: 6 numbers, 1 camera for the target alone\n" in said
    assert "encoder" not in said
