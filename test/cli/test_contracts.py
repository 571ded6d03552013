"""`adahi contract`: a contract to start from, and names of joints that no robot has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.bags.bag_writer import BagWriter
from adahi_ros.bags.definitions import types_of
from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset, asset_files
from test.cli.conftest import Fails, Run
from test.policies.remote.test_lerobot_metadata import pretrained

URDF = """<robot name="arm"><joint name="shoulder_pan" type="revolute"><limit lower="-1" upper="1"
velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.parametrize("name", ["so101", "kitchen"])
def test_a_shipped_contract_is_written_with_its_comments(
    name: str, tmp_path: Path, run: Run, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("contract", "write", name)
    written = tmp_path / f"{name}.yaml"
    first, text = written.read_text().split("\n", 1)
    assert first.startswith("# Written by: ")
    assert text == asset(f"config/contracts/{name}.yaml").read_text()
    assert load_contract(str(written)).robot_type == load_contract(name).robot_type
    written.write_text("mine")
    assert fails("contract", "write", name).startswith(f"adahi: --out: {name}.yaml, exists; ")
    assert written.read_text() == "mine"
    run("contract", "write", name, "--overwrite")
    assert load_contract(str(written)).robot_type == load_contract(name).robot_type


def test_an_unknown_contract_is_refused_with_the_names_that_are_shipped(fails: Fails) -> None:
    from adahi_lab.tasks import TASKS

    shipped = {path.stem for path in asset_files("config/contracts")}
    arms = {"franka_panda", "panda_droid", "panda_kitchen", "so101", "so101_lerobot", "ur5e"}
    assert shipped - arms <= set(TASKS) | {"inverted_pendulum"}
    output = fails("contract", "write", "so100")
    assert output.endswith("(did you mean 'so101'?)\n")
    assert "must be one of ball, " in output


def arm(tmp_path: Path, old: str = "", new: str = "", **more: Any) -> Path:
    """Write the so101's contract, changed."""
    text = asset("config/contracts/so101.yaml").read_text().replace(old, new)
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(text) | more))
    return path


@pytest.mark.parametrize("name", [path.stem for path in asset_files("config/contracts")])
def test_no_shipped_contract_has_a_joint_that_its_robot_lacks(name: str, run: Run) -> None:
    assert "warning" not in run("contract", "check", name).output


@pytest.mark.parametrize("path", ["positions.elbow_flex", "position.elbow_flex"])
def test_a_misspelt_joint_is_warned_of_without_a_bag(path: str, tmp_path: Path, run: Run) -> None:
    output = run("contract", "check", arm(tmp_path, path, path.replace("flex", "flx"))).output
    assert "joints: 6 of 7 are in limits/so101.yaml\n" in output
    assert "  warning: 'elbow_flx' is not in limits/so101.yaml (did you mean 'elbow_flex'?)\n" in output


def test_the_joints_are_compared_with_the_files_that_are_given(tmp_path: Path, run: Run) -> None:
    path, urdf = arm(tmp_path, robot_type="mine"), tmp_path / "arm.urdf"
    urdf.write_text(URDF)
    assert "joints: compared with no robot; --limits FILE names" in run("contract", "check", path).output
    assert "in limits/so101.yaml" in run("contract", "check", path, "--limits", "so101").output
    output = run("contract", "check", path, "--limits", urdf).output
    assert output.count("warning: ") == 5  # all but the shoulder's pan
    both = run("contract", "check", path, "--limits", urdf, "--limits", asset("config/limits/so101.yaml"))
    assert "joints: 6 of 6 are in " in both.output


