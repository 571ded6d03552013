"""Who has the arm, and what a person's newest command is: every moment is given, no clock is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.safety.holds import Holds
from adahi_ros.safety.sole_publisher import SolePublisher
from adahi_ros.safety.takeover import COMMAND, SIGNAL, Takeover

TIMEOUT_S = 0.5
NAN = math.nan


class Arm:
    """A takeover of an arm with two joints; one publisher of each topic since 1.0 s."""

    def __init__(self) -> None:
        self.takeover = Takeover(Holds(), TIMEOUT_S)
        self.look(SIGNAL, b"button", 1.0)
        self.look(COMMAND, b"leader", 1.0)

    def look(self, topic: str, gid: bytes, now_s: float, arrived_s: float | None = None) -> None:
        self.takeover.publishers[topic].note_publishers(frozenset((gid,)), None, now_s, arrived_s)

    def take(self, now_s: float, **when: float) -> str:
        return self.takeover.signal(True, when.pop("age_s", 0.0), now_s, **when)

    def give(self, now_s: float, **when: float) -> str:
        return self.takeover.signal(False, when.pop("age_s", 0.0), now_s, **when)

    def command(self, now_s: float, a: float = 0.1, b: float = 0.2, age_s: float = 0.0, **when: float) -> str:
        return self.takeover.command(np.array([a, b]), age_s, now_s, **when)  # type: ignore[arg-type]

    def wanted(self, now_s: float) -> list[float] | None:
        wanted = self.takeover.wanted(now_s)
        return None if wanted is None else [float(each) for each in wanted]


def test_a_takeover_and_a_command_last_from_when_they_were_sent() -> None:
    arm = Arm()
    arm.take(2.0, age_s=0.2)
    arm.command(2.0)
    assert arm.wanted(2.29) == [0.1, 0.2]
    assert arm.wanted(2.31) is None
    arm.take(2.4)
    arm.command(2.4, age_s=0.2)
    assert arm.wanted(2.69) == [0.1, 0.2]
    assert arm.wanted(2.71) is None


def test_a_message_of_a_clock_that_is_ahead_lasts_no_longer() -> None:
    arm = Arm()
    arm.take(2.0, age_s=-0.2)
    arm.command(2.0, age_s=-0.2)
    assert arm.wanted(1.99 + TIMEOUT_S) == [0.1, 0.2]
    assert arm.wanted(2.01 + TIMEOUT_S) is None


def test_an_older_message_shortens_nothing() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.take(2.1, age_s=0.4)
    assert arm.wanted(1.99 + TIMEOUT_S) == [0.1, 0.2]


def test_each_joint_lasts_from_when_it_was_named() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0, b=NAN)
    np.testing.assert_equal(arm.wanted(2.0), [0.1, NAN])
    arm.take(2.3)
    arm.command(2.3, a=NAN, b=0.4, age_s=0.1)
    assert arm.wanted(2.49) == [0.1, 0.4]
    np.testing.assert_equal(arm.wanted(2.51), [NAN, 0.4])


@pytest.mark.parametrize("wanted", [(1e10, 0.2), (0.1, -math.inf)])
def test_one_impossible_number_ends_the_whole_command(wanted: tuple[float, float]) -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    assert "each must be within 1e+09" in arm.command(2.1, *wanted)
    assert arm.wanted(2.1) is None
    assert "each must be within" in arm.takeover.held(2.1)
    arm.command(2.2)
    assert arm.takeover.held(2.2) == ""


def test_a_command_of_before_the_takeover_is_not_executed() -> None:
    arm = Arm()
    arm.command(1.9)
    assert arm.wanted(1.9) is None
    arm.take(2.0)
    assert arm.wanted(2.0) is None
    assert "none was received since the takeover" in arm.takeover.held(2.0)


def test_another_arm_has_another_number_of_joints() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.takeover.command(np.array([0.7]), 0.0, 2.1)
    assert arm.wanted(2.1) == [0.7]


@pytest.mark.parametrize("topic", [SIGNAL, COMMAND])
def test_a_message_that_arrived_before_its_publisher_was_alone_is_void(topic: str) -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.look(topic, b"another", 2.4)
    if topic == SIGNAL:
        assert "must be of the publisher that took over" in arm.give(2.5, waited_s=0.2)
        assert arm.takeover.person
    else:
        assert "of several publishers" in arm.command(2.5, waited_s=0.2)
        assert arm.wanted(2.5) is None


def test_a_wait_of_a_clock_that_is_set_back_is_none() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.look(SIGNAL, b"another", 2.4)
    assert "must be of the publisher" in arm.give(2.3, waited_s=-8.0)
    arm.look(COMMAND, b"another", 2.4)
    assert "of several publishers" in arm.command(2.3, waited_s=-8.0)


def test_another_publisher_of_commands_drives_only_after_a_new_takeover() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.look(COMMAND, b"another", 2.1)
    assert "take over again" in arm.command(2.2)
    assert arm.give(2.3) == ""
    assert arm.take(2.4) == ""
    assert arm.command(2.4) == ""
    assert arm.wanted(2.4) == [0.1, 0.2]


def test_another_publisher_gives_back_only_after_it_took_over_as_well() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.look(SIGNAL, b"another", 2.1)
    assert "must be of the publisher" in arm.give(2.2)
    arm.take(2.3)  # the other one takes over as well
    assert arm.give(2.4) == ""
    assert not arm.takeover.person


@pytest.mark.parametrize(("age_s", "given"), [(0.0, True), (0.05, True), (0.2, False), (-0.1, True)])
def test_a_call_gives_back_what_was_taken_before_it_was_sent(age_s: float, given: bool) -> None:
    arm = Arm()
    arm.take(2.0)
    ignored = arm.takeover.give_back(age_s, 2.1)
    assert ignored == ("" if given else "give_back: sent before the newest true on takeover")
    assert arm.takeover.person != given


@pytest.mark.parametrize("age_s", [-0.26, 0.51])
def test_an_old_call_gives_nothing_back_and_says_why(age_s: float) -> None:
    arm = Arm()
    arm.take(2.0)
    assert "allowed are -0.25 to 0.5 s" in arm.takeover.give_back(age_s, 2.6)
    assert arm.takeover.person


def test_a_false_that_was_sent_after_a_late_true_gives_back() -> None:
    arm = Arm()
    arm.take(2.4, age_s=0.4)
    assert arm.give(2.45, age_s=0.3) == ""
    assert not arm.takeover.person
    arm.take(2.6)
    arm.take(2.7, age_s=0.4)
    assert "sent before the newest true" in arm.give(2.75, age_s=0.2)


def test_a_joint_lasts_from_when_its_command_was_sent() -> None:
    arm = Arm()
    arm.take(2.3)
    arm.command(2.3, a=NAN, b=0.4, age_s=0.1)
    arm.command(2.5, b=NAN)
    assert arm.wanted(2.69) == [0.1, 0.4]
    np.testing.assert_equal(arm.wanted(2.71), [0.1, NAN])


def test_a_joint_of_a_clock_that_is_ahead_lasts_no_longer() -> None:
    arm = Arm()
    arm.take(2.3)
    arm.command(2.3, a=NAN, b=0.4, age_s=-0.2)
    arm.command(2.5, b=NAN)
    np.testing.assert_equal(arm.wanted(2.81 - 0.02), [0.1, 0.4])
    arm.take(2.7)
    np.testing.assert_equal(arm.wanted(2.82), [0.1, NAN])


def test_who_has_given_the_arm_back_wants_nothing() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    assert arm.give(2.1) == ""
    arm.command(2.1)
    assert arm.wanted(2.1) is None


@pytest.mark.parametrize("topic", [SIGNAL, COMMAND])
def test_two_publishers_drive_nothing(topic: str) -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.takeover.publishers[topic].note_publishers(frozenset((b"1", b"2")), None, 2.1)
    assert arm.wanted(2.1) is None
    assert arm.takeover.held(2.1) == f"several publishers of {topic}, must be one"


def test_a_false_that_gives_nothing_back_lets_nobody_drive() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.look(SIGNAL, b"another", 2.1)
    arm.give(2.2)
    assert arm.wanted(2.2) is None


@pytest.mark.parametrize("age_s", [-0.26, 0.51])
def test_a_message_of_another_time_counts_for_nothing_and_says_why(age_s: float) -> None:
    arm = Arm()
    assert "takeover: " in arm.take(2.0, age_s=age_s)
    assert not arm.takeover.person
    arm.take(2.0)
    assert "teleop_command: " in arm.command(2.0, age_s=age_s)
    assert arm.wanted(2.0) is None


@pytest.mark.parametrize(
    ("call_age_s", "true_age_s", "takes"), [(0.2, 0.1, True), (0.1, 0.2, False), (-0.2, -0.05, True)]
)
def test_a_true_takes_over_if_it_was_sent_after_the_arm_was_given_back(
    call_age_s: float, true_age_s: float, takes: bool
) -> None:
    arm = Arm()
    arm.take(2.0)
    assert arm.takeover.give_back(call_age_s, 3.0) == ""
    assert (arm.take(3.0, age_s=true_age_s) == "") == takes
    assert arm.takeover.person == takes


def test_an_older_call_takes_nothing_from_a_newer_one() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.takeover.give_back(0.0, 3.0)
    arm.takeover.give_back(0.4, 3.1)
    assert "sent before the arm was given back" in arm.take(3.1, age_s=0.2)


def test_a_false_of_another_keeps_no_true_from_taking_over() -> None:
    arm = Arm()
    for step in range(20):  # two joysticks; the clock of the one that is pressed is behind
        now_s = 2.0 + 0.05 * step
        arm.takeover.publishers[SIGNAL].note_publishers(frozenset((b"1", b"2")), None, now_s)
        arm.give(now_s)
        arm.take(now_s + 0.02, age_s=0.3)
        assert arm.takeover.person


@pytest.mark.parametrize("topic", [SIGNAL, COMMAND])
def test_the_first_message_of_a_publisher_counts(topic: str) -> None:
    arm = Arm()
    publishers = arm.takeover.subscribed(topic)
    publishers.note_publishers(frozenset(), None, 1.0)
    publishers.note_publishers(frozenset((b"new",)), None, 2.5, 2.25)
    assert arm.take(2.5, waited_s=0.25) == ""
    assert arm.command(2.5, waited_s=0.25) == ""
    assert arm.wanted(2.5) == [0.1, 0.2]
    assert arm.give(2.5) == ""
    assert not arm.takeover.person


@pytest.mark.parametrize("waited_s", [0.3, -8.0])
def test_a_false_of_another_that_waited_gives_nothing_back(waited_s: float) -> None:
    arm = Arm()
    arm.take(2.0, waited_s=min(waited_s, 0.0))
    arm.look(SIGNAL, b"another", 2.4)
    if waited_s > 0.0:
        arm.take(2.5, age_s=0.4)  # the other one's clock is behind
    assert "must be of the publisher that took over" in arm.give(2.6, age_s=0.3, waited_s=waited_s)
    assert arm.takeover.person


def test_an_older_true_takes_no_right_to_give_back() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.look(SIGNAL, b"another", 2.4)
    arm.take(2.5)
    arm.take(2.6, waited_s=0.4)
    assert arm.give(2.7) == ""
    assert not arm.takeover.person


def test_a_true_of_a_clock_that_is_ahead_lets_a_false_give_back() -> None:
    arm = Arm()
    arm.take(2.0, age_s=-0.2)
    assert arm.give(2.1) == ""
    assert not arm.takeover.person


@pytest.mark.parametrize("by", ["false", "call"])
def test_giving_back_what_the_policy_has_delays_no_takeover(by: str) -> None:
    arm = Arm()
    assert (arm.give(2.0) if by == "false" else arm.takeover.give_back(0.0, 2.0)) == ""
    assert arm.take(2.0, age_s=0.2) == ""
    assert arm.takeover.person


def test_a_takeover_is_counted_once() -> None:
    arm = Arm()
    assert arm.takeover.count == 0
    arm.take(2.0)
    arm.take(2.1)
    assert arm.takeover.count == 1
    arm.give(2.2)
    arm.take(2.3)
    assert arm.takeover.count == 2


def test_one_whose_command_cannot_be_used_keeps_no_other_from_driving() -> None:
    arm = Arm()
    arm.take(2.0)
    assert arm.takeover.command(None, 0.0, 2.0, "teleop_command: no joints") == "teleop_command: no joints"
    assert arm.takeover.held(2.0) == "no usable teleop_command: teleop_command: no joints"
    arm.look(COMMAND, b"another", 2.1)
    assert arm.command(2.2) == ""
    assert arm.wanted(2.2) == [0.1, 0.2]


def test_no_message_of_before_a_look_is_of_a_publisher_that_came_after_it() -> None:
    publishers = SolePublisher()
    publishers.note_publishers(frozenset(), None, 2.0)
    publishers.note_publishers(frozenset((b"1",)), None, 2.5, 1.5)
    assert (publishers.gid, publishers.since_s) == (b"1", 2.0)


def test_a_publisher_that_came_and_left_before_the_first_look_is_noticed() -> None:
    publishers = SolePublisher()
    publishers.note_publishers(frozenset((b"1",)), 2, 2.5, 1.5)
    assert publishers.since_s > 2.5
    publishers.note_publishers(frozenset((b"1", b"2")), 4, 3.0)
    assert (publishers.gid, publishers.since_s) == (None, math.inf)


def test_a_longer_timeout_revives_no_person_who_fell_silent() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.takeover.configure(10.0)
    assert arm.wanted(1.99 + TIMEOUT_S) == [0.1, 0.2]
    assert arm.wanted(2.01 + TIMEOUT_S) is None
    arm.take(3.0)
    arm.command(3.0)
    assert arm.wanted(12.99) == [0.1, 0.2]


def test_a_shorter_timeout_counts_for_what_was_received_before() -> None:
    arm = Arm()
    arm.take(2.0)
    arm.command(2.0)
    arm.takeover.configure(0.2)
    assert arm.wanted(2.19) == [0.1, 0.2]
    assert arm.wanted(2.21) is None


def test_a_longer_timeout_revives_no_joint_that_was_not_named_since() -> None:
    arm = Arm()
    arm.take(2.3)
    arm.command(2.0)
    arm.command(2.3, a=NAN)
    arm.takeover.configure(10.0)
    assert arm.wanted(1.99 + TIMEOUT_S) == [0.1, 0.2]
    np.testing.assert_equal(arm.wanted(2.01 + TIMEOUT_S), [NAN, 0.2])
