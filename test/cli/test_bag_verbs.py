"""The verbs that take or write bags, on bags of a toy robot."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from adahi_lab.evaluation.plain_contract import with_camera
from adahi_ros.cli.app import app
from test.bags.conftest import run


@pytest.fixture
def fails(fails: Callable[..., str]) -> Callable[..., str]:
    """From arguments to what the command says as it ends, without its name."""
    return lambda *arguments: fails(*arguments).removeprefix("adahi: ").rstrip()


def test_recording_over_a_bag_is_refused(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    named = ("record", "--contract", contract_file)
    assert fails(*named, "--out", bag) == f"{bag}: is there already, expected the name of a new bag"
    assert fails(*named, "--out", bag, "--episodes") == f"{bag}: is a bag, expected a folder for bags"
    assert fails(*named, "--out", tmp_path / "new", "--storage", "tape") == (
        "storage: 'tape', must be one of mcap, sqlite3"
    )
    assert fails("record", "--contract", "chess", "--out", tmp_path / "new").startswith("contract: 'chess'")


def test_a_contract_that_does_not_observe_all_it_commands_is_reported(
    contract_values: dict[str, Any], tmp_path: Path
) -> None:
    values = copy.deepcopy(contract_values)
    values["actions"]["action"]["select"].append("positions.gripper")
    for source in (values["goal"], values["episode"], values["observations"]["observation.task"]):
        source["channel"]["qos"] = {"durability": "transient_local", "history": "keep_all"}
    values["driver"] = [
        {"topic": "robot_mode", "type": "std_msgs/msg/UInt8", "field": "data", "running": [7]}
    ]
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(values))
    output = run("contract", "check", path)
    assert "  not observed where they stand: gripper\n" in output
    assert "  driver robot_mode: std_msgs/msg/UInt8, data must be 7\n" in output
    assert "observed task_state: adahi_msgs/msg/TaskState, best_effort, all kept, transient local" in output


def test_a_contract_is_checked_alone_and_against_a_bag(bag: Path, contract_file: Path) -> None:
    output = run("contract", "check", contract_file)
    assert "toy: 20 steps per second, paced by task_state" in output
    assert "observation: 6 numbers, no camera" in output
    assert "goal: 2 numbers [goal.0, goal.1]" in output
    assert "action: 2 numbers [positions.left_joint, positions.right_joint]" in output
    assert "observed joint_states: sensor_msgs/msg/JointState, best_effort, depth 10" in output
    assert "observations, " not in output
    counted = run("contract", "check", contract_file, "--bag", bag)
    assert f"{bag}: 360 observations, 360 actions\n  nothing was refused" in counted
    found = CliRunner().invoke(app, ["contract", "check", "kitchen", "--bag", str(bag)])
    other = found.output
    assert (found.exit_code, f"{bag}: 0 observations, 0 actions" in other) == (1, True)
    assert "360 times joint_states.name: ['left_joint', 'right_joint'], has none of" in other
    assert "360 times task_state.state: 4 values, expected 50" in other


def checked(contract: Path, *bags: Path) -> str:
    """Return what `contract check` says of bags with which something is wrong."""
    words = ["contract", "check", contract, *(word for bag in bags for word in ("--bag", bag))]
    result = CliRunner().invoke(app, [str(each) for each in words], catch_exceptions=False)
    assert result.exit_code == 1
    return str(result.output)


def test_an_action_topic_that_is_not_in_the_bag_is_named(
    bag: Path, contract_values: dict[str, Any], tmp_path: Path
) -> None:
    path, values = tmp_path / "arm.yaml", copy.deepcopy(contract_values)
    values["actions"]["action"]["channel"]["topic"] = "comand"
    path.write_text(yaml.safe_dump(values))
    output = checked(path, bag)
    assert "  warning: /comand: the action's topic is not in the bag; of its type it has /command\n" in output
    assert "fps" not in output


def test_samples_that_are_slower_than_the_contract_are_named(
    bag: Path, contract_values: dict[str, Any], tmp_path: Path, fails: Callable[..., str]
) -> None:
    path, values = tmp_path / "arm.yaml", {**contract_values, "fps": 50.0}
    path.write_text(yaml.safe_dump(values))
    fault = "fps: 50, must be at most the rate of the samples, which make 20 steps per second; "
    fault += "slower ones need a larger align.tolerance_ms"
    none = tmp_path / "none"
    output = checked(path, none, bag)
    assert f"error: {none}: no such bag\n" in output
    assert f"  warning: {fault}\n" in output
    made = ("data", "from-bag", bag, "--contract", path, "--out", tmp_path / "data")
    assert fails(*made) == f"{bag}: {fault} with an action"
    assert not (tmp_path / "data").exists()


def test_cameras_are_checked_against_their_encoder(
    contract_values: dict[str, Any], tmp_path: Path, fails: Callable[..., str]
) -> None:
    path = tmp_path / "seeing.yaml"
    for encoder, size, words in (
        ("ball", 64, "2 numbers, 1 camera of 16 features (encoder ball): 18 in all"),
        ("nobodys", 64, "2 numbers, 1 camera of an encoder that is missing ("),
    ):
        path.write_text(yaml.safe_dump(with_camera(contract_values, encoder, size, size)))
        assert words in run("contract", "check", path)
    values = {**with_camera(contract_values, "", 64, 64), "images_for_target": True}
    del values["encoder"]
    path.write_text(yaml.safe_dump(values))
    assert "2 numbers, 1 camera for the target alone\n" in run("contract", "check", path)
    path.write_text(yaml.safe_dump(with_camera(contract_values, "ball", 96, 96)))
    assert fails("contract", "check", path).startswith(
        "contract of 'toy': observation.images.camera.apply.resize: [96, 96], must be [64, 64]"
    )


def test_a_bag_that_was_cut_off_is_checked_and_repaired(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    killed, new = shutil.copytree(bag, tmp_path / "killed"), tmp_path / "new"
    (killed / "metadata.yaml").unlink()
    (file,) = killed.iterdir()
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    check = ("contract", "check", contract_file, "--bag")
    assert fails(*check, killed).startswith(
        f"{killed}: no metadata.yaml: it was not closed; give --incomplete"
    )
    assert "; left out: unknown\n" in run(*check, killed, "--incomplete")
    output = run("bag", "repair", killed, "--out", new)
    assert f"{killed}: the rest is lost: {file.name}: no whole record at byte " in output
    assert "nothing was refused" in run(*check, new)
    assert fails("bag", "repair", tmp_path, "--out", tmp_path / "x").startswith(f"{tmp_path}: expected the")
