"""Which messages on `enable` let the robot move: every moment is given, no clock is read."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.safety.holds import Event, Hold, State
from adahi_ros.safety.permission import Permission, Press
from adahi_ros.safety.sole_publisher import SolePublisher

TIMEOUT_S = 0.5
PERIOD_S = 0.05


class Topic:
    """The topic `enable`, as the node sees it: its publishers, at every message and between messages."""

    def __init__(self, required: bool = True, counts: bool = True) -> None:
        self.permission = Permission(required, TIMEOUT_S)
        self.permission.holds.happen(Event.ACTIVATE)
        self._counts = counts
        self._gids: set[bytes] = set()
        self._matched = 0
        self._next = 0
        self.look(0.0)

    def look(self, now_s: float) -> None:
        matched = self._matched if self._counts else None
        self.permission.publishers.note_publishers(frozenset(self._gids), matched, now_s)

    def join(self, now_s: float | None = None, sequence: int = 0) -> Publisher:
        """Return a publisher that has said so many messages; without a time the node does not look now."""
        self._next += 1
        gid = f"gid {self._next}".encode()
        self._gids.add(gid)
        self._matched += 1
        if now_s is not None:
            self.look(now_s)
        return Publisher(self, gid, sequence)

    def leave(self, publisher: Publisher, now_s: float | None = None) -> None:
        self._gids.discard(publisher.gid)
        if now_s is not None:
            self.look(now_s)


class Publisher:
    """One publisher on `enable`, which counts its messages."""

    def __init__(self, topic: Topic, gid: bytes, sequence: int) -> None:
        self.topic, self.gid, self.sequence = topic, gid, sequence

    def say(self, value: bool, now_s: float, age_s: float = 0.0, waited_s: float = 0.0) -> str:
        self.sequence += 1
        press = Press(value, now_s - age_s, age_s, self.sequence, waited_s)
        self.topic.look(now_s)
        return self.topic.permission.receive(press, now_s)

    def press(self, begin_s: float, seconds: float) -> list[bool]:
        """Say true for so long; return after each message whether the robot is enabled."""
        enabled = []
        for step in range(round(seconds / PERIOD_S)):
            now_s = begin_s + step * PERIOD_S
            self.say(True, now_s)
            enabled.append(self.topic.permission.enabled(now_s))
        return enabled


@pytest.fixture(params=[True, False], ids=["counts", "counts not"])
def topic(request: pytest.FixtureRequest) -> Topic:
    """Both with and without a middleware that counts the publishers so far."""
    return Topic(counts=request.param)


def test_a_press_lasts_for_the_timeout_from_when_it_was_published(topic: Topic) -> None:
    deadman = topic.join(9.0)
    assert deadman.say(True, 10.0, age_s=0.3) == ""
    assert topic.permission.enabled(10.19)
    assert not topic.permission.enabled(10.21)


@pytest.mark.parametrize("age_s", [0.51, 7.0, -0.26, -3.0, math.inf])
def test_a_true_that_is_old_or_of_the_future_enables_nothing_and_says_why(topic: Topic, age_s: float) -> None:
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    ignored = deadman.say(True, 20.0, age_s=age_s)
    assert "s old by its source timestamp, allowed are -0.25 to 0.5 s" in ignored
    assert not topic.permission.enabled(20.0)


def test_a_true_of_the_future_lasts_no_longer(topic: Topic) -> None:
    topic.join(9.0).say(True, 10.0, age_s=-0.2)
    assert topic.permission.enabled(10.0 + TIMEOUT_S - 1e-6)
    assert not topic.permission.enabled(10.0 + TIMEOUT_S)


def test_an_old_false_stops_all_the_same(topic: Topic) -> None:
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    deadman.say(False, 10.1, age_s=9.0)
    assert topic.permission.stopped


def test_after_the_start_a_deadman_that_is_pressed_already_enables_nothing(topic: Topic) -> None:
    deadman = topic.join(sequence=700)
    assert not any(deadman.press(0.1, 20.0))
    assert topic.permission.needs_press
    deadman.say(False, 20.1)
    deadman.say(True, 20.15)
    assert topic.permission.enabled(20.15)
    assert not topic.permission.needs_press


def test_a_node_whose_first_message_is_late_still_needs_a_fresh_press(topic: Topic) -> None:
    topic.join(59.9, sequence=2).say(True, 60.0)
    assert not topic.permission.enabled(60.0)


@pytest.mark.parametrize("stopped_by", ["false", "service"])
@pytest.mark.parametrize("way", ["false", "silence"])
def test_the_publisher_that_was_alone_since_the_stop_ends_it(topic: Topic, stopped_by: str, way: str) -> None:
    deadman = topic.join(9.0)
    assert deadman.press(10.0, 1.0)[-1]
    if stopped_by == "service":
        topic.permission.set_enabled(False, 11.0)
        assert not any(deadman.press(11.0, 1.0))
    if way == "false":
        deadman.say(False, 12.0)
    elif stopped_by == "false":
        deadman.say(False, 11.5)
    assert topic.permission.stopped
    ends = way == "false" or stopped_by == "false"  # a slow or suspended deadman is silent, too
    assert deadman.press(12.05 if way == "false" else 13.6, 0.2)[-1] == ends
    assert topic.permission.stopped != ends


@pytest.mark.parametrize("sequence", [0, 1, 7])
@pytest.mark.parametrize("lost", [0, 1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_no_other_publisher_ends_a_latched_stop(topic: Topic, sequence: int, lost: int, first: bool) -> None:
    """The one that stopped the robot has ended; the other one's numbers may follow on from its numbers."""
    button = topic.join(9.0, sequence)
    button.say(False, 10.0)
    topic.leave(button, 10.1)
    other = topic.join(10.2, sequence + 1 if first else lost)
    for step in range(40):
        other.say(step % 5 != 0, 10.2 + 0.3 * step)
        assert topic.permission.stopped
    assert topic.permission.set_enabled(True, 40.0) == ""
    assert not topic.permission.stopped


