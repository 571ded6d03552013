"""`adahi lerobot init`: a robot's files from a policy of LeRobot's, none of them written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import contract_path, load_contract
from adahi_ros.core.assets import asset
from adahi_ros.policies.remote.lerobot_metadata import described_by_files
from adahi_ros.safety.limits_file import load_limits
from test.cli.conftest import Fails, Run
from test.policies.remote.test_lerobot_metadata import pretrained

JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
LOW, HIGH = [-60.0, -100.0, -40.0, 20.0, -60.0, 1.0], [60.0, 30.0, 95.0, 90.0, 60.0, 98.0]
STATE = "observation.state"
CAMERAS = [f"observation.images.{name}" for name in ("front", "wrist")]
MOTORS = {joint: {"id": 1, "drive_mode": 0, "range_min": 747, "range_max": 3147} for joint in JOINTS}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """An ACT of an SO-101 with two cameras, in degrees."""
    return act(tmp_path / "pretrained_model")


def act(folder: Path, low: list[float] = LOW, high: list[float] = HIGH, **changes: Any) -> Path:
    stats = {
        f"{name}.{end}": each for name in ("action", STATE) for end, each in (("min", low), ("max", high))
    }
    inputs: dict[str, Any] = {name: {"type": "VISUAL", "shape": [3, 480, 640]} for name in CAMERAS}
    given: dict[str, Any] = {
        "input_features": {STATE: {"type": "STATE", "shape": [6]}, **inputs},
        "output_features": {"action": {"type": "ACTION", "shape": [6]}},
    }
    return pretrained(folder, stats, **given | changes)


def dataset(folder: Path, names: list[str], fps: int = 30, acted: list[str] | None = None) -> Path:
    spelt = {STATE: names, "action": acted or names}
    features: dict[str, Any] = {name: {"shape": [480, 640, 3]} for name in CAMERAS}
    for key, value in spelt.items():
        features[key] = {"shape": [6], "names": [f"{each}.pos" for each in value]}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps({"fps": fps, "features": features}))
    return folder


def in_policy(contract: Contract, wire: float) -> np.ndarray:
    """Return what the policy sees of joints that all stand at the same position, rad."""
    return np.concatenate([each.from_wire(np.full(each.size, wire)) for each in contract.numbers])


def test_no_line_is_written_by_hand(policy: Path, tmp_path: Path, run: Run, fails: Fails) -> None:
    out = tmp_path / "arm"
    data = dataset(tmp_path / "data", JOINTS, fps=25)
    output = run("lerobot", "init", policy, "--out", out, "--dataset", data).output
    assert "does not fit" not in output
    contract = load_contract(str(out / "contract.yaml"))
    assert (contract.rate_hz, contract.images_for_target) == (25.0, True)
    assert [(each.key, each.rows, each.columns) for each in contract.cameras] == [
        (name, 480, 640) for name in CAMERAS
    ]
    signature, *_ = described_by_files(out, yaml.safe_load((out / "target.yaml").read_text()))
    assert signature.action_names == contract.action.select
    assert signature.features[0].entries == contract.named[STATE]
    robot = yaml.safe_load((out / "params.yaml").read_text())["/**/draft_policy"]["ros__parameters"]
    assert (robot["execution_horizon"], robot["gate"]) == (100, {"name": "age", "threshold": 20.0})
    slow = load_limits(out / "slow.yaml", contract.commanded_names)
    fast = load_limits(asset("config/limits/so101_lerobot.yaml"), contract.commanded_names)
    np.testing.assert_allclose(slow.velocity, fast.velocity / 10)
    assert "exists; must be another folder" in fails("lerobot", "init", policy, "--out", out)
    checked = run("contract", "check", out / "contract.yaml", "--target", out / "target.yaml").output
    assert "target: fits\n" in checked


def test_the_joints_are_in_the_order_of_the_data(
    policy: Path, tmp_path: Path, run: Run, fails: Fails
) -> None:
    swapped = [JOINTS[at] for at in (0, 2, 1, 3, 4, 5)]
    first = tmp_path / "first"
    run("lerobot", "init", policy, "--out", first, "--dataset", dataset(tmp_path / "a", swapped))
    contract = load_contract(str(first / "contract.yaml"))
    assert [each.partition(".")[2] for each in contract.named[STATE]] == swapped
    assert [each.partition(".")[2] for each in contract.action.select] == swapped
    output = run("contract", "check", "so101_lerobot", "--target", first / "target.yaml", status=1).output
    assert "is 'position.elbow_flex' to the target, 'position.shoulder_lift' to the robot" in output
    between = ["gripper", *JOINTS[:5]]
    second = tmp_path / "second"
    run("lerobot", "init", policy, "--out", second, "--dataset", dataset(tmp_path / "b", between))
    assert load_contract(str(second / "contract.yaml")).action.select[0] == "positions.gripper"
    torn = [*JOINTS[:2], "gripper", *JOINTS[2:5]]  # one topic commands all five joints
    given = "--dataset", dataset(tmp_path / "d", torn), "--driver", "so101_ros2"
    refused = fails("lerobot", "init", policy, "--out", tmp_path / "c", *given)
    assert "must be shoulder_pan, shoulder_lift, gripper, " in refused


def test_numbers_without_names_have_those_of_the_contract(policy: Path, tmp_path: Path, run: Run) -> None:
    driver = yaml.safe_load(contract_path("so101_lerobot").read_text())
    channel = {"type": "std_msgs/msg/Float64MultiArray"}
    driver["actions"] = {
        f"action.{topic}": {
            **{"channel": {"topic": topic, **channel}, "select": [f"data.0:{len(names)}"], "apply": []},
            **{"names": list(names), "field": "positions", "align": {"strategy": "asof"}},
        }
        for topic, names in (("arm", JOINTS[:5]), ("hand", JOINTS[5:]))
    }
    (tmp_path / "arrays.yaml").write_text(yaml.safe_dump(driver))
    swapped = [JOINTS[at] for at in (0, 2, 1, 3, 4, 5)]
    given = "--dataset", dataset(tmp_path / "d", swapped), "--driver", tmp_path / "arrays.yaml"
    run("lerobot", "init", policy, "--out", tmp_path / "arm", *given, "--limits", "so101_lerobot")
    action = load_contract(str(tmp_path / "arm/contract.yaml")).action
    assert action.select == tuple(f"positions.{joint}" for joint in swapped)
    assert [each.source.select[1] for each in action.sinks[:1]] == ["data.2"]


def test_another_arm_needs_its_own_limits(policy: Path, tmp_path: Path, run: Run, fails: Fails) -> None:
    data = dataset(tmp_path / "data", JOINTS)
    info = json.loads((data / "meta/info.json").read_text())
    (data / "meta/info.json").write_text(json.dumps({**info, "robot_type": "koch_follower"}))
    how = ("lerobot", "init", policy, "--out", tmp_path / "arm", "--dataset", data)
    assert "robot_type 'koch_follower', must be an SO-101 for the limits of 'lerobot'; else give" in fails(
        *how
    )
    limits = tmp_path / "koch.yaml"
    limits.write_text(
        asset("config/limits/so101_lerobot.yaml").read_text().replace("velocity: ", "velocity: 2")
    )
    run(*how, "--limits", limits)
    assert load_contract(str(tmp_path / "arm/contract.yaml")).robot_type == "koch_follower"
    made, given = (load_limits(path, JOINTS) for path in (tmp_path / "arm/slow.yaml", limits))
    np.testing.assert_allclose(made.velocity, given.velocity / 10)


@pytest.mark.parametrize(
    ("names", "said"),
    [(["a", *JOINTS[1:]], "'a', must be one of the driver's"), (JOINTS[:5], "must be the 6 entries")],
)
def test_other_joints_are_named(
    names: list[str], said: str, policy: Path, tmp_path: Path, fails: Fails
) -> None:
    data = dataset(tmp_path / "data", names)
    assert said in fails("lerobot", "init", policy, "--out", tmp_path / "arm", "--dataset", data)


def test_a_gripper_that_the_policy_does_not_command_is_named(
    policy: Path, tmp_path: Path, fails: Fails
) -> None:
    data = dataset(tmp_path / "data", list(load_contract("ur5e").commanded_names[:6]))
    said = fails("lerobot", "init", policy, "--out", tmp_path / "arm", "--dataset", data, "--driver", "ur5e")
    assert "the policy commands nothing of action.gripper; remove it in a copy of the contract" in said


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"fps": "fast", "features": {}}, "must have fps and features"),
        ({"fps": 30, "features": [STATE]}, "must have fps and features"),
        (
            {"fps": 30, "features": {STATE: {"names": "gripper"}}},
            "names: 'gripper', must be a list of joints",
        ),
    ],
)
def test_a_dataset_with_other_content_is_refused(
    info: dict[str, Any], said: str, policy: Path, tmp_path: Path, fails: Fails
) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    assert said in fails("lerobot", "init", policy, "--out", tmp_path / "arm", "--dataset", tmp_path)
    assert not (tmp_path / "arm").exists()


def test_a_calibration_makes_ranges_of_joints_and_zeros_of_other_drivers(
    tmp_path: Path, run: Run, fails: Fails
) -> None:
    calibration = tmp_path / "my_arm.json"
    calibration.write_text(json.dumps(MOTORS))
    quarter = act(tmp_path / "quarter", [-70.0] * 5 + [0.0], [70.0] * 5 + [100.0])
    given = quarter, "--calibration", calibration, "--unit", "range", "--out"
    run("lerobot", "init", *given, tmp_path / "theirs", "--driver", "so101_ros2")
    contract = load_contract(str(tmp_path / "theirs/contract.yaml"))
    reach = 1200 * 2 * np.pi / 4095  # from the middle of the range to its end
    np.testing.assert_allclose(in_policy(contract, reach)[:5], 100.0, atol=1e-3)
    driver = tmp_path / "driver.yaml"
    driver.write_text(asset("config/contracts/so101.yaml").read_text())
    run("lerobot", "init", *given, tmp_path / "mine", "--driver", driver)
    own = load_contract(str(tmp_path / "mine/contract.yaml"))
    from_centre = 100 * 2 * np.pi / 4095  # the range's middle is 100 ticks below the turn's
    np.testing.assert_allclose(in_policy(own, reach - from_centre)[:5], 100.0, atol=1e-3)
    np.testing.assert_allclose(in_policy(own, reach - from_centre)[5], 100.0, atol=1e-3)
    np.testing.assert_allclose(own.action.to_wire(np.full(6, 100.0)), reach - from_centre, atol=1e-5)
    run("lerobot", "init", *given[:3], "--out", tmp_path / "degrees", "--driver", driver)
    degrees = load_contract(str(tmp_path / "degrees/contract.yaml"))
    np.testing.assert_allclose(in_policy(degrees, 0.0)[:5], 100 * 360 / 4095, atol=1e-3)
    calibration.write_text(json.dumps({**MOTORS, "elbow_flex": {}}))
    assert "elbow_flex: {}, must have range_min" in fails("lerobot", "init", *given, tmp_path / "no")


def test_cameras_of_a_drivers_contract_stay(policy: Path, tmp_path: Path, run: Run) -> None:
    driver = yaml.safe_load(asset("config/contracts/so101.yaml").read_text())
    camera = {
        "channel": {"topic": "/front_camera/image_raw", "type": "sensor_msgs/msg/Image"},
        "align": {"strategy": "hold", "tolerance_ms": 50},
    }
    driver["observations"][CAMERAS[0]] = {**camera, "apply": [{"resize": [96, 96]}]}
    (tmp_path / "driver.yaml").write_text(yaml.safe_dump(driver))
    run("lerobot", "init", policy, "--out", tmp_path / "arm", "--driver", tmp_path / "driver.yaml")
    written = yaml.safe_load((tmp_path / "arm/contract.yaml").read_text())["observations"]
    assert written[CAMERAS[0]] == {**camera, "apply": [{"resize": [480, 640]}]}
    assert written[CAMERAS[1]]["channel"]["topic"] == "/wrist/image_raw/compressed"


@pytest.mark.parametrize(("most", "said"), [(98.0, False), (125.0, True)])
def test_a_range_that_the_limits_cut_is_named(most: float, said: bool, tmp_path: Path, run: Run) -> None:
    policy = act(tmp_path / "pretrained_model", high=[*HIGH[:5], most])
    given = "--dataset", dataset(tmp_path / "data", JOINTS)
    output = run("lerobot", "init", policy, "--out", tmp_path / "arm", *given).output
    assert (
        "limited: positions.gripper: the policy learnt 1 to 125, the limits allow 0 to 100" in output
    ) is said


def test_lerobots_own_driver_has_lerobots_numbers(tmp_path: Path, run: Run, fails: Fails) -> None:
    calibration = tmp_path / "my_arm.json"
    calibration.write_text(json.dumps(MOTORS))
    given = "--dataset", dataset(tmp_path / "data", ["gripper", *JOINTS[:5]])
    contracts = {}
    for unit, ends in (("degrees", (LOW, HIGH)), ("range", ([0.0] + [-70.0] * 5, [100.0] + [70.0] * 5))):
        out = tmp_path / unit
        options = ["--out", out / "arm", "--unit", unit]
        options += ["--calibration", calibration] if unit == "range" else []
        assert (
            "does not fit" not in run("lerobot", "init", act(out / "policy", *ends), *given, *options).output
        )
        contracts[unit] = load_contract(str(out / "arm/contract.yaml"))
    unused = "--out", tmp_path / "new", "--calibration", calibration
    said = fails("lerobot", "init", tmp_path / "degrees/policy", *given, *unused)
    assert "my_arm.json, must be left out for degrees; --unit range needs it" in said
    assert [each.channel.topic for each in contracts["degrees"].cameras] == [
        "front/image_raw/compressed",
        "wrist/image_raw/compressed",
    ]
    assert contracts["degrees"].action.select[0] == "positions.gripper"
    np.testing.assert_array_equal(in_policy(contracts["degrees"], 40.0), 40.0)
    of_range = [40.0] + [40.0 * 200 / 2400 * 4095 / 360] * 5
    np.testing.assert_allclose(in_policy(contracts["range"], 40.0), of_range, rtol=1e-5)


def test_no_driver_without_lerobot(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adahi_ros.cli.lerobot.find_spec", lambda name: None)
    said = fails("lerobot", "drive", "--robot.type=so101_follower")
    assert "LeRobot is not installed: pip install lerobot==0.6.1" in said


def test_the_driver_gets_lerobots_arguments(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[str] = []
    monkeypatch.setattr("adahi_ros.cli.lerobot.find_spec", lambda name: name)
    became_in = "adahi_ros.cli.lerobot.become"
    monkeypatch.setattr(became_in, lambda *words, namespace: became.extend((*words, namespace)))
    own = "--robot.type=so101_follower", "--robot.cameras={front: {fps: 30}}"
    run("lerobot", "drive", *own, "--namespace", "follower", "--ros-args", "-p", "silence_s:=0.2")
    ros = ["--ros-args", "-p", "silence_s:=0.2", "follower"]
    assert became == ["adahi_ros.nodes.robot.lerobot_arm", *own, *ros]


def test_images_of_a_policy_that_pads_are_as_large_as_in_its_data(
    tmp_path: Path, run: Run, fails: Fails
) -> None:
    inputs: dict[str, Any] = {name: {"type": "VISUAL", "shape": [3, 224, 224]} for name in CAMERAS}
    inputs[STATE] = {"type": "STATE", "shape": [6]}
    folder = act(tmp_path / "pi0", type="pi0", input_features=inputs)
    path = dataset(tmp_path / "data", JOINTS) / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"] |= {CAMERAS[0]: {"shape": [480, 640, 3]}, CAMERAS[1]: {"shape": [3, 240, 320]}}
    path.write_text(json.dumps(info))
    out = tmp_path / "arm"
    run("lerobot", "init", folder, "--out", out, "--dataset", tmp_path / "data")
    sizes = [(each.rows, each.columns) for each in load_contract(str(out / "contract.yaml")).cameras]
    signature, *_ = described_by_files(out, yaml.safe_load((out / "target.yaml").read_text()))
    assert [(each.rows, each.columns) for each in signature.images] == sizes == [(480, 640), (240, 320)]
    del info["features"][CAMERAS[1]]
    path.write_text(json.dumps(info))
    given = "lerobot", "init", folder, "--out", tmp_path / "other", "--dataset", tmp_path / "data"
    assert f"lacks {CAMERAS[1]}; must be the policy's own" in fails(*given)
    info["features"][CAMERAS[1]] = {"shape": [3]}
    path.write_text(json.dumps(info))
    assert f"{CAMERAS[1]}.shape: [3], must be [rows, columns, 3]" in fails(*given)


def test_a_policy_in_another_unit_does_not_fit(tmp_path: Path, run: Run) -> None:
    ticks = act(tmp_path / "ticks", [500.0] * 6, [3500.0] * 6)
    output = run("lerobot", "init", ticks, "--out", tmp_path / "arm", status=1).output
    assert "does not fit: action: position" in output


def test_replies_that_take_longer_than_half_of_a_plan_are_refused(
    policy: Path, tmp_path: Path, run: Run, fails: Fails
) -> None:
    given = "lerobot", "init", policy, "--out", tmp_path / "arm", "--reply-s"
    assert "must be at most 1.7, half of a plan" in fails(*given, 2.0)
    assert not (tmp_path / "arm").exists()
    run(*given, 1.5)
