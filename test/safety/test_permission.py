"""Which messages on `enable` let the robot move: every moment is given, no clock is read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.safety.permission import AMBIGUOUS, STREAMS_KEPT, Permission, Press

TIMEOUT_S = 0.5


class Publisher:
    """One publisher on `enable`, which counts its messages."""

    def __init__(self, permission: Permission, sequence: int = 0, publishers: int = 1) -> None:
        self.permission, self.sequence, self.publishers = permission, sequence, publishers

    def say(self, value: bool, now_s: float, age_s: float = 0.0) -> str:
        self.sequence += 1
        press = Press(value, now_s - age_s, age_s, self.sequence, self.publishers)
        return self.permission.receive(press, now_s)


def required() -> Permission:
    return Permission(True, TIMEOUT_S)


def test_a_press_lasts_for_the_timeout_from_when_it_was_published() -> None:
    permission = required()
    deadman = Publisher(permission)
    assert deadman.say(True, 10.0, age_s=0.3) == ""
    assert permission.enabled(10.19)
    assert not permission.enabled(10.21)


@pytest.mark.parametrize("age_s", [0.51, 7.0, -0.26, -3.0, math.inf])
def test_a_true_that_is_old_or_of_the_future_enables_nothing_and_says_why(age_s: float) -> None:
    permission = required()
    deadman = Publisher(permission)
    deadman.say(True, 10.0)
    ignored = deadman.say(True, 20.0, age_s=age_s)
    assert "s old by its source timestamp, allowed are -0.25 to 0.5 s" in ignored
    assert not permission.enabled(20.0)


def test_an_old_false_stops_all_the_same() -> None:
    permission = required()
    deadman = Publisher(permission)
    deadman.say(True, 10.0)
    deadman.say(False, 10.1, age_s=9.0)
    assert permission.stopped


def test_after_the_start_a_deadman_that_is_pressed_already_enables_nothing() -> None:
    permission = required()
    deadman = Publisher(permission, sequence=700)
    for step in range(200):
        deadman.say(True, 0.1 * step)
        assert not permission.enabled(0.1 * step)
    assert permission.needs_press
    deadman.say(False, 20.1)
    deadman.say(True, 20.2)
    assert permission.enabled(20.2)
    assert not permission.needs_press


def test_a_node_whose_first_message_is_late_still_needs_a_fresh_press() -> None:
    permission = required()
    Publisher(permission, sequence=3).say(True, 60.0)
    assert not permission.enabled(60.0)


@pytest.mark.parametrize("ahead", [1, 20, 80, 500])
@pytest.mark.parametrize("lost", [0, 40])
def test_a_stop_outlasts_a_deadman_that_joins_the_count_of_its_publisher(ahead: int, lost: int) -> None:
    """The publisher that stopped the robot is gone, so only one is left on the topic."""
    permission = required()
    button, deadman = Publisher(permission, ahead, publishers=2), Publisher(permission, publishers=2)
    button.say(True, 9.0)
    deadman.say(True, 9.0)
    button.say(False, 9.1)
    deadman.publishers = 1
    deadman.sequence += lost
    for step in range(ahead + 100):
        deadman.say(True, 9.2 + 0.05 * step)
        assert permission.stopped


def test_a_false_lasts_until_the_same_publisher_says_true() -> None:
    permission = required()
    deadman = Publisher(permission, publishers=2)
    button = Publisher(permission, sequence=5000, publishers=2)
    button.say(False, 9.0)
    button.say(True, 9.0)
    deadman.say(True, 10.0)
    assert permission.enabled(10.0)
    button.say(False, 10.1)
    for step in range(50):
        deadman.say(step % 3 != 0, 10.2 + 0.1 * step)
        assert not permission.enabled(10.2 + 0.1 * step)
    deadman.say(True, 20.0)
    deadman.say(True, 20.1)
    assert permission.stopped
    button.say(True, 20.2)
    assert permission.enabled(20.2)


def test_of_indistinct_publishers_only_the_service_ends_a_stop() -> None:
    permission = required()
    for value in (True, False, True, False, True):
        permission.receive(Press(value, 10.0, 0.0, None, 2), 10.0)
    assert permission.stopped
    permission.set_enabled(True)
    assert permission.enabled(10.0)


def test_messages_that_were_lost_are_no_silence() -> None:
    permission = required()
    deadman = Publisher(permission)
    deadman.say(True, 10.0)
    permission.set_enabled(False)
    deadman.sequence += 40  # cut off for four seconds
    deadman.say(True, 14.0)
    assert permission.stopped
    deadman.say(True, 15.0)  # nothing was lost: the deadman was silent
    assert permission.enabled(15.0)


def test_an_alarm_needs_a_fresh_press_though_the_deadman_is_held() -> None:
    permission = Permission(False, TIMEOUT_S)
    deadman = Publisher(permission)
    deadman.say(True, 10.0)
    permission.require_press()
    for step in range(30):
        deadman.say(True, 10.1 + 0.1 * step)
        assert not permission.enabled(10.1 + 0.1 * step)
    deadman.say(False, 14.0)
    deadman.say(True, 14.1)
    assert permission.enabled(14.1)


def test_an_alarm_ends_what_the_service_enabled() -> None:
    permission = required()
    permission.set_enabled(True)
    permission.require_press()
    assert not permission.enabled(1.0)
    permission.set_enabled(True)
    assert permission.enabled(1.0)


def test_a_stop_outlasts_another_configuration() -> None:
    permission = required()
    permission.set_enabled(False)
    permission.configure(False, 0.1)
    assert not permission.enabled(1.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3 * AMBIGUOUS), st.integers(1, 3)), max_size=80))
def test_after_a_false_no_message_of_another_publisher_enables(messages: list[tuple[bool, int, int]]) -> None:
    """The publisher that stopped the robot has a count of its own, and says nothing more."""
    permission = required()
    button = Publisher(permission, sequence=10_000, publishers=4)
    button.say(False, 10.0)
    for step, (value, sequence, publishers) in enumerate(messages):
        now_s = 10.0 + 0.1 * step
        permission.receive(Press(value, now_s, 0.0, sequence, 1 + publishers), now_s)
        assert not permission.enabled(now_s)
    assert len(permission._streams) <= STREAMS_KEPT


@pytest.mark.parametrize("why", ["stop", "alarm", "another deadman"])
def test_a_new_publishers_first_true_ends_no_stop_and_joins_no_deadman(why: str) -> None:
    permission = required()
    if why == "another deadman":
        Publisher(permission, sequence=700).say(True, 9.9)  # it was pressed before the node started
    else:
        Publisher(permission).say(True, 9.0)
        permission.set_enabled(False) if why == "stop" else permission.require_press()
    Publisher(permission).say(True, 10.0)
    assert not permission.enabled(10.0)


@pytest.mark.parametrize("cause", ["service", "alarm"])
@pytest.mark.parametrize("step_s", [1.0, 3600.0])
def test_a_clock_that_is_set_is_no_release_of_the_deadman(cause: str, step_s: float) -> None:
    """Publisher and robot have one clock, so the age stays small while the stamps jump."""
    permission = required()
    for number in range(1, 40):
        if number == 10:
            permission.set_enabled(False) if cause == "service" else permission.require_press()
        now_s = 0.1 * number
        stamp_s = 100.0 + now_s + (step_s if number >= 20 else 0.0)
        permission.receive(Press(True, stamp_s, 0.001, number, 1), now_s)
        assert permission.enabled(now_s) == (number < 10)


@pytest.mark.parametrize("age_s", [0.51, 4.5, -0.26, math.inf])
def test_a_call_that_arrives_late_enables_nothing_and_says_why(age_s: float) -> None:
    permission = required()
    permission.set_enabled(False)
    ignored = permission.set_enabled(True, 20.0, age_s)
    assert "s old by its source timestamp, allowed are -0.25 to 0.5 s" in ignored
    assert permission.stopped
    assert not permission.enabled(20.0)
    assert permission.set_enabled(True, 20.0, 0.4) == ""
    assert permission.enabled(20.0)


def test_a_call_that_was_sent_before_a_stop_does_not_end_it() -> None:
    permission = required()
    deadman = Publisher(permission)
    deadman.say(True, 10.0)
    deadman.say(False, 10.3, age_s=0.1)
    assert "sent before the stop" in permission.set_enabled(True, 10.35, 0.2)
    assert permission.stopped
    permission.set_enabled(False, 10.6, 0.1)
    assert "sent before the stop" in permission.set_enabled(True, 10.7, 0.3)
    assert permission.set_enabled(True, 10.7, 0.1) == ""
    assert permission.enabled(10.7)


def test_a_late_call_stops_all_the_same() -> None:
    permission = required()
    permission.set_enabled(True, 10.0)
    assert permission.set_enabled(False, 20.0, 9.0) == ""
    assert permission.stopped


@pytest.mark.parametrize("ended_with", [True, False])
@pytest.mark.parametrize("hold", ["service", "alarm", "none"])
@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_publisher_that_only_says_true_never_ends_a_stop_of_before(
    ended_with: bool, hold: str, lost: int
) -> None:
    """It counts through the number at which the deadman that is gone had ended."""
    permission = required()
    gone = Publisher(permission)
    for step in range(80):
        gone.say(True, 0.1 * step)
    assert permission.enabled(8.0)
    if hold == "service":
        permission.set_enabled(False, 8.0)
    elif hold == "alarm":
        permission.require_press()
    if not ended_with or hold == "none":
        gone.say(False, 8.0)
    other = Publisher(permission)
    for step in range(200):
        if 80 - lost <= other.sequence < 80:
            other.sequence += lost
        other.say(True, 10.0 + 0.1 * step)
        assert not permission.enabled(10.0 + 0.1 * step)


def test_a_deadman_that_is_used_takes_over_from_the_service() -> None:
    permission = required()
    permission.set_enabled(True, 10.0)
    assert permission.enabled(100.0)
    deadman = Publisher(permission)
    deadman.say(True, 100.0)
    assert permission.enabled(100.4)
    assert not permission.enabled(100.6)