def test_a_stop_stays_though_another_deadman_is_pressed_all_the_time(topic: Topic) -> None:
    pressed = topic.join(9.0)
    assert pressed.press(9.1, 0.5)[-1]
    button = topic.join(9.8)
    button.say(False, 10.0)
    topic.leave(button, 10.1)
    assert not any(pressed.press(10.1, 5.0))
    pressed.say(False, 15.2)
    assert "only ~/set_enabled with true lets the arm move" in pressed.say(True, 15.25)
    assert topic.permission.stopped


def test_a_publisher_between_two_looks_is_noticed_by_the_count() -> None:
    topic = Topic()
    deadman = topic.join(9.0, sequence=4)
    deadman.say(False, 10.0)
    guest = topic.join(sequence=5)
    topic.leave(guest)
    guest.say(True, 10.05)  # its number follows on from the deadman's, and it is gone already
    assert topic.permission.stopped


def test_messages_of_before_a_publisher_was_alone_are_not_its_own(topic: Topic) -> None:
    """The node was suspended: the messages of one that is gone arrive when another is alone."""
    gone = topic.join(9.0, sequence=3)
    topic.leave(gone)
    other = topic.join(sequence=4)
    gone.say(False, 20.0, age_s=5.0, waited_s=5.0)
    other.say(True, 20.01)
    assert topic.permission.stopped


@pytest.mark.parametrize("join", ["at once", "later"])
def test_two_publishers_end_no_stop(topic: Topic, join: str) -> None:
    one = topic.join(9.0)
    two = topic.join(9.0) if join == "at once" else None
    one.say(False, 10.0)
    two = two or topic.join(10.1)
    for step in range(20):
        two.say(True, 10.2 + 0.1 * step)
        one.say(step % 2 == 0, 10.25 + 0.1 * step)
        assert topic.permission.stopped
    topic.leave(two, 13.0)
    one.say(False, 13.1)
    one.say(True, 13.15)
    assert topic.permission.stopped


def test_a_true_after_a_lost_message_is_no_press(topic: Topic) -> None:
    deadman = topic.join(9.0)
    deadman.say(False, 10.0)
    deadman.sequence += 1
    deadman.say(True, 10.1)
    assert topic.permission.stopped
    deadman.say(False, 10.2)
    deadman.say(True, 10.3)
    assert not topic.permission.stopped


def test_messages_that_were_lost_are_no_silence(topic: Topic) -> None:
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    topic.permission.set_enabled(False, 10.0)
    deadman.sequence += 40  # cut off for four seconds
    deadman.say(True, 14.0)
    assert topic.permission.stopped
    topic.permission.set_enabled(True, 14.0)
    topic.permission.holds.happen(Event.LAGS)
    deadman.sequence += 40
    deadman.say(True, 18.0)
    assert topic.permission.needs_press
    deadman.say(True, 19.0)  # nothing was lost: the deadman was silent
    assert topic.permission.enabled(19.0)


