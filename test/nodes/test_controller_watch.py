"""The controllers that take the commands: absent, ended, restarted, switched off, or of other joints."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
from control_msgs.msg import JointTrajectoryControllerState
from controller_manager_msgs.msg import ControllerManagerActivity, NamedLifecycleState
from lifecycle_msgs.msg import State as Lifecycle
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.common.graph import UNKNOWN
from adahi_ros.nodes.robot import command_sinks, controller_watch
from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.nodes.robot.controller_watch import PARTICIPANT
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.safety.commands import Outgoing
from adahi_ros.safety.holds import Hold, State
from test.ball_contract import ball_contract
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.nodes.test_other_publishers import AT, JOINTS, LOOKS_S, NOTHING, Arm

TOPIC = "arm_controller/joint_trajectory"
ACTIVITY = "controller_manager/activity"
ACTIONS = {
    "action.plate": {
        "channel": {"topic": TOPIC, "type": "trajectory_msgs/msg/JointTrajectory"},
        "select": [f"positions.{joint}" for joint in JOINTS],
    }
}
DRIVER = {
    "topic": ACTIVITY,
    "type": "controller_manager_msgs/msg/ControllerManagerActivity",
    "field": "controllers.arm_controller.state.label",
    "running": ["active"],
    "latched": True,
    "optional": True,
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ControlledArm(Arm):
    """An arm whose commands go to a controller that the test starts and ends."""

    controller: Node

    def policy(
        self, name: str = "draft_policy", active: bool = True, values: Mapping[str, Any] = NOTHING
    ) -> DraftPolicyNode:
        contract = ball_contract(tolerance_ms=50.0, max_age_s=5.0, actions=ACTIONS, driver=[DRIVER])
        return super().policy(name, active, {"contract": contract, **values})

    def start_controller(self) -> None:
        """Start a controller; the test's own node takes its messages."""
        self.controller = self.node("arm_controller")
        self.controller.create_subscription(JointTrajectory, TOPIC, lambda message: None, 1)

    def state_publisher(self) -> Publisher:
        """Return the publisher of the controller's own state."""
        kind, topic = JointTrajectoryControllerState, "arm_controller/controller_state"
        return self.controller.create_publisher(kind, topic, 1)

    def end_controller(self) -> None:
        self._made.remove(self.controller)
        self.controller.destroy_node()

    def says(self, text: str) -> None:
        """Wait until the arm is held with this text for people."""
        self.wait(lambda: any(text in each.message and each.holding for each in self.states), text)

    def record(self) -> None:
        """Take the commands beside the controller, as a recorder does."""
        self.observer.node.create_subscription(JointTrajectory, TOPIC, self.commands.append, 100)


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[ControlledArm]:
    with closing(ControlledArm(nodes, exported / "draft")) as arm:
        yield arm


def test_without_a_controller_nothing_is_commanded_until_it_is_there(arm: ControlledArm) -> None:
    arm.policy()
    arm.runs()
    arm.says(f"nothing subscribes to /{TOPIC}; start the controller")
    assert not arm.states[-1].needs_press
    arm.start_controller()
    arm.record()
    arm.moves()


def test_a_controller_that_ends_or_is_restarted_holds_until_a_press(arm: ControlledArm) -> None:
    arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    arm.moves()
    arm.end_controller()
    arm.says("/arm_controller has ended")
    assert arm.states[-1].needs_press
    arm.commands.clear()  # one that comes now must not get the motion of the former one
    arm.start_controller()
    arm.wait(lambda: "it did not run" in arm.states[-1].message, "the controller")
    arm.nodes.wait_s(LOOKS_S)
    assert not arm.commands
    arm.enable()
    arm.moves()


def test_a_controller_that_starts_beside_a_recorder_holds_until_a_press(arm: ControlledArm) -> None:
    """It missed the commands until then."""
    arm.policy()
    arm.record()
    arm.runs()
    arm.moves()
    arm.start_controller()
    arm.says("it did not run: /arm_controller has started; press enable afresh")
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()


