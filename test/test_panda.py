"""The Panda's description and controllers, against Franka Kitchen, the shipped limits and its contract."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
import yaml

from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import asset
from adahi_ros.core.kinematics import Chain
from adahi_ros.safety.limits_file import load_limits

ARM = [f"panda_joint{number}" for number in range(1, 8)]
FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]
PANDA = asset("config/urdf/panda.urdf")
KITCHEN = asset("config/urdf/panda_kitchen.urdf")
COUNTED_MORE = np.array([0.0] * 5 + [np.pi / 2, np.pi / 4, 0.0, 0.0])  # by a real Panda's joints, rad


@pytest.fixture(scope="module")
def kitchen() -> Any:
    pytest.importorskip("gymnasium_robotics")
    from adahi_lab.tasks.kitchen_world import load_world

    return load_world(("microwave",)).model


@pytest.mark.parametrize(("urdf", "more"), [(KITCHEN, 0.0), (PANDA, COUNTED_MORE)])
@pytest.mark.parametrize("seed", range(5))
def test_every_link_is_where_the_kitchen_has_it(kitchen: Any, urdf: Any, more: Any, seed: int) -> None:
    data = mujoco.MjData(kitchen)
    data.qpos[:9] = np.random.default_rng(seed).uniform(*kitchen.jnt_range[:9].T)
    data.qpos[8] = data.qpos[7]  # a real one's fingers move together
    mujoco.mj_kinematics(kitchen, data)
    joints = dict(zip(ARM + FINGERS, data.qpos[:9] + more, strict=True))
    base = data.body("panda0_link0")
    to_base = base.xmat.reshape(3, 3).T
    for link in [*(f"link{number}" for number in range(1, 8)), "leftfinger", "rightfinger"]:
        pose = Chain(urdf.read_text(), "panda_link0", f"panda_{link}").pose(joints)
        body = data.body(f"panda0_{link}")
        turned = to_base @ body.xmat.reshape(3, 3)
        if link == "rightfinger":  # Franka's is turned round; the kitchen's moves the other way instead
            turned = turned @ np.diag([-1.0, -1.0, 1.0])
        np.testing.assert_allclose(pose[:3, 3], to_base @ (body.xpos - base.xpos), atol=1e-3, err_msg=link)
        np.testing.assert_allclose(pose[:3, :3], turned, atol=2e-3, err_msg=link)


def test_the_kitchens_description_has_the_limits_of_position_of_its_model(kitchen: Any) -> None:
    described = load_limits(KITCHEN, ARM + FINGERS)
    np.testing.assert_allclose(described.position_low, kitchen.jnt_range[:9, 0])
    np.testing.assert_allclose(described.position_high, kitchen.jnt_range[:9, 1])


def test_the_descriptions_limits_are_those_that_are_shipped_of_a_panda() -> None:
    shipped = load_limits(asset("config/limits/franka_panda.yaml"), ARM + FINGERS)
    described = load_limits(PANDA, ARM + FINGERS)
    for column in ("position_low", "position_high", "velocity"):
        assert getattr(described, column).tolist() == getattr(shipped, column).tolist(), column
    assert described.effort[:7].tolist() == shipped.effort[:7].tolist()


def controllers() -> dict[str, dict[str, Any]]:
    parameters = yaml.safe_load(asset("config/controllers/panda.yaml").read_text())
    return {name: section["ros__parameters"] for name, section in parameters.items()}


def interfaces(kind: str) -> dict[str, set[str]]:
    """Return what the mock hardware has of each joint: its command or its state interfaces."""
    joints = ElementTree.fromstring(PANDA.read_text()).findall("ros2_control/joint")
    return {
        str(joint.get("name")): {str(each.get("name")) for each in joint.findall(f"{kind}_interface")}
        for joint in joints
    }


def test_the_mock_hardware_has_what_its_controllers_claim() -> None:
    parameters, commands, states = controllers(), interfaces("command"), interfaces("state")
    arm, gripper = parameters["joint_trajectory_controller"], parameters["panda_gripper"]
    for joint in arm["joints"]:
        assert set(arm["command_interfaces"]) <= commands[joint]
        assert set(arm["state_interfaces"]) <= states[joint]
    assert "position" in commands[gripper["joint"]]
    assert {"position", "velocity"} <= states[gripper["joint"]]
    broadcaster = parameters["panda_gripper_state_broadcaster"]
    assert all(set(broadcaster["interfaces"]) <= states[joint] for joint in broadcaster["joints"])
    assert commands["panda_finger_joint2"] == set()  # it mimics the other finger


def test_the_mock_hardware_begins_within_its_limits() -> None:
    joints = ElementTree.fromstring(PANDA.read_text()).findall("ros2_control/joint")
    starts = {
        str(joint.get("name")): float(value.text or "nan")
        for joint in joints
        for value in joint.findall("state_interface/param")
    }
    limits = load_limits(PANDA, list(starts))
    values = np.array(list(starts.values()))
    assert ((limits.position_low < values) & (values < limits.position_high)).all()


def test_the_shipped_controllers_are_those_that_a_pandas_contract_commands() -> None:
    parameters = controllers()
    types = {
        name: value["type"]
        for name, value in parameters["controller_manager"].items()
        if isinstance(value, dict)
    }
    arm, gripper = load_contract("franka_panda").action.sinks
    assert arm.source.channel.topic.split("/")[0] in types
    assert parameters["joint_trajectory_controller"]["joints"] == [
        path.partition(".")[2] for path in arm.source.select
    ]
    assert gripper.is_ros_action
    assert types[gripper.source.channel.topic.split("/")[0]] == "position_controllers/GripperActionController"
    assert gripper.source.select == (f"position.{parameters['panda_gripper']['joint']}",)