@pytest.mark.parametrize("event", [Event.LAGS, Event.DRIVER_FAULT, Event.JUMPS, Event.COMMANDED_TWICE])
def test_an_alarm_needs_a_fresh_press_though_the_deadman_is_held(event: Event) -> None:
    topic = Topic(required=False)
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    topic.permission.holds.happen(event)
    for over in (Event.DRIVER_RUNS, Event.STEADY, Event.COMMANDED_ALONE):
        topic.permission.holds.happen(over)
    assert not any(deadman.press(10.1, 3.0))
    deadman.say(False, 14.0)
    deadman.say(True, 14.1)
    assert topic.permission.enabled(14.1)


def test_an_alarm_ends_what_the_service_enabled() -> None:
    permission = Topic().permission
    permission.set_enabled(True, 0.0)
    permission.holds.happen(Event.LAGS)
    assert not permission.enabled(1.0)
    permission.set_enabled(True, 1.0)
    assert permission.enabled(1.0)


def test_a_press_does_not_end_what_has_not_ended_by_itself(topic: Topic) -> None:
    deadman = topic.join(9.0)
    topic.permission.driver("it does not run")
    deadman.say(False, 10.0)
    deadman.say(True, 10.1)
    assert not topic.permission.enabled(10.1)
    topic.permission.driver("")
    deadman.say(True, 10.2)
    assert topic.permission.needs_press
    assert not topic.permission.enabled(10.2)


def test_a_stop_outlasts_another_configuration() -> None:
    permission = Topic().permission
    permission.set_enabled(False, 0.5)
    permission.configure(False, 0.1)
    assert not permission.enabled(1.0)


MESSAGES = st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 3), st.floats(0.01, 1.0))


@given(st.lists(MESSAGES, max_size=60), st.booleans())
def test_after_a_false_nobody_but_its_publisher_enables(
    messages: list[tuple[int, bool, int, float]], counts: bool
) -> None:
    """Publishers come, speak, lose messages and leave. The one that stopped the robot says nothing more."""
    topic = Topic(counts=counts)
    button = topic.join(9.0)
    topic.join(9.1)
    button.say(False, 10.0)
    topic.leave(button)
    others, now_s = [topic.join() for _ in range(3)], 10.0
    for who, value, lost, pause_s in messages:
        now_s += pause_s
        if who == 3:
            topic.leave(others.pop(0))
            others.append(topic.join())
            continue
        others[who].sequence += lost
        others[who].say(value, now_s)
        assert topic.permission.stopped
        assert not topic.permission.enabled(now_s)


@pytest.mark.parametrize("why", ["stop", "alarm", "another deadman", "another publisher"])
def test_a_new_publishers_first_true_ends_no_stop_and_joins_no_deadman(topic: Topic, why: str) -> None:
    first = topic.join(8.0, sequence=700)  # it was pressed before the node started
    first.say(True, 9.9)
    if why == "stop":
        topic.permission.set_enabled(False, 9.9)
    elif why == "alarm":
        topic.permission.holds.happen(Event.LAGS)
    if why != "another publisher":
        topic.leave(first, 9.9)
    topic.join(9.95).say(True, 10.0 if why != "another publisher" else 20.0)
    assert not topic.permission.enabled(20.0 if why == "another publisher" else 10.0)


def test_a_new_publishers_first_true_ends_the_hold_of_the_start(topic: Topic) -> None:
    topic.join(9.9).say(True, 10.0)
    assert topic.permission.enabled(10.0)
    assert topic.permission.holds[Hold.STARTED] is State.CLEAR


def test_a_new_publishers_first_true_is_no_press_once_the_start_is_over(topic: Topic) -> None:
    deadman = topic.join(9.9)
    deadman.say(True, 10.0)
    presses = topic.permission.presses
    topic.leave(deadman, 10.1)
    topic.join(12.0).say(True, 12.1)
    assert topic.permission.enabled(12.1)
    assert topic.permission.presses == presses


