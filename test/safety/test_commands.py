"""What is commanded in the place of an action, and what is told of it: every moment is given."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.contract.contract import Action, Alignment, Channel, MeasuredPositions, Sink, Source
from adahi_ros.contract.operators import OPERATORS
from adahi_ros.safety.commands import LONGEST_STOP_S, Commands, Outgoing, SafetyRecord
from adahi_ros.safety.envelope import HOLDS_AT_REST
from adahi_ros.safety.intervention import Intervention
from test.safety.conftest import PERIOD_S, Guarded, listed

UNEVEN = 1.5  # degrees; they come back from the wire, where they are rad, with another last bit
FULL = 57.0  # degrees/s, as fast as may be
WIDE = {"position_low": -3.0, "position_high": 3.0}
TRAJECTORY = Channel("command", "trajectory_msgs/msg/JointTrajectory")


class Robot(Guarded):
    """Commands of one entry, in degrees to the policy and in rad on the wire; and the time."""

    def __init__(
        self,
        limit: dict[str, float],
        field: str = "positions",
        require_enable: bool = False,
        timeout_s: float = 0.5,
    ) -> None:
        super().__init__(field, limit, require_enable, timeout_s)
        align = Alignment("hold", "receive", 1.0)
        self.source = Source("action", TRAJECTORY, (f"{field}.a",), align, (OPERATORS["rad2deg"](None),))
        self.commands = Commands(self.guard, Action((Sink(self.source),)), MeasuredPositions(("a",), (1,)))
        self.out: list[Outgoing] = []

    def start(self) -> Robot:
        self.commands.start(self.now_s)
        return self

    def act(self, degrees: float, measured: float = 0.0) -> Outgoing:
        """Command an action of a new observation, in which the joint is the second number."""
        self.guard.observed(self.now_s)
        return self.sent(self.commands.limit(np.array([degrees]), np.array([np.nan, measured]), self.now_s))

    def press(self, value: bool) -> Outgoing:
        """Receive a message on `enable`."""
        self.publish(value)
        return self.sent(self.commands.brake_if_held(self.now_s))

    def call(self, enabled: bool) -> Outgoing:
        """Receive a call of `~/set_enabled`."""
        self.permission.set_enabled(enabled, self.now_s)
        return self.sent(self.commands.brake_if_held(self.now_s))

    def wait(self, periods: int = 1) -> list[Outgoing]:
        """Let time pass; return what goes out meanwhile."""
        looks = []
        for _ in range(periods):
            self.now_s += PERIOD_S
            looks.append(self.sent(self.commands.brake_if_held(self.now_s)))
        return looks

    def sent(self, outgoing: Outgoing) -> Outgoing:
        self.out.append(outgoing)
        return outgoing

    def reported(self) -> list[SafetyRecord]:
        """Return all that was told since this was last called."""
        records = records_of(self.out)
        self.out.clear()
        return records


def records_of(out: list[Outgoing]) -> list[SafetyRecord]:
    return [outgoing.record for outgoing in out if outgoing.record is not None]


def warnings(records: list[SafetyRecord]) -> list[str]:
    return [record.warning for record in records if record.warning]


def moving(acceleration: float = 1.0) -> Robot:
    """Return a robot whose velocity is commanded, at full speed."""
    robot = Robot({"velocity": 1.0, "acceleration": acceleration}, "velocities").start()
    for _ in range(100):
        robot.act(FULL)
        robot.wait()
    robot.reported()
    return robot


# What is commanded


def test_an_action_is_commanded_to_the_last_bit() -> None:
    robot = Robot(WIDE).start()
    there_and_back = robot.source.from_wire(robot.source.to_wire(np.array([UNEVEN])))
    assert there_and_back[0] != UNEVEN
    outgoing = robot.act(UNEVEN)
    assert listed(outgoing.command) == np.deg2rad([UNEVEN]).tolist()
    assert listed(outgoing.action) == [UNEVEN]
    commanded = robot.commands.commanded()
    assert listed(commanded) == [UNEVEN]
    assert robot.commands.commanded() is None  # nothing since


def test_after_an_intervention_that_is_commanded_which_the_wire_reads_back() -> None:
    robot = Robot(WIDE).start()
    outgoing = robot.act(200.0)
    assert listed(outgoing.command) == [3.0]
    assert listed(outgoing.action) == np.rad2deg([3.0]).tolist()
    commanded = robot.commands.commanded()
    assert listed(commanded) == np.rad2deg([3.0]).tolist()


def test_what_has_held_the_robot_since_is_what_was_commanded() -> None:
    robot = moving()
    robot.commands.commanded()
    braked = robot.press(False).command
    assert listed(braked)[0] < np.deg2rad(FULL)
    commanded = robot.commands.commanded()
    assert listed(commanded) == np.rad2deg(listed(braked)).tolist()
    robot.wait(40)
    robot.commands.commanded()
    assert robot.act(FULL).command is None
    robot.wait()
    assert robot.commands.commanded() is None  # it rests


def test_a_repeated_observation_repeats_the_command_until_a_hold() -> None:
    robot = Robot(WIDE).start()
    command = robot.act(UNEVEN).command
    assert command is not None
    again = robot.commands.repeat(robot.now_s).command
    assert listed(again) == command.tolist()
    robot.press(False)
    assert robot.commands.repeat(robot.now_s).command is None


def test_where_the_robot_stands_is_read_in_the_observation() -> None:
    robot = Robot({**WIDE, "max_step": 0.1}).start()
    first = robot.act(100.0, measured=1.0).command
    assert listed(first) == [pytest.approx(1.1)]
    robot.wait()
    far = robot.act(100.0, measured=1e5)
    assert listed(far.command) == listed(first)
    assert far.record is not None
    assert far.record.interventions == (Intervention.POSITION,)


# What is told


def test_an_action_that_goes_out_as_it_is_needs_no_word() -> None:
    robot = Robot(WIDE).start()
    assert [record.enabled for record in records_of(robot.wait())] == [True]
    for _ in range(5):
        assert robot.act(UNEVEN).record is None
        assert records_of(robot.wait()) == []


def test_each_command_that_is_not_the_action_is_reported() -> None:
    robot = Robot(WIDE).start()
    robot.wait()
    robot.reported()
    for count in range(1, 4):
        record = robot.act(200.0).record
        assert record is not None
        assert record.interventions == (Intervention.POSITION,)
        assert record.counts[Intervention.POSITION] == count
        assert sum(record.counts) == count
        assert (record.enabled, record.stopped, record.holding, record.warning) == (True, False, False, "")
        assert records_of(robot.wait()) == []
    robot.act(UNEVEN)
    robot.reported()
    assert [record.interventions for record in records_of(robot.wait(3))] == [()]  # it is over


def test_a_change_of_being_enabled_is_reported_once() -> None:
    robot = Robot(WIDE, require_enable=True, timeout_s=0.2).start()
    assert [record.enabled for record in records_of(robot.wait(3))] == [False]
    robot.reported()
    robot.press(True)
    robot.wait(10)
    assert [record.enabled for record in robot.reported()] == [True, False]
    robot.call(False)
    robot.wait(10)
    assert [(record.enabled, record.stopped) for record in robot.reported()] == [(False, True)]


def test_a_robot_at_rest_that_may_not_move_is_reported_once() -> None:
    robot = Robot(WIDE, require_enable=True).start()
    for _ in range(5):
        assert robot.act(UNEVEN).command is None
        robot.wait()
    reported = robot.reported()
    assert [record.message for record in reported] == [
        "disabled: press enable afresh",
        "at rest: disabled: press enable afresh",
    ]
    assert {record.interventions for record in reported} == {(Intervention.DISABLED,)}
    assert reported[0].holding
    assert reported[0].needs_press
    assert warnings(reported) == ["held: disabled: press enable afresh"]


def test_the_entries_that_limits_changed_are_named_until_they_fit() -> None:
    robot = Robot(WIDE).start()
    robot.act(200.0)
    robot.wait()
    robot.act(UNEVEN)
    robot.wait()
    assert [record.message for record in robot.reported()] == ["limited: a", ""]


def test_the_record_is_available_while_there_is_something_to_tell() -> None:
    robot = Robot(WIDE)
    assert robot.commands.record(robot.now_s) is None  # it has never been active
    robot.start()
    for _ in range(3):
        record = robot.commands.record(robot.now_s)
        assert record == SafetyRecord(True, False, False, False, (), (0,) * len(Intervention))
    assert records_of(robot.wait(3)) == []  # told already
    robot.act(UNEVEN)
    robot.sent(robot.commands.stop(robot.now_s))
    robot.wait(10)
    record = robot.commands.record(robot.now_s)
    assert record is not None
    assert (record.enabled, record.holding, record.warning) == (False, True, "")


def test_why_the_robot_is_held_is_reported_once_per_change() -> None:
    robot = moving()
    robot.wait(11)
    reported = robot.reported()
    assert sum(record.holding for record in reported) > 1  # each command that holds is published
    assert warnings(reported) == ["held: stale"]
    robot.press(False)
    robot.wait(40)
    reported = robot.reported()
    assert warnings(reported) == ["held: disabled: press enable afresh"]
    assert reported[-1].counts[Intervention.DISABLED] == 1
    robot.press(True)
    robot.act(1.0)
    robot.wait()
    assert warnings(robot.reported()) == []
    robot.sent(robot.commands.withhold(np.zeros(2), robot.now_s))
    robot.wait(5)
    assert warnings(robot.reported()) == ["held: unverified"]


# The end


def test_a_robot_that_is_stopped_is_brought_to_rest() -> None:
    robot = moving()
    first = robot.sent(robot.commands.stop(robot.now_s))
    assert first.command is not None  # at once
    assert robot.commands.stop(robot.now_s).command is None  # it is already
    path = [first, *robot.wait(40)]
    speeds = [float(outgoing.command[0]) for outgoing in path if outgoing.command is not None]
    assert speeds[0] < np.deg2rad(FULL)
    assert (np.diff(speeds) <= 0.0).all()
    assert speeds[-HOLDS_AT_REST:] == [0.0] * HOLDS_AT_REST
    assert warnings(robot.reported()) == ["held: deactivated"]
    assert robot.act(FULL).command is None


def close(robot: Robot, every_s: float) -> float:
    """Close it as a node does; return how long that took in s."""
    began_s = robot.now_s
    robot.sent(robot.commands.close(robot.now_s))
    while robot.commands.closing(robot.now_s):
        robot.now_s += every_s
        robot.sent(robot.commands.brake_if_held(robot.now_s))
    return robot.now_s - began_s


def test_a_robot_that_is_closed_comes_to_rest_and_is_commanded_no_more() -> None:
    robot = moving()
    assert 0.5 < close(robot, PERIOD_S) < 1.5
    assert robot.commands.halt(robot.now_s).command is None
    last = robot.out[-1].command
    assert listed(last) == [0.0]
    assert warnings(robot.reported()) == []  # the caller closed it


def test_one_that_rests_is_closed_at_once() -> None:
    assert close(Robot(WIDE).start(), PERIOD_S) == 0.0


def test_a_robot_that_takes_too_long_to_rest_is_halted() -> None:
    robot = moving(acceleration=0.1)
    took_s = close(robot, PERIOD_S)
    assert LONGEST_STOP_S <= took_s <= LONGEST_STOP_S + PERIOD_S + 1e-9
    braked = robot.out[-1].command
    assert listed(braked)[0] > 0.0
    halted = robot.commands.halt(robot.now_s)
    assert listed(halted.command) == [0.0]
    assert halted.record is not None
    assert halted.record.holding
    assert robot.commands.halt(robot.now_s).command is None


def test_a_deactivated_robot_that_takes_too_long_to_rest_stops_at_once() -> None:
    robot = moving(acceleration=0.1)
    robot.sent(robot.commands.stop(robot.now_s))
    braked = robot.wait(round(LONGEST_STOP_S / PERIOD_S) - 1)
    assert listed(braked[-1].command)[0] > 0.0
    assert listed(robot.wait(2)[-1].command) == [0.0]
    assert not robot.guard.moving


# Enabling


def test_what_is_not_active_is_stopped_for_when_it_will_be() -> None:
    robot = Robot(WIDE)
    robot.call(False)
    robot.start()
    assert robot.act(UNEVEN).command is None
    reported = robot.reported()
    assert [(record.enabled, record.stopped) for record in reported] == [(False, True)]
    robot.call(True)
    assert robot.act(UNEVEN).command is not None


@pytest.mark.parametrize("by", ["topic", "service"])
def test_a_false_holds_at_once_until_a_true(by: str) -> None:
    robot = moving()
    says = robot.press if by == "topic" else robot.call
    held = says(False)
    assert listed(held.command)[0] < np.deg2rad(FULL)
    assert held.record is not None
    assert (held.record.enabled, held.record.holding) == (False, True)
    robot.wait(40)
    assert robot.act(UNEVEN).command is None
    robot.reported()
    says(True)
    assert [record.enabled for record in robot.reported()] == [True]
    assert robot.act(UNEVEN).command is not None


@pytest.mark.parametrize("cause", ["silence", "driver"])
def test_an_observation_that_may_not_move_the_arm_brakes_it_at_once(cause: str) -> None:
    """The looks come just before the observations, and the permission ends just after a look."""
    robot = Robot({**WIDE, "velocity": 2.0, "acceleration": 8.0}, require_enable=True, timeout_s=0.2).start()
    robot.press(True)
    robot.act(0.0)
    for step in range(1, 40):
        if step < 20:
            robot.press(True)
        robot.now_s += PERIOD_S - 0.001
        robot.sent(robot.commands.brake_if_held(robot.now_s))
        robot.now_s += 0.001
        if step == 20 and cause == "driver":
            robot.permission.driver("it does not run")
        robot.act(2.0 * step)
    positions = np.array([each.command[0] for each in robot.out if each.command is not None])
    speeds = np.diff(positions) / PERIOD_S
    assert speeds.max() > 0.6
    assert np.diff(speeds).min() >= -8.0 * PERIOD_S - 1e-9
    assert robot.out[-1].command is None


def test_what_brakes_belongs_to_no_observation() -> None:
    robot = Robot({**WIDE, "velocity": 2.0, "acceleration": 8.0}).start()
    for step in range(10):
        acted = robot.act(3.0 * step)
        robot.now_s += PERIOD_S
    assert (acted.brakes, acted.action is None) == (False, False)
    robot.permission.set_enabled(False, robot.now_s)
    braked = robot.act(30.0)
    assert (braked.brakes, braked.action) == (True, None)
    assert braked.command is not None
    assert braked.record is not None
    assert braked.record.warning == "held: disabled: press enable afresh"
