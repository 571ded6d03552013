"""Where commands leave the robot's node, by names as a node expands and remaps them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy

from adahi_lab.nodes.command_inputs import INTERFACES
from adahi_lab.nodes.observer import Observer
from adahi_lab.tasks.trajectory_controller import TrajectoryController
from adahi_ros.contract.commanded import Commanded, commanded_by_sink
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.contract.sinks import message_sink
from adahi_ros.contract.sinks.interface import Command
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos, message_type, new_message
from adahi_ros.nodes.robot.command_sinks import TopicSink, open_sinks
from test.nodes.conftest import destroy


def half(topic: str, joint: str) -> dict[str, Any]:
    channel = {"topic": topic, "type": "trajectory_msgs/msg/JointTrajectory"}
    return {"channel": channel, "select": [f"positions.{joint}"]}


STATES = {"topic": "joint_states", "type": "sensor_msgs/msg/JointState"}


@pytest.mark.parametrize(
    ("right", "arguments", "shared"),
    [
        ("right/command", ["-r", "left/command:=right/command"], "/r1/right/command"),
        ("/r1/left/command", [], "/r1/left/command"),
        ("/r2/left/command", [], None),
        ("right/command", [], None),
    ],
)
def test_two_actions_may_not_meet_on_one_topic(
    observer: Observer, right: str, arguments: list[str], shared: str | None
) -> None:
    contract = parse_contract(
        {
            "robot_type": "two_arms",
            "fps": 20,
            "observations": {"observation.state": {"channel": STATES, "select": ["position.a"]}},
            "actions": {"left": half("left/command", "a"), "right": half(right, "b")},
        }
    )
    parts = commanded_by_sink(contract.action)
    with ExitStack() as opened:
        node = LifecycleNode(
            "robot", namespace="/r1", context=observer.context, cli_args=["--ros-args", *arguments]
        )
        opened.callback(destroy, node)
        if shared is None:
            sinks = open_sinks(node, contract, parts, opened)
            assert len(sinks) == 2
            return
        message = f"^left.channel.topic: 'left/command' and '{right}' of right, both '{shared}', must be one"
        with pytest.raises(ParameterError, match=message):
            open_sinks(node, contract, parts, opened)


@pytest.mark.parametrize("field", ["velocities", "effort"])
def test_bare_speeds_need_a_driver_that_stops_the_arm(observer: Observer, field: str) -> None:
    """They have no end: an arm goes on when its node ends."""
    channel = {"topic": "lift/commands", "type": "std_msgs/msg/Float64MultiArray"}
    lift = {"channel": channel, "select": ["data.0:1"], "names": ["a"], "field": field}

    def opens(lockstep: bool = False, **changes: Any) -> int:
        values = {
            "robot_type": "lift",
            "fps": 20,
            "observations": {"observation.state": {"channel": STATES, "select": ["position.a"]}},
            "actions": {"action.lift": {**lift, **changes}},
        }
        contract = parse_contract(values)
        with ExitStack() as opened:
            node = LifecycleNode("robot", context=observer.context, use_global_arguments=False)
            opened.callback(destroy, node)
            return len(open_sinks(node, contract, commanded_by_sink(contract.action), opened, lockstep))

    with pytest.raises(ParameterError, match=f"^contract: action.lift: .* with {field}: when this node ends"):
        opens()
    assert opens(watchdog_s=0.2) == opens(lockstep=True) == opens(field="positions") == 1


JOINTS, PERIOD_S, LIMIT = ("a", "b"), 0.05, 2.0
AXES, FRAME = ("linear.x", "angular.z"), "base_link"
AGE_NS = 40_000_000  # of the observation, when its command is sent


def sent(observer: Observer, name: str, stamp_ns: int, lockstep: bool = False, **given: Any) -> Any:
    """Return the command that a sink sends, as it arrives over DDS."""
    names, field = (AXES, "velocities") if name == "twist" else (JOINTS, "positions")
    what = Commanded.alike(names, field)
    interface = message_sink(INTERFACES[name], what, {"frame_id": FRAME})
    arrived: list[Any] = []
    with ExitStack() as opened:
        node = LifecycleNode("robot", context=observer.context, use_global_arguments=False)
        opened.callback(destroy, node)
        sink = TopicSink(node, "command", what, interface, PERIOD_S, opened, lockstep)
        subscription = observer.node.create_subscription(
            message_type(interface.kind), "command", arrived.append, command_qos()
        )
        opened.callback(observer.node.destroy_subscription, subscription)
        sink.open()
        observer.wait_until(lambda: sink._out.get_subscription_count() > 0, 30.0, "subscription")
        sink.send(np.full(2, LIMIT * PERIOD_S), stamp_ns, **given)
        observer.wait_until(lambda: bool(arrived), 30.0, "command")
    return arrived[0]


def requested_of_a_controller(message: Any, now_ns: int) -> float:
    """Return the speed that a trajectory asks of an arm at 0, received at a time."""
    interface = JointTrajectorySink()
    controller = TrajectoryController(np.zeros(2))
    stamp_s = (interface.stamp_ns(message) - now_ns) / NANOSECONDS
    stamp_s = 0.0 if from_stamp(message.header.stamp) == 0 else stamp_s
    curve = interface.curve(message, JOINTS)
    assert curve is not None
    controller.receive(curve, stamp_s, 0.0)
    return float(controller.peak_speed.max())


def test_a_point_has_its_whole_period_from_when_it_is_sent(observer: Observer) -> None:
    """With the observation's stamp 10 of 50 ms are left, and five times the speed is asked."""
    now_ns = observer.node.get_clock().now().nanoseconds
    message = sent(observer, "joint_trajectory", now_ns - AGE_NS)
    assert requested_of_a_controller(message, now_ns) <= LIMIT * (1 + 1e-9)
    in_lockstep = sent(observer, "joint_trajectory", now_ns - AGE_NS, lockstep=True)
    assert from_stamp(in_lockstep.header.stamp) == now_ns - AGE_NS
    assert requested_of_a_controller(in_lockstep, now_ns) == pytest.approx(5.0 * LIMIT)