@pytest.mark.parametrize("cause", ["service", "alarm"])
@pytest.mark.parametrize("step_s", [1.0, 3600.0])
def test_a_clock_that_is_set_is_no_release_of_the_deadman(topic: Topic, cause: str, step_s: float) -> None:
    """Publisher and robot have one clock, so the age stays small while the stamps jump."""
    permission = topic.permission
    topic.join(0.05)
    for number in range(1, 40):
        now_s = 0.1 * number
        if number == 10:
            permission.set_enabled(False, now_s) if cause == "service" else permission.holds.happen(
                Event.LAGS
            )
        stamp_s = 100.0 + now_s + (step_s if number >= 20 else 0.0)
        topic.look(now_s)
        permission.receive(Press(True, stamp_s, 0.001, number), now_s)
        assert permission.enabled(now_s) == (number < 10)


@pytest.mark.parametrize("step_s", [10.0, -10.0])
def test_a_set_clock_changes_when_messages_seem_to_arrive(topic: Topic, step_s: float) -> None:
    """One message was received before the clock was set, and has its turn afterwards."""
    permission = topic.permission
    topic.look(-101.0)
    deadman = topic.join(-100.0)
    deadman.say(False, 1.0)
    deadman.say(True, 1.1)
    permission.holds.happen(Event.LAGS)
    topic.look(1.27)
    permission.receive(Press(True, 1.25, step_s + 0.02, 3, step_s + 0.02), 1.27)
    permission.receive(Press(True, step_s + 1.3, 0.0, 4, 0.0), 1.3)
    assert permission.holds[Hold.FOLLOWING] is State.PRESS


def test_a_press_that_was_sent_before_a_stop_does_not_end_it(topic: Topic) -> None:
    permission = topic.permission
    deadman = topic.join(1.0)
    deadman.say(True, 1.1)
    deadman.say(False, 2.0)
    permission.set_enabled(False, 2.3, 0.01)
    assert "a fresh press is needed" in deadman.say(True, 2.35, age_s=0.25)
    assert permission.stopped
    deadman.say(False, 2.4)
    assert deadman.say(True, 2.5) == ""
    assert permission.enabled(2.5)


@pytest.mark.parametrize("reliable", [False, True])
@pytest.mark.parametrize("waited_s", [0.02, -8.0])
def test_a_stop_while_the_clock_is_set_back_is_of_the_past(
    topic: Topic, waited_s: float, reliable: bool
) -> None:
    deadman = topic.join(1.0)
    deadman.say(True, 1.1)
    other = topic.join(1.2)
    if reliable:
        other.say(False, 1.32, age_s=-8.0, waited_s=waited_s)
    else:
        topic.permission.stop(Press(False, 1.3, waited_s, 1, waited_s), 1.32)
    topic.leave(other, 1.5)
    deadman.say(False, 1.6)
    assert "was not the only one since the stop" in deadman.say(True, 1.7)
    assert topic.permission.stopped


def test_a_call_stops_since_it_was_sent(topic: Topic) -> None:
    permission = topic.permission
    permission.set_enabled(True, 1.0)
    topic.look(1.1)
    late = topic.join(1.6)
    permission.set_enabled(False, 2.0, 0.8)
    late.say(False, 2.1)
    assert "was not the only one since the stop" in late.say(True, 2.2)
    assert permission.stopped


@pytest.mark.parametrize(
    ("before_s", "after_s"), [(5.0, TIMEOUT_S), (TIMEOUT_S, 5.0), (TIMEOUT_S, TIMEOUT_S)]
)
def test_the_last_true_lasts_for_the_shorter_timeout(topic: Topic, before_s: float, after_s: float) -> None:
    permission = topic.permission
    permission.configure(True, before_s)
    deadman = topic.join(0.0)
    deadman.say(False, 0.1)
    deadman.say(True, 0.2)
    permission.configure(True, after_s)
    assert permission.enabled(0.2 + TIMEOUT_S - 0.01)
    assert not permission.enabled(0.2 + TIMEOUT_S + 0.01)


def test_a_robot_without_a_deadman_needs_none_until_it_is_stopped() -> None:
    permission = Topic(required=False).permission
    assert permission.enabled(1.0)
    permission.configure(True, TIMEOUT_S)
    assert not permission.enabled(1.0)
    permission.configure(False, TIMEOUT_S)
    permission.set_enabled(False, 2.0)
    assert not permission.enabled(2.0)