def test_a_bag_is_counted_though_goals_of_a_ros_action_are_in_none(tmp_path: Path, run: Run) -> None:
    arm, observed, moved = load_contract("so101"), "/joint_states", "/arm_controller/joint_trajectory"
    kinds = {observed: "sensor_msgs/msg/JointState", moved: "trajectory_msgs/msg/JointTrajectory"}
    types = types_of(kinds.values())
    state, trajectory, point, header, time, duration = (
        types.types[name]
        for name in (
            *kinds.values(),
            "trajectory_msgs/msg/JointTrajectoryPoint",
            "std_msgs/msg/Header",
            "builtin_interfaces/msg/Time",
            "builtin_interfaces/msg/Duration",
        )
    )
    writer = BagWriter(tmp_path / "bag")
    names, zeros, none = list(arm.joint_names), np.zeros(6), np.zeros(0)
    for topic, kind in kinds.items():
        writer.add(topic, kind)
    for step in range(5):
        now_ns = 10**10 + 40_000_000 * step
        stamp = header(time(*divmod(now_ns, 10**9)), "")
        goal = trajectory(stamp, names[:5], [point(zeros[:5], none, none, none, duration(0, 0))])
        for topic, message in ((observed, state(stamp, names, zeros, none, none)), (moved, goal)):
            writer.write(topic, types.serialize_cdr(message, kinds[topic]), now_ns)
    writer.close()
    output = run("contract", "check", "so101", "--bag", tmp_path / "bag").output
    assert f"{tmp_path / 'bag'}: 5 observations, 5 actions\n" in output
    assert "action.gripper: goals of a ROS action are in no bag, and are not counted\n" in output