@pytest.mark.parametrize("stamp_ns", [0, 12])
def test_a_twist_bears_the_time_of_its_sending(observer: Observer, stamp_ns: int) -> None:
    """A hold, too: MoveIt Servo takes a stamp of 0 for stale."""
    before_ns = observer.node.get_clock().now().nanoseconds
    stamp = from_stamp(sent(observer, "twist", stamp_ns).header.stamp)
    assert before_ns <= stamp <= observer.node.get_clock().now().nanoseconds
    assert from_stamp(sent(observer, "twist", stamp_ns, lockstep=True).header.stamp) == stamp_ns


def taker(name: str, reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE) -> SimpleNamespace:
    """Return a subscription of a node, as DDS knows it."""
    quality, gid = QoSProfile(depth=1, reliability=reliability), name.encode()
    return SimpleNamespace(qos_profile=quality, node_namespace="/", node_name=name, endpoint_gid=gid)


def sink_to(
    out: Mock, field: str = "velocities", reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE
) -> TopicSink:
    kind, names = ("twist", AXES) if field == "velocities" else ("joint_trajectory", JOINTS)
    what, node = Commanded.alike(names, field), Mock()
    node.get_clock().now().nanoseconds = 1
    out.get_subscription_count.return_value = 1
    node.get_subscriptions_info_by_topic.return_value = [taker("base", reliability), taker("policy")]
    node.get_service_names_and_types_by_node = lambda name, _: [("/policy/give_back", name)]
    messages = message_sink(INTERFACES[kind], what, {"frame_id": FRAME})
    sink = TopicSink(node, "command", what, messages, PERIOD_S, ExitStack())
    sink._out, sink.theirs = out, False
    return sink


@pytest.mark.parametrize(
    ("field", "last", "zeros"), [("velocities", 0.0, 2), ("velocities", 1.0, 3), ("positions", 0.0, 0)]
)
def test_a_base_gets_its_last_zero_before_the_publisher_ends(field: str, last: float, zeros: int) -> None:
    out = Mock()
    out.wait_for_all_acked.side_effect = [False, False, True]
    sink = sink_to(out, field)
    sink.send(np.full(2, last), 0)
    sink.close()
    sent, *later = (each.args[0] for each in out.publish.call_args_list)
    assert len(later) == zeros
    assert not zeros or sent.twist.linear.x == last
    assert not any(each.twist.linear.x for each in later)
    node: Any = sink._node
    node.destroy_publisher.assert_called_once_with(out)


