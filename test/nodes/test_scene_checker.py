"""Plans checked by a stand-in of MoveIt's service: a state that touches something holds the arm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from moveit_msgs.msg import ContactInformation
from moveit_msgs.srv import GetStateValidity
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.common.messages import to_trajectory
from adahi_ros.nodes.monitoring.scene_checker_node import SceneCheckerNode
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.planned_states import VALID
from test.ball_contract import ball_contract
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.nodes.test_other_publishers import JOINTS, Arm

DRIVER = {"topic": "plan_validity", "type": "std_msgs/msg/String", "field": "data", "running": [VALID]}


class Scene:
    """A stand-in of move_group: it allows every state, or none."""

    def __init__(self, arm: Arm) -> None:
        self.allows = True
        self.asked: list[Any] = []
        node = Node("move_group", context=arm.observer.context, use_global_arguments=False)
        node.create_service(GetStateValidity, "check_state_validity", self._answer)
        arm.add(node)

    def _answer(self, request: Any, response: Any) -> Any:
        self.asked.append(request)
        response.valid = self.allows
        if not self.allows:
            response.contacts = [ContactInformation(contact_body_1="plate", contact_body_2="table")]
        return response


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


def checks(arm: Arm, *remaps: str, **values: Any) -> list[str]:
    """Start the checker; return what it will have said."""
    said: list[str] = []

    def hear(text: Any) -> None:
        said.append(text.data)

    arm.observer.node.create_subscription(String, "plan_validity", hear, 10)
    lasts_s = values.pop("lasts_s", 1.0)
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = SceneCheckerNode(
        lasts_s,
        context=arm.observer.context,
        use_global_arguments=False,
        parameter_overrides=overrides,
        cli_args=["--ros-args", *remaps],
    )
    arm.add(node)
    return said


def plan(arm: Arm, *places: float, topic: str = "planned_trajectory") -> None:
    """Publish a plan of the first joint again and again."""
    out = arm.observer.node.create_publisher(JointTrajectory, topic, 1)
    message = to_trajectory(JOINTS[:1], np.array(places)[:, None], 0.1, 0)
    arm.nodes.every(0.05, lambda: out.publish(message))


def test_every_state_of_a_plan_is_asked_for_with_its_joints(arm: Arm) -> None:
    scene, said = Scene(arm), checks(arm, group_name="plate")
    plan(arm, 0.1, 0.5)
    arm.wait(lambda: len(scene.asked) > 3 and said[-1:] == [VALID], "checks")
    states = [each.robot_state for each in scene.asked[:2]]
    assert scene.asked[0].group_name == "plate"
    assert all(state.is_diff and list(state.joint_state.name) == [JOINTS[0]] for state in states)
    np.testing.assert_allclose([state.joint_state.position[0] for state in states], [0.1, 0.5])


def test_a_plan_that_touches_something_holds_the_arm_until_a_press(arm: Arm) -> None:
    scene = Scene(arm)
    checks(arm, lasts_s=0.1, patience_s=5.0)
    policy = arm.policy(values={"contract": ball_contract(tolerance_ms=50.0, max_age_s=5.0, driver=[DRIVER])})
    planned: list[JointTrajectory] = []
    arm.observer.node.create_subscription(JointTrajectory, "planned_trajectory", planned.append, 1)
    policy._loop.controller.coming = lambda step: np.full((20, 2), 0.1, np.float32)
    arm.runs()
    arm.moves()
    assert tuple(planned[-1].joint_names) == JOINTS
    assert planned[-1].points[19].time_from_start.sec == 1
    scene.allows = False
    assert "'plate touches table', must be 'valid'" in arm.held(Intervention.DRIVER)
    scene.allows = True
    arm.wait(lambda: "it did not run" in arm.states[-1].message, "a valid plan")
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()


def test_without_moveit_the_arm_is_held(arm: Arm) -> None:
    said = checks(arm)
    plan(arm, *[0.1] * 20)
    arm.wait(lambda: "MoveIt did not answer for 0.5 s" in said, "words")


@pytest.mark.parametrize("topic", ["planned_trajectory", "left/planned_trajectory"])
def test_two_publishers_of_plans_hold_the_arm(arm: Arm, topic: str) -> None:
    Scene(arm)
    said = checks(arm, "-r", f"planned_trajectory:={topic}")
    plan(arm, 0.1, topic=topic)
    arm.wait(lambda: said[-1:] == [VALID], "a check")
    arm.node("another").create_publisher(JointTrajectory, topic, 1)
    arm.wait(lambda: said[-1:] == ["several nodes publish planned_trajectory, must be one"], "words")


def test_only_an_active_policy_publishes_its_plan_also_where_it_has_none(arm: Arm) -> None:
    planned: list[JointTrajectory] = []
    arm.observer.node.create_subscription(JointTrajectory, "planned_trajectory", planned.append, 1)
    policy = arm.policy(active=False)
    assert not policy.count_publishers("planned_trajectory")
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.runs()
    arm.moves()
    arm.wait(lambda: bool(planned), "a plan")
    assert tuple(planned[-1].joint_names) == JOINTS
    assert not planned[-1].points  # it drafts