def test_a_call_of_a_clock_that_is_ahead_stops_since_it_arrived(topic: Topic) -> None:
    permission = topic.permission
    topic.look(1.0)
    permission.set_enabled(False, 2.0, -0.5)
    late = topic.join(2.1)
    late.say(False, 2.2)
    assert "was not the only one since the stop" in late.say(True, 2.3)
    assert permission.stopped


@pytest.mark.parametrize("age_s", [0.51, 4.5, -0.26, math.inf])
def test_a_call_that_arrives_late_enables_nothing_and_says_why(age_s: float) -> None:
    permission = Topic().permission
    permission.set_enabled(False, 1.0)
    ignored = permission.set_enabled(True, 20.0, age_s)
    assert "s old by its source timestamp, allowed are -0.25 to 0.5 s" in ignored
    assert permission.stopped
    assert not permission.enabled(20.0)
    assert permission.set_enabled(True, 20.0, 0.4) == ""
    assert permission.enabled(20.0)


def test_a_call_that_was_sent_before_a_stop_does_not_end_it(topic: Topic) -> None:
    permission = topic.permission
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    deadman.say(False, 10.3, age_s=0.1)
    assert "sent before the stop" in permission.set_enabled(True, 10.35, 0.2)
    assert permission.stopped
    permission.set_enabled(False, 10.6, 0.1)
    assert "sent before the stop" in permission.set_enabled(True, 10.7, 0.3)
    assert permission.set_enabled(True, 10.7, 0.1) == ""
    assert permission.enabled(10.7)


def test_a_late_call_stops_all_the_same() -> None:
    permission = Topic().permission
    permission.set_enabled(True, 10.0)
    assert permission.set_enabled(False, 20.0, 9.0) == ""
    assert permission.stopped


def test_a_deadman_that_is_used_takes_over_from_the_service(topic: Topic) -> None:
    topic.permission.set_enabled(True, 10.0)
    assert topic.permission.enabled(100.0)
    topic.join(99.9).say(True, 100.0)
    assert topic.permission.enabled(100.4)
    assert not topic.permission.enabled(100.6)


@pytest.mark.parametrize(("timeout_s", "silence_s"), [(0.1, 1.0), (0.5, 1.0), (2.0, 4.0)])
def test_a_silence_that_ends_an_alarm_lasts_a_second_and_twice_the_timeout(
    topic: Topic, timeout_s: float, silence_s: float
) -> None:
    topic.permission.configure(True, timeout_s)
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    topic.permission.holds.happen(Event.LAGS)
    deadman.say(True, 10.0 + silence_s - 0.01)
    assert topic.permission.needs_press
    deadman.say(True, 10.0 + 2 * silence_s)
    assert not topic.permission.needs_press


@pytest.mark.parametrize("value", [True, False])
def test_no_other_publisher_ends_an_alarm(value: bool) -> None:
    topic = Topic(required=False)
    gone = topic.join(9.0, sequence=3)
    gone.say(value, 10.0)
    topic.permission.set_enabled(True, 10.1)
    topic.permission.holds.happen(Event.LAGS)
    topic.leave(gone, 10.2)
    topic.join(12.0, sequence=4).say(True, 12.1)
    assert topic.permission.needs_press


def test_a_message_that_waited_is_of_the_publisher_of_its_arrival(topic: Topic) -> None:
    gone = topic.join(9.0, sequence=3)
    topic.leave(gone)
    other = topic.join(16.0, sequence=4)
    gone.say(False, 20.0, age_s=5.0, waited_s=5.0)
    other.say(True, 20.01)
    assert topic.permission.stopped


def test_a_false_that_may_be_lost_stops_and_its_copy_stops_once(topic: Topic) -> None:
    permission, deadman = topic.permission, topic.join(9.0)
    deadman.say(True, 10.0)
    permission.stop(Press(False, 10.1, 0.0, 7), 10.1)  # of a best-effort publisher
    assert permission.stopped
    permission.set_enabled(True, 10.2)
    deadman.say(False, 10.3)
    deadman.say(True, 10.4)
    assert not permission.stopped
    deadman.say(False, 10.5)
    deadman.say(True, 10.6)
    permission.stop(Press(False, 10.5, 0.0, 7), 10.6)  # what was received reliably already, before the true
    assert not permission.stopped
    permission.stop(Press(False, None, 0.0, 7), 10.7)  # without a stamp it may be another one
    assert permission.stopped
    assert "sent before the stop" in permission.set_enabled(True, 10.75, 0.1)