def test_a_base_with_best_effort_gets_its_last_zero_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, out = [100.0], Mock()
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", lambda for_s: now_s.append(now_s.pop() + for_s))
    sink = sink_to(out, reliability=ReliabilityPolicy.BEST_EFFORT)
    sink.send(np.zeros(2), 0)
    now_s[0] = 110.0  # a cut of the link may have taken the earlier ones
    sink.close()
    assert now_s[0] == pytest.approx(111.0, abs=0.06)
    assert out.publish.call_count >= 20


def test_a_last_zero_is_repeated_until_it_arrives_and_to_who_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, out = 100.0, Mock()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    sink = sink_to(out)
    node: Any = sink._node
    sink.count_subscriptions()

    def repeats(after_s: float, acked: bool = True) -> bool:
        nonlocal now_s
        now_s, before = now_s + after_s, out.publish.call_count
        out.wait_for_all_acked.return_value = acked
        sink.repeat_zero()
        return bool(out.publish.call_count > before)

    sink.send(np.ones(2), 0)
    assert not repeats(0.1, acked=False)
    sink.send(np.zeros(2), 0)
    assert (repeats(0.9), repeats(0.2), repeats(1.0, acked=False)) == (True, False, True)
    # A recorder begins, then the link is back, or a relay, and once more while the recorder ends.
    for names, news in ((), False), (("a",), True), (("a", "base"), True), (("base_2",), True), ((), False):
        node.get_subscriptions_info_by_topic.return_value = [taker(name) for name in names]
        sink.count_subscriptions()
        assert (repeats(0.9), repeats(0.2)) == (news, False)
    sink.leave(False)
    assert not repeats(0.0, acked=False)


def test_a_topic_that_may_not_be_heard_is_not_commanded() -> None:
    sink = sink_to(Mock())
    node: Any = sink._node
    out = node.create_publisher.return_value
    out.topic_name = "/r1/cmd_vel"
    node.create_subscription.side_effect = RuntimeError
    sink._out = None
    with pytest.raises(ValueError, match=r"^/r1/cmd_vel: .* allow it in the SROS 2 policy"):
        sink.open()
    node.destroy_publisher.assert_called_once_with(out)
    assert sink._out is None


def test_who_commanded_a_motion_last_has_to_stop_it() -> None:
    """Another publisher alone takes nothing over, nor does its 0; this node hears its own messages, too."""
    out = Mock()
    sink = sink_to(out)
    sink._heard = Mock()

    def hear(x: float, frame: str = FRAME) -> None:
        message = sink._messages.message(Command(AXES, "velocities", np.full(2, x), PERIOD_S, 0), new_message)
        message.header.frame_id = frame
        sink._received(message)

    def repeats() -> bool:
        before = out.publish.call_count
        sink.repeat_zero()
        return bool(out.publish.call_count > before)

    for heard, frame, ours in (
        (0.5, FRAME, True),
        (0.0, FRAME, True),
        (0.7, FRAME, False),
        (0.0, "odom", True),
        (0.5, "odom", False),
    ):
        for x in (0.5, 0.0):
            sink.send(np.full(2, x), 0)
        assert repeats()
        if (heard, frame) != (0.5, FRAME):
            hear(0.5)  # each of its own comes back once
        hear(heard, frame)
        assert (repeats(), sink.theirs, sink._zero_s is None) == (ours, not ours, not ours)
        sink.send(np.zeros(2), 0)
        assert repeats() == ours
    sink.send(np.full(2, 0.5), 0)
    assert (sink.drives, sink.theirs) == (True, False)
    for theirs in (False, True):  # a person may drive as fast
        hear(0.5)
        assert sink.theirs == theirs