def test_a_target_is_compared_with_contract_limits_and_bag(tmp_path: Path, run: Run) -> None:
    low, high = [-60.0, -100.0, -40.0, 20.0, -60.0, 1.0], [60.0, 30.0, 95.0, 90.0, 60.0, 98.0]
    six = {"shape": [6]}
    read = {"observation.state": {"type": "STATE", **six}}
    stats = {
        f"{name}.{end}": each for name in ("action", *read) for end, each in (("min", low), ("max", high))
    }
    changes: dict[str, Any] = {
        "input_features": read,
        "output_features": {"action": {"type": "ACTION", **six}},
    }
    pretrained(tmp_path / "act", stats, **changes)
    target = tmp_path / "target.yaml"
    target.write_text("{kind: lerobot, folder: act, rate_hz: 30}")
    kind, names = "sensor_msgs/msg/JointState", list(load_contract("so101").joint_names)

    def write(name: str, at: list[float]) -> Path:
        types, path = types_of([kind]), tmp_path / name
        state, header, time = (
            types.types[each] for each in (kind, "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
        )
        writer = BagWriter(path)
        writer.add("/joint_states", kind)
        for step in range(5):
            now_ns = 10**10 + 40_000_000 * step
            stamp, none = header(time(*divmod(now_ns, 10**9)), ""), np.zeros(0)
            message = state(stamp, names, np.array(at), none, none)
            writer.write("/joint_states", types.serialize_cdr(message, kind), now_ns)
        writer.close()
        return path

    rest = [0.0, -1.7, 1.6, 1.2, 0.3, 0.1]
    output = run("contract", "check", "so101", "--target", target, "--bag", write("rad", rest)).output
    assert "target: fits\n" in output
    bag = write("degrees", list(np.rad2deg(rest)))
    output = run("contract", "check", "so101", "--target", target, "--bag", bag, status=1).output
    assert "is 3939; the policy learnt 20 to 90: degrees instead of rad?" in output
    bare = arm(tmp_path, "apply: [rad2deg]", "apply: []")
    output = run("contract", "check", bare, "--target", target, status=1).output
    assert "target: action: positions." in output
    assert "rad instead of degrees?\n" in output


@pytest.mark.parametrize(
    ("resize", "padded", "said", "status"),
    [
        ([480, 640], True, "480 x 640; the target sees it as 224 x 224, with black borders\n", 0),
        ([480, 640], False, "480 x 640; the target sees it as 224 x 224, stretched\n", 0),
        ([168, 224], True, "with black borders\n", 0),
        ([96, 96], True, "apply.resize: [96, 96], must be at least [224, 224]: else the target sees it", 1),
        ([120, 160], True, "apply.resize: [120, 160], must be at least [168, 224]: else", 1),
        ([168, 224], False, "must be at least [224, 224]", 1),
        ([224, 224], True, "warning: observation.images.wrist.apply.resize: [224, 224] leaves no borders", 0),
        ([448, 448], False, "448 x 448; the target sees it as 224 x 224, whole\n", 0),
    ],
)
def test_what_a_target_sees_of_a_camera_is_said(
    resize: list[int], padded: bool, said: str, status: int, tmp_path: Path, run: Run
) -> None:
    key, six = "observation.images.wrist", {"shape": [6]}
    inputs = {
        "observation.state": {"type": "STATE", **six},
        key: {"type": "VISUAL", "shape": [3, 224, 224]},
    }
    outputs = {"action": {"type": "ACTION", **six}}
    of: dict[str, Any] = {"type": "pi0"} if padded else {}
    pretrained(tmp_path / "policy", {}, input_features=inputs, output_features=outputs, **of)
    target = tmp_path / "target.yaml"
    target.write_text("{kind: lerobot, folder: policy, rate_hz: 30}")
    values = yaml.safe_load(arm(tmp_path).read_text())
    camera = {"topic": "wrist/image_raw", "type": "sensor_msgs/msg/Image"}
    values["observations"][key] = {"channel": camera, "apply": [{"resize": resize}]}
    output = run("contract", "check", arm(tmp_path, **values), "--target", target, status=status).output
    assert said in output.replace("\n    ", " ")


def test_a_joint_that_two_publishers_measure_in_a_bag_is_named(tmp_path: Path, run: Run) -> None:
    kind = "sensor_msgs/msg/JointState"
    types = types_of([kind])
    state, header, time = (
        types.types[name] for name in (kind, "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    names, zeros, none = list(load_contract("so101").joint_names), np.zeros(6), np.zeros(0)

    def write(folder: Path, positions: list[np.ndarray]) -> Path:
        writer = BagWriter(folder)
        writer.add("/joint_states", kind)
        for step in range(50):
            now_ns = 10**10 + 40_000_000 * step
            for at in positions:
                message = state(header(time(*divmod(now_ns, 10**9)), ""), names, at, none, none)
                writer.write("/joint_states", types.serialize_cdr(message, kind), now_ns)
        writer.close()
        return folder

    bag = write(tmp_path / "twice", [zeros, zeros + 0.5])
    twice = run("contract", "check", "so101", "--bag", bag, status=1).output
    for name in names:
        assert f"  joint_states: {name} jumps back and forth in " in twice
    repeated = run("contract", "check", "so101", "--bag", write(tmp_path / "repeated", [zeros, zeros])).output
    assert "  warning: joint_states: 50 messages repeat the stamp of the one before\n" in repeated


def test_what_is_shipped_is_replaced_where_one_says_so(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_ros.cli.options.roots", lambda: [tmp_path])
    out = tmp_path / "config" / "ball.yaml"
    run("contract", "write", "ball", "--out", out)
    with pytest.raises(ValueError, match="is shipped"):
        run("contract", "write", "ball", "--out", out)
    out.write_text("")
    run("contract", "write", "ball", "--out", out, "--overwrite")
    assert yaml.safe_load(out.read_text())["robot_type"] == "ball"


def test_commands_that_no_node_sends_are_named(tmp_path: Path, run: Run) -> None:
    channel = {"topic": "leader_arm/joint_states", "type": "sensor_msgs/msg/JointState"}
    recorded = {"action": {"channel": channel, "select": ["position.elbow_flex"]}}
    output = run("contract", "check", arm(tmp_path, actions=recorded)).output
    assert "no node commands by sensor_msgs/msg/JointState, only by trajectory_msgs/msg/" in output
    assert "no node commands" not in run("contract", "check", "so101").output
