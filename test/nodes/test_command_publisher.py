"""How a publisher of commands brakes at the end, by a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.evaluation.plain_contract import plain_values
from adahi_lab.tasks.trajectory_controller import TrajectoryController
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.robot import command_publisher
from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.nodes.robot.command_sinks import TopicSink
from adahi_ros.nodes.robot.draft_policy_parameters import (
    CommandParameters,
    DraftPolicyParameters,
    SafetyParameters,
)
from adahi_ros.safety.holds import Hold, State
from adahi_ros.safety.permission import Permission
from test.nodes.conftest import Make
from test.waiting import wait_for

SPEED, FASTEST, HARDEST = 1.4, 1.44, 4.0  # rad/s, rad/s, rad/s^2
STEPS = 60
LIFT = {
    "channel": {"topic": "lift/commands", "type": "std_msgs/msg/Float64MultiArray"},
    "select": ["data.0"],
    "names": ["lift"],
    "field": "velocities",
    "watchdog_s": 0.2,
}


class Driven:
    """A publisher that has just sent the last of many actions, as fast as it may, and what it sent.

    Attributes:
        now_s: the time; each sleep takes longer by the next of `late`, periods.
        sent: the time and the position of each command.
        controller: executes the commands.
    """

    def __init__(self, node: Any, taker: Any, limits: Path, rate_hz: float, beside: bool):
        self.period_s, self.now_s = 1.0 / rate_hz, 1000.0
        self.late: list[float] = []
        self.sent: list[tuple[float, float]] = []
        self.controller = TrajectoryController(np.zeros(1))
        plain = plain_values("arm", rate_hz, ["a"], 0, 0, ["a"], "positions")
        if beside:
            plain["actions"]["lift"] = LIFT
        contract = parse_contract(plain)
        safety = SafetyParameters(limits=str(limits), require_enable=False)
        values = DraftPolicyParameters(safety=safety)
        self.publisher = CommandPublisher(node, contract, values, Permission(False, 0.5), ExitStack())
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=round(self.now_s * NANOSECONDS)))
        played: Any = SimpleNamespace(get_clock=lambda: clock, get_logger=node.get_logger)
        self.publisher._node = played
        self.publisher._origin_ns = 0
        taker.create_subscription(JointTrajectory, "command", lambda message: None, 1)
        wait_for(lambda: node.count_subscribers("command") > 0)

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s + self.period_s * (self.late.pop(0) if self.late else 0.0)

    def receive(self, command: np.ndarray, stamp_ns: int, curve: Curve) -> None:
        self.sent.append((self.now_s, float(command[0])))
        self.controller.receive(curve, stamp_ns / NANOSECONDS, self.now_s)

    def drive(self) -> None:
        """Send the actions of a plan, each on time."""
        speeds = np.minimum(SPEED, 0.9 * HARDEST * self.period_s * np.arange(STEPS))
        plan = np.cumsum(speeds * self.period_s)[:, None] * np.eye(1, len(self.publisher.limits.names))
        self.publisher.start()
        for step in range(STEPS):
            self.now_s += self.period_s * (step > 0)
            self.publisher.observed()
            measured = self.controller.sample(self.now_s).positions
            seen: Any = SimpleNamespace(read=measured, stamp_ns=1, episode=0)
            self.publisher.command(self.publisher.limit(plan[step], seen), seen)


@pytest.fixture
def driven(make_node: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Driven]:
    limits = tmp_path / "limits.yaml"
    limit = {"position": [-9.0, 9.0], "velocity": FASTEST, "acceleration": HARDEST, "max_step": 1.0}
    lift = {"velocity": FASTEST, "acceleration": HARDEST}
    limits.write_text(yaml.safe_dump({"limits": {"a": limit, "lift": lift}}))

    def drive(rate_hz: float, beside: bool = False) -> Driven:
        made = Driven(make_node(Node, "arm"), make_node(Node, "taker"), limits, rate_hz, beside)
        clock = SimpleNamespace(monotonic=lambda: made.now_s, sleep=made.sleep)
        monkeypatch.setattr(command_publisher, "time", clock)

        def send(sink: TopicSink, *given: Any) -> None:
            if sink.interpolated:
                made.receive(*given)

        monkeypatch.setattr(TopicSink, "send", send)
        made.drive()
        return made

    return drive


def test_a_command_from_before_the_process_stood_still_is_not_sent(driven: Callable[..., Driven]) -> None:
    made = driven(20.0)
    made.publisher.observed()
    seen: Any = SimpleNamespace(read=np.array([made.sent[-1][1]]), stamp_ns=1, episode=0)
    made.now_s += made.period_s
    outgoing, count = made.publisher.limit(np.array([9.0]), seen), len(made.sent)
    assert outgoing.action is not None
    made.now_s += SafetyParameters().hold_after_s + 0.01
    assert made.publisher.command(outgoing, seen) is None
    assert len(made.sent) == count
    assert made.publisher.guard.resting.all()
    made.publisher.repeat(seen)
    assert len(made.sent) == count
    made.now_s += 0.6  # a simulator may wait for a command
    made.publisher.repeat(seen)
    assert len(made.sent) == count + 1


@pytest.mark.parametrize("rate_hz", [20.0, 100.0])
@pytest.mark.parametrize("passed", [0.0, 0.3, 0.99, 1.2])
@pytest.mark.parametrize("most_late", [0.0, 0.05, 0.45])
def test_it_brakes_within_the_acceleration_though_its_commands_are_late(
    driven: Callable[..., Driven], rate_hz: float, passed: float, most_late: float
) -> None:
    """Each interval counts as a period, and none is shorter: so no command is too fast either."""
    arm = driven(rate_hz)
    arm.late = np.random.default_rng(0).uniform(0.0, most_late, 200).tolist()
    (_, last), actions = arm.sent[-1], len(arm.sent)
    arm.now_s += passed * arm.period_s
    began_s = arm.now_s
    arm.publisher.close()
    times, positions = np.array(arm.sent[actions:]).T
    speeds, change = np.diff(positions) / arm.period_s, HARDEST * arm.period_s
    assert 0.0 <= positions[0] - last <= SPEED * arm.period_s + 1e-9
    assert speeds[0] >= SPEED - 2.0 * change - 1e-9
    assert speeds[-1] == 0.0
    assert np.diff(speeds) == pytest.approx(np.full(len(speeds) - 1, -change / 2), abs=change / 2 + 1e-9)
    assert np.diff(times).min() >= arm.period_s - 1e-9
    assert times[-1] - began_s <= (SPEED / change + 4) * (1.0 + most_late) * arm.period_s


@pytest.mark.parametrize("beside", [False, True])
def test_an_arm_brakes_no_harder_where_more_messages_come_than_periods(
    driven: Callable[..., Driven], beside: bool
) -> None:
    """Each message of the deadman looks whether to brake; a lift beside the arm follows no curve."""
    arm = driven(20.0, beside)
    arm.now_s += 0.001
    arm.publisher.stop()
    speeds = []
    for tick in range(500):
        if tick % 20 in (0, 2, 3):
            arm.publisher.brake_if_held()
        arm.now_s += 0.002
        speeds.append(arm.controller.sample(arm.now_s).velocities[0])
    assert speeds[-1] == 0.0
    assert np.abs(np.diff(speeds)).max() / 0.002 <= 1.01 * HARDEST


def test_an_arm_that_may_rest_is_not_set_in_motion_to_brake(driven: Callable[..., Driven]) -> None:
    arm = driven(100.0)
    arm.late = [0.0, 1.6]
    actions = len(arm.sent)
    arm.publisher.close()
    positions = [position for _, position in arm.sent[actions:]]
    assert positions[1] > positions[0]
    assert set(positions[1:]) == {positions[1]}
    arm = driven(100.0)
    (_, last), actions = arm.sent[-1], len(arm.sent)
    arm.now_s += 1.5 * arm.period_s
    arm.publisher.close()
    assert {position for _, position in arm.sent[actions:]} == {last}


def test_a_cleanup_goes_on_with_the_braking_of_a_deactivation(driven: Callable[..., Driven]) -> None:
    arm = driven(100.0)
    actions = len(arm.sent)
    arm.publisher.stop()
    for _ in range(5):
        arm.now_s += arm.period_s
        arm.publisher.brake_if_held()
    arm.now_s += 0.8 * arm.period_s
    arm.publisher.close()
    speeds = np.diff([position for _, position in arm.sent[actions:]]) / arm.period_s
    assert np.abs(np.diff(speeds)).max() <= HARDEST * arm.period_s + 1e-9
    assert speeds[-1] == 0.0


@pytest.mark.parametrize("lockstep", [False, True])
def test_only_a_simulator_in_lockstep_may_subscribe_later(make_node: Make, lockstep: bool) -> None:
    contract = parse_contract(plain_values("arm", 20.0, ["a"], 0, 0, ["a"], "positions"))
    safety = SafetyParameters(limits="none", require_enable=False)
    values = DraftPolicyParameters(safety=safety, command=CommandParameters(lockstep=lockstep))
    permission = Permission(False, 0.5)
    with ExitStack() as opened:
        publisher = CommandPublisher(make_node(Node, "arm"), contract, values, permission, opened)
        publisher.start()
        assert permission.holds[Hold.DRIVER] is (State.CLEAR if lockstep else State.WAITS)
        publisher.guard._motion.left_s = -np.inf
        publisher._leave("/command")
        assert np.isinf(publisher.guard._motion.left_s) == lockstep  # it waits for each command