def test_after_the_service_ends_a_stop_the_next_one_has_its_own_beginning(topic: Topic) -> None:
    first = topic.join(9.0)
    first.say(False, 10.0)
    topic.leave(first, 10.1)
    topic.permission.set_enabled(True, 10.2)
    second = topic.join(11.0)
    second.say(False, 11.1)
    second.say(True, 11.2)
    assert not topic.permission.stopped


def test_a_call_counts_from_when_it_was_sent() -> None:
    permission = Topic().permission
    permission.set_enabled(False, 10.6, 0.1)
    assert permission.set_enabled(True, 10.7, 0.15) == ""


@pytest.mark.parametrize("active", [True, False])
def test_a_drivers_first_message_needs_a_press_only_while_active(active: bool) -> None:
    topic = Topic()
    permission = topic.permission
    if not active:
        permission.holds.happen(Event.DEACTIVATE)
    topic.join(9.0).say(True, 10.0)
    permission.driver("no message yet", known=False)
    assert permission.holding(10.1) is (Hold.DRIVER if active else Hold.DEACTIVATED)
    assert permission.holds[Hold.DRIVER] is State.WAITS
    permission.driver("")
    assert permission.holds[Hold.DRIVER] is State.CLEAR
    assert permission.needs_press == active


def test_a_driver_that_is_unknown_again_holds_through_a_press(topic: Topic) -> None:
    permission = topic.permission
    permission.driver("fault")
    permission.driver("")
    assert permission.holds[Hold.DRIVER] is State.PRESS
    assert "it did not run" in permission.holds.text(Hold.DRIVER)
    permission.driver("no message yet", known=False)
    permission.set_enabled(True, 10.0)
    assert permission.holding(10.0) is Hold.DRIVER
    permission.driver("")
    assert permission.needs_press


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("busy", "the node was busy"),
        ("clock", "the clocks of operator and robot must agree"),
        ("two", "2 publishers; only ~/set_enabled"),
        ("lasts", "held until this ends: driver: fault"),
        ("press", "a fresh press is needed; release, then press"),
    ],
)
def test_a_true_that_does_not_let_the_arm_move_says_what_is_to_be_done(
    topic: Topic, case: str, said: str
) -> None:
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    if case == "two":
        topic.join(10.01)
    topic.permission.holds.happen(Event.LAGS)
    if case == "lasts":
        topic.permission.driver("fault")
    age_s = 2.0 if case in ("busy", "clock") else 0.0
    assert said in deadman.say(True, 10.1, age_s, age_s if case == "busy" else 0.0)


def test_what_the_operator_cannot_end_does_not_disable(topic: Topic) -> None:
    topic.join(9.0).say(True, 10.0)
    for event in (Event.DEACTIVATE, Event.TAKE, Event.NOT_OBSERVED):
        topic.permission.holds.happen(event)
    assert topic.permission.enabled(10.1)


def test_an_older_true_does_not_shorten_a_newer_one(topic: Topic) -> None:
    deadman = topic.join(0.5)
    deadman.say(False, 0.9)
    deadman.say(True, 1.0)
    deadman.say(True, 1.05, age_s=0.4)
    assert topic.permission.enabled(0.99 + TIMEOUT_S)


def test_a_busy_node_and_a_set_clock_together_make_no_silence(topic: Topic) -> None:
    permission = topic.permission
    topic.look(-10.0)
    deadman = topic.join(-9.0)
    deadman.say(False, 1.0)
    deadman.say(True, 1.1)
    permission.holds.happen(Event.LAGS)
    topic.look(4.1)
    permission.receive(Press(True, 3604.1, 0.0, 3, 2.95), 4.1)  # it arrived at 1.15
    assert permission.holds[Hold.FOLLOWING] is State.PRESS


def test_a_late_message_is_no_silence(topic: Topic) -> None:
    deadman = topic.join(0.5)
    deadman.say(False, 0.9)
    deadman.say(True, 1.0)
    topic.permission.holds.happen(Event.LAGS)
    deadman.say(True, 1.0 + 2 * TIMEOUT_S + 0.05, age_s=0.8 * TIMEOUT_S)
    assert topic.permission.holds[Hold.FOLLOWING] is State.PRESS