def test_a_base_that_comes_back_is_stopped_once_others_command_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they commanded while it was away moved nothing."""
    now_s, out = 100.0, Mock()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    sink = sink_to(out)
    node: Any = sink._node
    sink._heard = Mock()
    key = sink._messages.message(Command(AXES, "velocities", np.full(2, 0.2), PERIOD_S, 0), new_message)
    sink.count_subscriptions()
    sink.send(np.full(2, 0.5), 0)
    node.get_subscriptions_info_by_topic.return_value = []
    sink.count_subscriptions()
    sink.send(np.zeros(2), 0)
    now_s += 2.0
    sink._received(key)
    now_s += 0.1
    node.get_subscriptions_info_by_topic.return_value = [taker("base_2")]
    sink.count_subscriptions()
    sink.leave(True)  # its controller started
    sent = out.publish.call_count
    for passed_s, zeros in ((0.0, 0), (0.8, 0), (0.2, 1), (0.8, 1), (0.2, 0)):
        now_s += passed_s
        sink.repeat_zero()
        assert out.publish.call_count == sent + zeros
        sent = out.publish.call_count


@pytest.mark.parametrize(
    ("interface", "field", "zeros"),
    [
        ("twist", "velocities", True),
        ("joint_trajectory", "velocities", True),
        ("forward_command", "effort", False),
    ],
)
def test_a_base_that_a_former_process_left_in_motion_gets_zeros(
    observer: Observer, interface: str, field: str, zeros: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was killed, or its relay was away when the node stopped it."""
    what = Commanded.alike(names := AXES if interface == "twist" else JOINTS, field)
    messages = message_sink(INTERFACES[interface], what, {"frame_id": FRAME} if interface == "twist" else {})
    arrived: list[Any] = []
    observer.node.create_subscription(message_type(messages.kind), "command", arrived.append, command_qos())
    with ExitStack() as opened:
        node = LifecycleNode("robot", context=observer.context, use_global_arguments=False)
        opened.callback(destroy, node)
        sink = TopicSink(node, "command", what, messages, PERIOD_S, opened)
        for _ in range(2):
            sink.open()
            observer.wait_until(lambda: sink.count_subscriptions() or bool(sink._seen), 30.0, "subscription")
            sent = Mock(wraps=sink.send)
            monkeypatch.setattr(sink, "send", sent)
            sink.repeat_zero()
            sink.close()
            assert sent.called == zeros
            if zeros:
                observer.wait_until(lambda: bool(arrived), 30.0, "zero")
                assert not messages.action(arrived.pop(), names, field).any()


@pytest.mark.parametrize(("theirs", "zeros"), [(False, 1), (True, 0)])
def test_a_velocity_that_a_failed_goal_left_is_0_when_the_node_ends(theirs: bool, zeros: int) -> None:
    out = Mock()
    sink = sink_to(out)
    sink.send(np.ones(2), 0)
    sink.leave(stops=False)
    if theirs:
        sink.leave(False, theirs=True)
    sink.close()
    assert out.publish.call_count == 1 + zeros


@pytest.mark.parametrize(
    ("field", "stops"), [("velocities", True), ("velocities", False), ("positions", True)]
)
def test_a_base_is_stopped_at_once_where_its_controller_ends(field: str, stops: bool) -> None:
    out = Mock()
    sink = sink_to(out, field)
    sink.send(np.ones(2), 0)
    sink.leave(stops)
    stopped = out.publish.call_args[0][0]
    assert out.publish.call_count == 1 + (stops and field == "velocities")
    assert field == "positions" or (stopped.twist.linear.x == 0.0) == stops


def test_a_curve_is_sent_with_its_stamp_but_not_in_lockstep(observer: Observer) -> None:
    curve = Curve(
        np.array([0.0, 0.1]), np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.5, -0.5], [0.0, 0.0]])
    )
    message = sent(observer, "joint_trajectory", 12, curve=curve)
    assert from_stamp(message.header.stamp) == 12
    assert [list(point.positions) for point in message.points] == [[0.0, 0.0], [1.0, 2.0]]
    assert [list(point.velocities) for point in message.points] == [[0.5, -0.5], [0.0, 0.0]]
    assert len(sent(observer, "joint_trajectory", 12, lockstep=True, curve=curve).points) == 1
