"""Other programs on the topics of an arm: none may command it beside its policy, or measure its joints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from adahi_msgs.msg import SafetyState, TaskState
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_action_status_default
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.nodes.common.messages import to_joint_state
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.safety.holds import Hold, State
from adahi_ros.safety.intervention import Intervention
from test.ball_contract import ball_contract
from test.nodes.in_process import DEADLINE_S, NodesInProcess

JOINTS = ("plate_roll_joint", "plate_pitch_joint")
AT = np.array([0.02, -0.01])
FAST_S, SLOW_S = 0.01, 0.013
NOTHING: Mapping[str, Any] = {}
LOOKS_S = 0.8  # three looks at the publishers


class Arm:
    """A draft policy and the publishers around it, all in one process."""

    def __init__(self, nodes: NodesInProcess, checkpoint: Path) -> None:
        self.nodes, self.observer = nodes, nodes.observer
        self._checkpoint = checkpoint
        self._lock = threading.Lock()
        self._made: list[Node] = []
        self._steps = count()
        self.states: list[SafetyState] = []
        self.commands: list[JointTrajectory] = []
        node = self.observer.node
        node.create_subscription(SafetyState, "safety_state", self.states.append, 100)
        node.create_subscription(JointTrajectory, "command", self.commands.append, 100)
        self.driver = self.node("joint_state_broadcaster").create_publisher(JointState, "joint_states", 10)
        self._tasks = node.create_publisher(TaskState, "task_state", 10)

    def node(self, name: str) -> Node:
        """Return a node of another program."""
        self._made.append(Node(name, context=self.observer.context, use_global_arguments=False))
        return self._made[-1]

    def add(self, node: Node) -> None:
        """Spin a node of another program."""
        self._made.append(node)
        self.nodes.spin(node)

    def policy(
        self, name: str = "draft_policy", active: bool = True, values: Mapping[str, Any] = NOTHING
    ) -> DraftPolicyNode:
        """Return a draft policy that is spun; active, or only configured."""
        given: dict[str, Any] = {
            "checkpoint": str(self._checkpoint),
            "gate.name": "never",
            "verifier_wait_s": 0.0,
            "contract": ball_contract(tolerance_ms=50.0, max_age_s=5.0),
            "safety.require_enable": False,
            "safety.require_limits": False,
            "bond_heartbeat_period": 0.0,
            "autostart": False,
            **values,
        }
        made = self.nodes.start(lambda **options: _named(name, options), given)
        assert made.trigger_configure() is TransitionCallbackReturn.SUCCESS
        if active:
            assert made.trigger_activate() is TransitionCallbackReturn.SUCCESS
        self.nodes.spin(made)
        return made

    def runs(self) -> None:
        """Show joints at 100 Hz and a step at 20 Hz from now on."""
        self.nodes.every(FAST_S, lambda: self.measure(self.driver))
        self.nodes.every(0.05, self.step)

    def step(self) -> None:
        stamp_ns = self.observer.node.get_clock().now().nanoseconds
        with self._lock:
            self._tasks.publish(to_task_state(np.zeros(4), np.zeros(2), 1, next(self._steps), stamp_ns))

    def measure(
        self, publisher: Publisher, at: np.ndarray = AT, names: Sequence[str] = JOINTS, stamp_ns: int = 0
    ) -> None:
        stamp_ns = stamp_ns or self.observer.node.get_clock().now().nanoseconds
        publisher.publish(to_joint_state(names, at, np.zeros(len(at)), stamp_ns))

    def wait(self, done: Callable[[], bool], what: str) -> None:
        self.nodes.wait(done, what)

    def moves(self) -> None:
        """Wait for a new command that is not a hold."""
        self.commands.clear()
        self.wait(lambda: len(self.commands) > 2 and not self.states[-1].holding, "commands")

    def held(self, why: int) -> str:
        """Wait until the arm is held for a reason and rests; return the text."""
        self.wait(
            lambda: (
                bool(self.states)
                and why in self.states[-1].interventions
                and self.states[-1].message.startswith("at rest")
            ),
            f"hold {why}",
        )
        return str(self.states[-1].message)

    def enable(self, name: str = "draft_policy") -> None:
        client = self.observer.node.create_client(SetBool, f"{name}/set_enabled")
        assert self.nodes.call(client, SetBool.Request(data=True)).success

    def refused(self, name: str) -> str:
        """Try to activate a node; return why it cannot."""
        assert not self.observer.change_state(name, "activate", DEADLINE_S)
        assert self.observer.state(name, DEADLINE_S) == "inactive"
        client = self.observer.node.create_client(Trigger, f"{name}/last_error")
        return str(self.nodes.call(client, Trigger.Request()).message)

    def close(self) -> None:
        """End the nodes that are spun, then the others."""
        self.nodes.close()
        for node in self._made:
            node.destroy_node()


def _named(name: str, options: dict[str, Any]) -> DraftPolicyNode:
    """Return a policy whose node has a name: its own process remaps it."""
    return DraftPolicyNode(cli_args=["--ros-args", "-r", f"__node:={name}"], **options)


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


@pytest.mark.parametrize("alike", [False, True], ids=["77 Hz", "equal stamps"])
def test_zeros_beside_the_broadcaster_are_held_by_name_until_a_press(arm: Arm, alike: bool) -> None:
    arm.policy()
    arm.runs()
    arm.moves()
    other = arm.node("joint_state_publisher")
    zeros = other.create_publisher(JointState, "joint_states", 10)
    over = threading.Event()

    def disturb() -> None:
        if over.is_set():
            return
        stamp_ns = arm.observer.node.get_clock().now().nanoseconds
        arm.measure(zeros, np.zeros(2), stamp_ns=stamp_ns)
        if alike:
            arm.measure(arm.driver, stamp_ns=stamp_ns)

    arm.nodes.every(SLOW_S, disturb)
    text = arm.held(Intervention.MEASURED)
    assert "plate_roll_joint, plate_pitch_joint on /joint_states, of " in text
    assert "/joint_state_broadcaster, /joint_state_publisher; end one" in text
    over.set()
    other.destroy_publisher(zeros)
    arm.nodes.wait_s(LOOKS_S)
    assert arm.states[-1].holding
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()


def test_two_measurements_survive_cleanup_and_configure(arm: Arm) -> None:
    policy = arm.policy()
    arm.runs()
    other = arm.node("joint_state_publisher")
    zeros = other.create_publisher(JointState, "joint_states", 10)
    speaks = threading.Event()
    speaks.set()
    arm.nodes.every(SLOW_S, lambda: arm.measure(zeros, np.zeros(2)) if speaks.is_set() else None)
    arm.held(Intervention.MEASURED)
    speaks.clear()
    for transition in ("deactivate", "cleanup", "configure"):
        assert arm.observer.change_state("draft_policy", transition, DEADLINE_S)
    arm.nodes.wait_s(LOOKS_S)
    holds = policy._operator.permission.holds
    policy._operator.permission.set_enabled(True, time.monotonic())
    assert holds[Hold.MEASURED] is State.LASTS  # the other is still there, and silent
    other.destroy_publisher(zeros)
    arm.wait(lambda: holds[Hold.MEASURED] is State.PRESS, "one publisher")


def test_it_is_seen_before_the_node_is_active(arm: Arm) -> None:
    arm.policy(active=False)
    zeros = arm.node("joint_state_publisher").create_publisher(JointState, "joint_states", 10)
    arm.runs()
    arm.nodes.every(SLOW_S, lambda: arm.measure(zeros, np.zeros(2)))
    arm.nodes.wait_s(LOOKS_S)
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.wait(lambda: bool(arm.states), "safety state")
    arm.nodes.wait_s(LOOKS_S)
    assert all("joint_state_publisher" in state.message for state in arm.states)
    assert not arm.commands


def test_a_gripper_beside_it_and_a_restarted_driver_hold_nothing(arm: Arm) -> None:
    arm.policy()
    gripper = arm.node("gripper").create_publisher(JointState, "joint_states", 10)
    arm.runs()
    arm.nodes.every(SLOW_S, lambda: arm.measure(gripper, np.zeros(1), ["finger"]))
    arm.moves()
    before, broadcaster = arm.driver, arm.node("joint_state_broadcaster")
    arm.driver = broadcaster.create_publisher(
        JointState, "joint_states", 10
    )  # the former one is still listed
    arm.nodes.wait_s(2 * LOOKS_S)
    assert before.topic_name == "/joint_states"
    arm.moves()
    assert not any(Intervention.MEASURED in state.interventions for state in arm.states)


def test_a_second_policy_is_refused_while_the_first_one_is_active(arm: Arm) -> None:
    first = arm.policy("first")
    arm.runs()
    arm.moves()
    arm.policy("second", active=False)
    text = arm.refused("second")
    assert text == (
        "/first is an active policy of this namespace too, on /link_state; end it, or allow it by "
        "safety.shared_command: true"
    )
    arm.nodes.wait_s(LOOKS_S)
    arm.moves()  # the second one is inactive, and does not count
    assert not any(Intervention.SHARED in state.interventions for state in arm.states)
    assert arm.observer.change_state("first", "deactivate", DEADLINE_S)
    arm.wait(lambda: not arm.observer.node.count_publishers("/command"), "rest")
    assert arm.observer.change_state("second", "activate", DEADLINE_S)
    assert first.count_publishers("/command") == 1
    arm.moves()


def test_who_sends_commands_in_motion_is_held_for_by_name(arm: Arm) -> None:
    policy = arm.policy()
    arm.runs()
    arm.moves()
    tool = arm.node("teleop")
    out = tool.create_publisher(JointTrajectory, "command", 1)
    assert arm.held(Intervention.SHARED).endswith(
        "/teleop sends commands too, on /command; end it, or allow it by safety.shared_command: true"
    )
    assert arm.observer.change_state("draft_policy", "deactivate", DEADLINE_S)
    assert "/teleop sends commands too" in arm.refused("draft_policy")
    arm.nodes.wait_s(LOOKS_S)
    policy._operator.permission.set_enabled(True, time.monotonic())  # while the other is still there
    tool.destroy_publisher(out)
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.nodes.wait_s(LOOKS_S)
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()
    assert policy.count_publishers("/command") == 1


CONTROLLED = {
    "action": {
        "channel": {"topic": "arm/joint_trajectory", "type": "trajectory_msgs/msg/JointTrajectory"},
        "select": [f"positions.{joint}" for joint in JOINTS],
    }
}
GOALS = "arm/follow_joint_trajectory/_action"


def test_a_goal_on_the_controller_is_held_for_by_name_until_a_press(arm: Arm) -> None:
    policy = arm.policy(
        values={"contract": ball_contract(tolerance_ms=50.0, max_age_s=5.0, actions=CONTROLLED)}
    )
    arm.observer.node.create_subscription(JointTrajectory, "arm/joint_trajectory", arm.commands.append, 100)
    controller, moveit = arm.node("controller"), arm.node("moveit")
    quality = qos_profile_action_status_default
    out = controller.create_publisher(GoalStatusArray, f"{GOALS}/status", quality)

    def report(status: int) -> None:
        out.publish(GoalStatusArray(status_list=[GoalStatus(status=status)]))

    report(GoalStatus.STATUS_SUCCEEDED)  # one of before
    arm.runs()
    arm.moves()
    moveit.create_subscription(Bool, f"{GOALS}/feedback", lambda message: None, 1)
    arm.wait(lambda: policy.count_subscribers(f"{GOALS}/feedback") == 1, "a client")
    report(GoalStatus.STATUS_EXECUTING)
    said = "a goal of moveit executes on /arm/follow_joint_trajectory"
    ends = f"{said}; end it, or allow it by safety.shared_command: true"
    assert arm.held(Intervention.SHARED).endswith(ends)
    assert arm.observer.change_state("draft_policy", "deactivate", DEADLINE_S)
    assert said in arm.refused("draft_policy")
    report(GoalStatus.STATUS_CANCELED)
    arm.wait(lambda: not policy._commands.others._commanded(), "its end")
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.nodes.wait_s(LOOKS_S)
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()
    report(GoalStatus.STATUS_EXECUTING)
    arm.held(Intervention.SHARED)
    assert np.isinf(policy._commands.guard._motion.moved_s).all()  # the goal's motion is not braked
    later = controller.create_publisher(GoalStatusArray, f"{GOALS}/status", quality)  # of one that was killed
    controller.destroy_publisher(out)  # it ends with the goal, for DDS 20 s later
    arm.wait(lambda: "another program commanded the arm" in arm.states[-1].message, "no controller")
    arm.enable()
    arm.moves()
    out = later
    report(GoalStatus.STATUS_EXECUTING)
    arm.held(Intervention.SHARED)
    assert arm.observer.change_state("draft_policy", "deactivate", DEADLINE_S)
    controller.create_publisher(GoalStatusArray, f"{GOALS}/status", quality)
    controller.destroy_publisher(out)
    arm.wait(lambda: not policy._commands.others._commanded(), "its end")
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)


def test_two_writers_are_allowed_by_a_parameter(arm: Arm) -> None:
    arm.node("teleop").create_publisher(JointTrajectory, "command", 1)
    arm.policy(values={"safety.shared_command": True})
    arm.runs()
    arm.moves()
    arm.nodes.wait_s(LOOKS_S)
    arm.moves()


def test_two_nodes_of_one_name_are_not_active(arm: Arm) -> None:
    policy = arm.policy(active=False)
    twin = arm.node("draft_policy")
    assert policy.trigger_activate() is TransitionCallbackReturn.FAILURE
    assert policy.last_error.startswith("2 nodes are named /draft_policy; end the others")
    twin.destroy_node()
    assert policy.trigger_activate() is TransitionCallbackReturn.SUCCESS


def test_deactivated_in_motion_it_keeps_its_publisher_until_it_rests(arm: Arm) -> None:
    policy = arm.policy(values={"safety.limits": "ball"})
    arm.runs()
    arm.moves()
    assert policy.trigger_deactivate() is TransitionCallbackReturn.SUCCESS
    assert policy._commands.guard.moving == bool(policy.count_publishers("/command"))
    arm.held(Intervention.DEACTIVATED)
    arm.wait(lambda: not policy.count_publishers("/command"), "rest")
    assert policy.trigger_cleanup() is TransitionCallbackReturn.SUCCESS
