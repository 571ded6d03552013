"""Whether the driver's state allows motion."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adahi_ros.contract.monitors import Monitor, Value
from adahi_ros.safety.driver_state import DriverState

LATCHED = Monitor("robot_mode", "ur_dashboard_msgs/msg/RobotMode", "mode", (7,), latched=True)
MODE = Monitor("robot_mode", "ur_dashboard_msgs/msg/RobotMode", "mode", (7,))
SAFETY = Monitor("safety_mode", "ur_dashboard_msgs/msg/SafetyMode", "mode", (1, 2), timeout_s=0.5)


def test_all_monitors_must_run_and_the_text_says_which_one_does_not() -> None:
    state = DriverState([MODE, SAFETY])
    assert state.fault(0.0) == ("driver robot_mode mode: no message yet, must be 7", False)
    state.seen(0, 7, 0.0)
    assert state.fault(0.0)[0] == "driver safety_mode mode: no message yet, must be 1 or 2"
    state.seen(1, 3, 0.0)
    assert state.fault(0.0)[0] == "driver safety_mode mode: 3, must be 1 or 2"
    state.seen(1, 2, 0.1)
    assert state.fault(0.1)[0] == ""
    state.seen(0, 5, 0.2)
    assert state.fault(0.2)[0] == "driver robot_mode mode: 5, must be 7"


@pytest.mark.parametrize(
    ("given", "silence_s"),
    [({}, 1.0), ({"timeout_s": 3.0}, 3.0), ({"timeout_s": 0.0}, math.inf), ({"latched": True}, math.inf)],
)
def test_silence_has_a_bound_unless_the_driver_publishes_on_change(given: Any, silence_s: float) -> None:
    state = DriverState([Monitor("mode", "a/msg/B", "mode", (7,), **given)])
    state.seen(0, 7, 0.0)
    assert state.fault(min(silence_s, 1e6)) == ("", True)
    if silence_s < math.inf:
        assert state.fault(silence_s + 0.01) == (
            f"driver mode mode: no message for more than {silence_s:g} s",
            True,
        )


@pytest.mark.parametrize("latched", [True, False])
def test_a_driver_without_a_publisher_does_not_run(latched: bool) -> None:
    state = DriverState([Monitor("mode", "a/msg/B", "mode", (7,), latched=latched)])
    one, two = {b"1": "/a"}, {b"2": "/b"}
    state.published(0, one)
    state.seen(0, 7, 0.0)
    assert state.fault(0.1) == ("", True)
    state.published(0, {})
    gone = ("driver mode mode: its publisher is gone; no message since then", True)
    assert state.fault(0.1) == gone
    state.published(0, two)
    assert state.fault(0.1) == gone  # the new one has said nothing
    state.seen(0, 7, 0.2)
    assert state.fault(0.2) == ("", True)


@pytest.mark.parametrize("latched", [True, False])
def test_what_a_latched_driver_said_is_void_when_it_is_replaced(latched: bool) -> None:
    state = DriverState([Monitor("mode", "a/msg/B", "mode", (7,), latched=latched)])
    state.published(0, {b"1": "/a"})
    state.seen(0, 7, 0.0)
    state.published(0, {b"2": "/b"})
    assert bool(state.fault(0.1)[0]) == latched  # the silence of others has a bound


@pytest.mark.parametrize("latched", [True, False])
def test_another_publisher_of_the_drivers_state_is_a_fault_with_its_name(latched: bool) -> None:
    state = DriverState([Monitor("mode", "a/msg/B", "mode", (7,), latched=latched)])
    driver, player = {b"1": "/driver"}, {b"2": "/rosbag2_player"}
    state.published(0, driver)
    state.seen(0, 7, 0.0)
    state.published(0, driver | player)
    state.seen(0, 7, 0.1)
    assert state.fault(0.1) == (
        "driver mode mode: of 2 publishers (/driver, /rosbag2_player), must be one",
        True,
    )
    state.published(0, driver)
    assert state.fault(0.1)[0] == ("driver mode mode: its publisher is gone; no message since then" * latched)
    state.seen(0, 7, 0.2)
    assert state.fault(0.2) == ("", True)


def test_what_may_be_of_another_publisher_counts_only_where_it_holds() -> None:
    state = DriverState([LATCHED])
    state.published(0, {b"1": "/driver"})
    state.seen(0, 1, 0.0)
    assert state.seen(0, 7, 0.1, known=False)
    assert "1, must be 7" in state.fault(0.1)[0]
    assert not state.seen(0, 7, 0.2)
    assert state.fault(0.2) == ("", True)
    assert not state.seen(0, 3, 0.3, known=False)
    assert "3, must be 7" in state.fault(0.3)[0]


def test_silence_is_a_fault_only_where_there_is_a_timeout() -> None:
    state = DriverState([LATCHED, SAFETY])
    state.seen(0, 7, 0.0)
    state.seen(1, 1, 0.0)
    assert state.fault(0.5)[0] == ""
    assert state.fault(0.6)[0] == "driver safety_mode mode: no message for more than 0.5 s"
    state.seen(1, 1, 100.0)
    assert state.fault(100.0)[0] == ""


def test_without_monitors_nothing_is_at_fault() -> None:
    assert DriverState([]).fault(0.0) == ("", True)


@pytest.mark.parametrize(
    ("running", "value", "allowed"),
    [
        ((7,), 7, True),
        ((True,), True, True),
        ((True,), False, False),
        ((False,), None, False),
        (("active",), "active", True),
        (("active",), "Active", False),
        (("7",), 7, False),
        ((7,), "7", False),
        ((7,), None, False),
    ],
)
def test_a_value_is_compared_as_number_or_text(
    running: tuple[Value, ...], value: Value | None, allowed: bool
) -> None:
    state = DriverState([Monitor("mode", "a/msg/B", "mode", running)])
    state.seen(0, value, 0.0)
    assert (state.fault(0.0) == ("", True)) is allowed


def test_the_text_stays_short() -> None:
    name = "a" * 100
    state = DriverState([Monitor(name, "a/msg/B", name, (name,) * 32)])
    state.seen(0, "b" * 10_000, 0.0)
    assert len(state.fault(0.0)[0]) < 512
    state.published(0, {bytes((each,)): name for each in range(100)})
    assert len(state.fault(0.0)[0]) < 512