@pytest.mark.parametrize("missing", ["stamp_s", "sequence"])
@pytest.mark.parametrize("of", [(2,), (3,), (2, 3)])
def test_a_silence_that_is_not_known_is_no_press(topic: Topic, missing: str, of: tuple[int, ...]) -> None:
    permission = topic.permission
    topic.join(0.5)
    permission.holds.happen(Event.LAGS)
    for number, now_s in enumerate((1.0, 1.0 + 3 * TIMEOUT_S), 2):
        without: dict[str, Any] = {missing: None} if number in of else {}
        topic.look(now_s)
        permission.receive(replace(Press(True, now_s, 0.0, number), **without), now_s)
    assert permission.holds[Hold.FOLLOWING] is State.PRESS


def test_a_press_ends_an_alarm_but_not_a_stop_of_before_its_publisher(topic: Topic) -> None:
    permission = topic.permission
    permission.set_enabled(False, 1.0)
    permission.holds.happen(Event.LAGS)
    deadman = topic.join(2.0)
    deadman.say(False, 3.0)
    deadman.say(True, 3.1)
    assert permission.stopped
    assert permission.holds[Hold.FOLLOWING] is State.CLEAR


def test_a_publisher_whose_messages_have_no_numbers_can_press(topic: Topic) -> None:
    permission = topic.permission
    topic.join(0.5)
    for value, now_s in ((False, 1.0), (True, 1.1)):
        topic.look(now_s)
        permission.receive(Press(value, now_s, 0.0, None), now_s)
    assert permission.enabled(1.1)


def test_a_false_without_a_stamp_is_no_copy(topic: Topic) -> None:
    permission = topic.permission
    permission.receive(Press(False, None, 0.0, None), 1.0)
    permission.set_enabled(True, 2.0)
    permission.stop(Press(False, None, 0.0, None), 3.0)
    assert permission.stopped


def test_a_false_that_may_be_lost_stops_since_it_arrived_and_was_sent(topic: Topic) -> None:
    permission = topic.permission
    deadman = topic.join(1.0)
    deadman.say(True, 2.0)
    permission.stop(Press(False, 2.2, 0.1, None, 0.05), 2.3)
    deadman.say(False, 2.31, age_s=0.11)
    assert deadman.say(True, 2.35, age_s=0.1) == ""
    permission.stop(Press(False, 2.5, 0.3, None, 0.2), 2.8)  # it arrived at 2.6
    late = topic.join(2.7)
    late.say(False, 2.9)
    assert "publishers" in late.say(True, 3.0)
    topic.leave(deadman, 3.1)
    late.say(False, 3.2)
    assert "was not the only one since the stop" in late.say(True, 3.3)


def test_a_stop_of_before_takes_nothing_from_a_newer_one(topic: Topic) -> None:
    permission = topic.permission
    deadman = topic.join(1.0)
    permission.set_enabled(False, 2.3, 0.01)
    permission.stop(Press(False, 2.0, 0.35, None, 0.0), 2.35)
    deadman.say(False, 2.4, age_s=0.35)
    assert deadman.say(True, 2.41, age_s=0.3) != ""
    assert permission.stopped


def test_a_publisher_that_came_while_a_stop_waited_does_not_end_it(topic: Topic) -> None:
    permission = topic.permission
    deadman = topic.join(1.0)
    deadman.say(False, 1.1)
    deadman.say(True, 1.2)
    topic.leave(deadman, 2.65)
    late = topic.join(2.7)
    permission.stop(Press(False, 2.5, 0.3, None, 0.2), 2.8)  # it arrived at 2.6
    late.say(False, 2.9)
    assert "was not the only one since the stop" in late.say(True, 3.0)
    assert permission.stopped


def test_a_stop_of_a_clock_that_is_ahead_was_sent_when_it_came(topic: Topic) -> None:
    deadman = topic.join(2.2)
    topic.permission.stop(Press(False, 2.5, -0.2, None, 0.0), 2.3)
    deadman.say(False, 2.35)
    assert deadman.say(True, 2.4) == ""
    assert not topic.permission.stopped


@pytest.mark.parametrize("ignored", ["late", "best effort"])
def test_a_deadman_that_is_ignored_counts_after_a_call(topic: Topic, ignored: str) -> None:
    deadman = topic.join(0.5)
    topic.permission.set_enabled(True, 1.0)
    assert topic.permission.enabled(1.0)
    if ignored == "late":
        assert "a true that is 0.80 s old" in deadman.say(True, 2.0, age_s=0.8)
    else:
        topic.permission.used()
    assert not topic.permission.enabled(2.0)
    topic.permission.set_enabled(True, 2.1)
    assert topic.permission.enabled(2.1)