def test_a_controller_that_comes_during_a_step_does_not_get_its_command(
    arm: ControlledArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = arm.policy()._commands
    arm.record()
    arm.runs()
    arm.moves()
    (sink,), limit = commands._topics, commands.commands.limit
    sent: list[Any] = []

    def controller_comes(*given: Any) -> Any:
        outgoing = limit(*given)
        if outgoing.action is not None and not hasattr(arm, "controller"):
            before = sink._out.get_subscription_count()
            arm.start_controller()
            while sink._out.get_subscription_count() == before:
                time.sleep(0.001)
            monkeypatch.setattr(sink, "send", lambda *command: sent.append(command))
        return outgoing

    monkeypatch.setattr(commands, "_hold_after_s", DEADLINE_S)  # computing takes long
    monkeypatch.setattr(commands.commands, "limit", controller_comes)
    arm.says("it did not run: /arm_controller has started; press enable afresh")
    assert not sent


def test_a_controller_that_was_killed_and_restarted_holds_at_once(arm: ControlledArm) -> None:
    """DDS still knows the killed one's subscription."""
    arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    arm.moves()
    arm.start_controller()
    arm.says("it did not run: /arm_controller has started; press enable afresh")
    arm.enable()
    arm.moves()


def test_a_controller_gets_nothing_of_the_braking_of_a_former_one(arm: ControlledArm, tmp_path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text("limits: {default: {position: [-1.0, 1.0], velocity: 0.1, acceleration: 0.05}}")
    policy = arm.policy(values={"safety.limits": str(limits)})
    arm.start_controller()
    arm.record()
    arm.runs()
    arm.wait(lambda: bool(arm.commands), "commands")
    arm.wait(lambda: bool(np.abs(arm.commands[-1].points[0].velocities).max() > 0.02), "motion")
    assert arm.observer.change_state("draft_policy", "deactivate", DEADLINE_S)
    assert policy._commands.guard.moving
    arm.end_controller()
    arm.wait(lambda: policy._operator.permission.holds[Hold.DRIVER] is not State.CLEAR, "its end")
    arm.commands.clear()
    arm.start_controller()
    arm.wait(lambda: not policy._commands.guard.moving, "rest")
    arm.nodes.wait_s(LOOKS_S)
    assert not arm.commands


def test_a_driver_that_ends_and_returns_gets_nothing_of_the_braking(arm: ControlledArm) -> None:
    """Its node has not the topic's name, so any subscription counts; it stands where it was."""
    policy = arm.policy()
    driver = arm.observer.node
    subscription = driver.create_subscription(JointTrajectory, TOPIC, arm.commands.append, 100)
    arm.runs()
    arm.moves()
    driver.destroy_subscription(subscription)
    arm.says(f"nothing subscribes to /{TOPIC}")
    assert np.isinf(policy._commands.guard._motion.rested).all()
    arm.commands.clear()
    driver.create_subscription(JointTrajectory, TOPIC, arm.commands.append, 100)
    arm.wait(lambda: bool(arm.commands), "motion")
    np.testing.assert_allclose(arm.commands[0].points[0].positions, AT, atol=1e-6)


def test_a_driver_is_told_from_a_recorder_by_the_joints_that_it_publishes(arm: ControlledArm) -> None:
    arm.policy()
    driver = arm.node("driver")
    states = driver.create_publisher(JointState, "joint_states", 10)
    subscription = driver.create_subscription(JointTrajectory, TOPIC, lambda message: None, 100)
    arm.record()
    arm.nodes.every(0.01, lambda: arm.measure(states))
    arm.nodes.every(0.05, arm.step)
    arm.moves()
    driver.destroy_subscription(subscription)
    arm.says("/driver has ended")
    assert arm.states[-1].needs_press


def test_with_an_unknown_controller_each_new_subscription_holds(arm: ControlledArm) -> None:
    """Its joints are published by another node, as by a broadcaster of ros2_control."""
    policy = arm.policy(active=False)
    controller = arm.node("another_name")
    subscription = controller.create_subscription(JointTrajectory, TOPIC, lambda message: None, 1)
    arm.record()
    arm.wait(lambda: policy.count_subscribers(f"/{TOPIC}") == 2, "both subscriptions")  # no new ones later
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.runs()
    arm.moves()
    controller.destroy_subscription(subscription)
    arm.says(f"other programs subscribe to /{TOPIC} than before")
    arm.wait(lambda: "it did not run" in arm.states[-1].message, "a look")
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()
    controller.create_subscription(JointTrajectory, TOPIC, lambda message: None, 1)
    arm.says(f"other programs subscribe to /{TOPIC} than before")


def test_programs_that_are_discovered_before_the_arm_moves_hold_nothing(arm: ControlledArm) -> None:
    arm.policy()
    arm.record()
    arm.nodes.wait_s(LOOKS_S)
    arm.node("other").create_subscription(JointTrajectory, TOPIC, lambda message: None, 1)
    arm.nodes.wait_s(LOOKS_S)
    arm.runs()
    arm.moves()
    assert not any("than before" in each.message for each in arm.states)


@contextmanager
def watching(
    monkeypatch: pytest.MonkeyPatch, found: dict[bytes, str], publishes: Mapping[str, dict[bytes, str]]
) -> Iterator[tuple[controller_watch.ControllerWatch, list[str], list[bool]]]:
    """A watch of a moving arm, what it says, and whether what it leaves may still follow velocities."""
    said: list[str] = []
    left: list[bool] = []
    monkeypatch.setattr(controller_watch, "subscriptions_of", lambda node, topic: dict(found))
    monkeypatch.setattr(controller_watch, "publishers_of", lambda node, topic: publishes[topic])
    no_node: Any = SimpleNamespace(
        create_subscription=lambda *given: None, destroy_subscription=lambda _: None
    )
    with ExitStack() as opened:
        watch = controller_watch.ControllerWatch(
            no_node,
            {f"/{TOPIC}": JOINTS},
            ["/joint_states"],
            lambda fault, known: said.append(fault),
            lambda topic, follows, misses_s: left.append(follows),
            lambda topic, stamp_ns: None,
            opened,
        )
        watch.begin()
        watch.moved = True
        yield watch, said, left


def test_a_base_beside_a_recorder_that_comes_is_braked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its controller has another name than its topic."""
    found = {b"b" * 16: "/base"}
    with watching(monkeypatch, found, {"/joint_states": {}}) as (watch, said, left):
        found[b"r" * 16] = "/echo"
        watch.compare_subscriptions()
    assert (said[0], left) == (f"other programs subscribe to /{TOPIC} than before", [True])


@pytest.mark.parametrize(
    ("off", "left"),
    [("/arm", [("/arm/joint_trajectory", False)]), ("/gripper", [("/base/cmd_vel", True)])],
)
def test_a_base_is_braked_where_another_controller_is_off(off: str, left: list[tuple[str, bool]]) -> None:
    """One that is off and commands no known topic may be that of a topic of another name."""
    found: list[tuple[str, bool]] = []
    publisher: Any = SimpleNamespace(
        _joints={"/arm/joint_trajectory": [], "/base/cmd_vel": []},
        _controllers=SimpleNamespace(unnamed=lambda: ["/base/cmd_vel"]),
        _leave=lambda topic, follows: found.append((topic, follows)),
    )
    CommandPublisher.leave_controller(publisher, off)
    assert found == left


def test_a_controller_that_ends_gets_a_zero_but_not_for_a_goal() -> None:
    sink = Mock(topic=TOPIC)
    publisher: Any = Mock(_joints={TOPIC: JOINTS}, _topics=[sink], _names=JOINTS)
    publisher._node.resolve_topic_name = str
    publisher._named.return_value = [sink]
    CommandPublisher._leave(publisher, TOPIC)
    CommandPublisher._leave(publisher, TOPIC, stops=False)  # a goal of another program begins
    publisher.guard.active = publisher.guard.moving = publisher.guard.holding = publisher._sinks = []
    CommandPublisher._publish(publisher, Outgoing())
    assert sink.mock_calls == [call.leave(True), call.leave(False), call.close()]


@pytest.mark.parametrize("drives", [False, True])
def test_a_goal_that_begins_takes_a_topic_over(drives: bool) -> None:
    """A last velocity may have come later than the goal began: it gets its 0, once."""
    sink = Mock(drives=drives)
    publisher: Any = Mock()
    publisher._named.return_value = [sink]
    CommandPublisher._on_goal(publisher, TOPIC)
    publisher._leave.assert_called_once_with(TOPIC, stops=False)
    assert sink.mock_calls == [call.leave(drives, theirs=True)]


@pytest.mark.parametrize("recorder", [False, True])
def test_a_restarted_controller_is_noticed_before_its_name_is_known(
    recorder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DDS keeps the killed one's subscription; the new one's process publishes the controller's state."""
    old, new, newest, state = (
        each * PARTICIPANT + each for each in (b"o", b"n", b"m", b"m" if recorder else b"n")
    )
    found = {old: "/arm_controller"}
    publishes = {"/arm_controller/controller_state": {state: "/unknown"}, "/joint_states": {}}
    with watching(monkeypatch, found, publishes) as (watch, said, left):
        found[new] = f"/{UNKNOWN}"
        for _ in range(3):  # a look follows each change
            watch.compare_subscriptions()
        assert left == ([] if recorder else [False])
        found[new] = "/recorder" if recorder else "/arm_controller"
        watch.compare_subscriptions()
        found[newest] = "/arm_controller"
        watch.compare_subscriptions()
        started = "/arm_controller has started"
        assert said == ([started] if recorder else [started, "", started])
        left.clear()
        watch.compare_subscriptions()
        assert (said[-1], left) == ("", [])


def test_a_recorder_that_begins_or_ends_holds_nothing(arm: ControlledArm) -> None:
    arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    arm.moves()
    recorder = arm.node("recorder")
    subscription = recorder.create_subscription(JointTrajectory, TOPIC, lambda message: None, 10)
    arm.nodes.wait_s(LOOKS_S)
    recorder.destroy_subscription(subscription)
    arm.states.clear()
    arm.nodes.wait_s(LOOKS_S)
    assert not any(state.holding for state in arm.states)


def test_what_a_controller_says_of_itself_holds_the_arm(arm: ControlledArm) -> None:
    policy = arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    state = arm.state_publisher()
    scaling = 1.0

    def speak() -> None:
        state.publish(JointTrajectoryControllerState(joint_names=JOINTS, speed_scaling_factor=scaling))

    arm.nodes.every(0.05, speak)
    arm.moves()
    scaling = 0.5
    arm.says("/arm_controller runs at 50% of its speed, must be 100 %")
    assert np.isinf(policy._commands.guard._motion.rested).all()  # nothing is braked


def test_a_controller_that_has_published_its_state_and_is_silent_holds(arm: ControlledArm) -> None:
    """It was killed, or hangs; with the QoS of a real one it acknowledges nothing, and DDS still knows it."""
    policy = arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    state = arm.state_publisher()
    speaks = True

    def speak() -> None:
        if speaks:
            stamp = arm.controller.get_clock().now().to_msg()
            state.publish(JointTrajectoryControllerState(joint_names=JOINTS, header=Header(stamp=stamp)))

    arm.nodes.every(0.05, speak)
    arm.moves()
    arm.nodes.wait_s(LOOKS_S)
    assert not arm.states[-1].holding
    speaks = False
    arm.says("/arm_controller is silent")
    arm.wait(lambda: arm.states[-1].at_rest, "rest")
    assert np.isinf(policy._commands.guard._motion.rested).all()  # nothing is braked
    speaks = True
    arm.wait(lambda: "it did not run" in arm.states[-1].message, "the controller")
    assert arm.states[-1].needs_press
    arm.enable()
    arm.moves()


def test_silence_means_nothing_while_the_node_closes(arm: ControlledArm) -> None:
    """It brakes, and receives no states."""
    policy = arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    state = arm.state_publisher()
    watch = policy._commands._controllers

    def speak() -> None:
        if watch.receives:
            stamp = arm.controller.get_clock().now().to_msg()
            state.publish(JointTrajectoryControllerState(joint_names=JOINTS, header=Header(stamp=stamp)))

    arm.nodes.every(0.05, speak)
    arm.moves()
    watch.receives = False
    arm.nodes.wait_s(LOOKS_S)
    assert not arm.states[-1].holding


def test_a_controller_that_is_switched_off_holds_by_name(arm: ControlledArm) -> None:
    """No one publishes the activity at first, as on an arm without ros2_control: it is optional."""
    policy = arm.policy()
    arm.start_controller()
    arm.record()
    arm.runs()
    arm.moves()
    manager = arm.node("controller_manager").create_publisher(ControllerManagerActivity, ACTIVITY, LATCHED)

    def report(label: str) -> None:
        others = NamedLifecycleState(name="other", state=Lifecycle(label="inactive"))
        ours = NamedLifecycleState(name="arm_controller", state=Lifecycle(label=label))
        manager.publish(ControllerManagerActivity(controllers=[others, ours]))

    report("inactive")
    said = f"driver {ACTIVITY} controllers.arm_controller.state.label: 'inactive', must be 'active'"
    arm.says(said)
    assert np.isinf(policy._commands.guard._motion.rested).all()  # nothing is braked
    report("active")
    arm.wait(lambda: "it did not run" in arm.states[-1].message, "the controller")
    arm.enable()
    arm.moves()


@pytest.mark.parametrize("kind", ["controllers", "hardware_components"])
def test_a_controller_of_unknown_name_is_left_where_it_or_hardware_is_off(
    kind: str, arm: ControlledArm
) -> None:
    driver = {**DRIVER, "field": f"{kind}.remapped.state.label"}
    contract = ball_contract(tolerance_ms=50.0, max_age_s=5.0, actions=ACTIONS, driver=[driver])
    policy = arm.policy(values={"contract": contract})
    if kind == "hardware_components":
        arm.start_controller()
    arm.record()
    arm.runs()
    arm.moves()
    manager = arm.node("controller_manager").create_publisher(ControllerManagerActivity, ACTIVITY, LATCHED)
    off = NamedLifecycleState(name="remapped", state=Lifecycle(label="inactive"))
    manager.publish(ControllerManagerActivity(**{kind: [off]}))
    arm.says("'inactive', must be 'active'")
    assert np.isinf(policy._commands.guard._motion.rested).all()


@pytest.mark.parametrize("speaks", [True, False], ids=["says what it follows", "silent"])
def test_a_controller_that_acknowledges_nothing_is_waited_for(
    speaks: bool, arm: ControlledArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of ros2_control subscribe with best effort; what they say they follow is the message's stamp."""
    monkeypatch.setattr(command_sinks, "MATCHED_S", DEADLINE_S if speaks else 2.0)
    policy = arm.policy(active=False)
    arm.controller = arm.node("arm_controller")
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    arm.controller.create_subscription(JointTrajectory, TOPIC, lambda message: None, best_effort)
    arm.record()
    state = arm.state_publisher()
    follows = False

    def speak() -> None:
        now = arm.controller.get_clock().now()
        message = JointTrajectoryControllerState(joint_names=JOINTS, header=Header(stamp=now.to_msg()))
        if follows and arm.commands:
            passed = now - Time.from_msg(arm.commands[-1].header.stamp)
            message.reference.time_from_start = passed.to_msg()
        state.publish(message)

    arm.nodes.every(0.02, speak)
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.runs()
    arm.wait(lambda: len(arm.commands) > 10, "commands")
    places = [list(each.points[-1].positions) for each in arm.commands]
    np.testing.assert_allclose(places, np.broadcast_to(AT, (len(places), 2)), atol=1e-9)
    assert not policy._commands._reaches()
    follows = speaks
    arm.moves()


def test_motion_begins_once_a_command_has_reached_the_controller(
    arm: ControlledArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that misses the first commands would cover their distance at once."""
    policy = arm.policy(active=False)
    arm.start_controller()
    arm.record()
    reached = False
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    (sink,) = policy._commands._topics
    monkeypatch.setattr(sink._out, "wait_for_all_acked", lambda timeout: reached, raising=False)
    arm.runs()
    arm.wait(lambda: len(arm.commands) > 5, "commands")
    places = [list(each.points[-1].positions) for each in arm.commands]
    np.testing.assert_allclose(places, np.broadcast_to(AT, (len(places), 2)), atol=1e-9)
    reached = True
    arm.wait(lambda: not np.allclose(arm.commands[-1].points[-1].positions, AT, atol=1e-9), "motion")