def test_a_true_that_is_ignored_does_not_enable_after_an_activation(topic: Topic) -> None:
    permission = topic.permission
    topic.join(0.5).say(True, 1.0)
    permission.set_enabled(True, 1.1)
    permission.holds.happen(Event.ACTIVATE)
    permission.used()  # of a publisher that may lose messages
    assert not permission.enabled(1.2)


@pytest.mark.parametrize("waits", [False, True])
def test_a_new_publisher_begins_though_another_has_spoken_before(topic: Topic, waits: bool) -> None:
    former = topic.join(0.5, sequence=700)
    if not waits:
        former.say(True, 1.0)
    topic.leave(former, 2.0)
    new = topic.join(3.0)
    if waits:  # what arrived at 1 s has its turn now
        former.say(True, 4.0, age_s=3.0, waited_s=3.0)
    assert new.say(True, 4.1) == ""
    assert topic.permission.enabled(4.1)


def test_a_first_true_after_the_message_of_a_guest_is_no_press() -> None:
    topic = Topic(counts=False)
    deadman = topic.join(9.0)
    guest = topic.join(sequence=700)
    topic.leave(guest)  # before the node looks
    guest.say(True, 10.0)
    deadman.say(True, 11.0)
    assert not topic.permission.enabled(11.0)


def test_a_first_true_while_the_driver_is_unknown_does_not_end_the_start(topic: Topic) -> None:
    permission = topic.permission
    permission.holds.happen(Event.DEACTIVATE)
    permission.driver("no message yet", known=False)
    deadman = topic.join(9.0)
    deadman.say(True, 10.0)
    permission.driver("")
    permission.holds.happen(Event.ACTIVATE)
    deadman.say(True, 10.1)
    assert not permission.enabled(10.1)


@pytest.mark.parametrize(("age_s", "granted"), [(0.4, False), (0.2, True), (0.0, True)])
def test_the_service_grants_nothing_that_was_sent_before_the_activation(age_s: float, granted: bool) -> None:
    permission = Permission(True, 0.5)
    permission.activate(100.0)
    ignored = permission.set_enabled(True, 100.3, age_s)
    assert ("before the node was active" in ignored) != granted
    assert permission.enabled(100.3) == granted


A, NONE_YET = frozenset((b"a",)), frozenset[bytes]()


@pytest.mark.parametrize(
    ("matched", "since_s"),
    [
        ((0, 1, 1), 1.5),  # no other one was ever there
        ((0, 2, 2), math.nextafter(2.0, 3.0)),  # another has left already
        ((1, 2, 2), 1.9),
        ((None, None, None), 1.9),  # Humble does not count
    ],
)
def test_a_message_whose_copy_arrived_earlier_is_of_the_only_publisher(
    matched: tuple[int | None, ...], since_s: float
) -> None:
    publishers = SolePublisher()
    publishers.note_publishers(NONE_YET, matched[0], 1.0)
    publishers.note_publishers(A, matched[1], 2.0, 1.9)
    publishers.note_publishers(A, matched[2], 2.01, 1.5)
    assert publishers.since_s == since_s


@pytest.mark.parametrize(("matched", "since_s"), [((0, 1, 1), 1.5), ((0, 1, 2), 2.1), ((1, 2, 2), 2.1)])
def test_a_message_before_its_publisher_is_seen_is_of_the_only_one(
    matched: tuple[int, ...], since_s: float
) -> None:
    publishers = SolePublisher()
    publishers.note_publishers(NONE_YET, matched[0], 1.0)
    publishers.note_publishers(NONE_YET, matched[1], 2.0, 1.5)
    publishers.note_publishers(A, matched[2], 2.2, 2.1)
    assert publishers.since_s == since_s


def test_a_message_of_one_that_has_left_is_not_of_another() -> None:
    publishers = SolePublisher()
    publishers.note_publishers(NONE_YET, 0, 1.0)
    publishers.note_publishers(frozenset((b"b",)), 2, 2.0)  # A has matched, and is not seen yet
    publishers.note_publishers(NONE_YET, 2, 3.0, 2.5)  # b's message, of before it left
    publishers.note_publishers(A, 2, 3.2, 3.1)
    assert publishers.since_s == 3.1
