"""Two publishers of one joint are found by sequence numbers, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.safety.measured_twice import AGAIN_S, MeasuredTwice

DRIVER, ZEROS, GRIPPER, RESTARTED = b"driver", b"zeros", b"gripper", b"restarted"
ARM = ("a", "b")
LOOK_S = 0.25


class Topic:
    """A topic with publishers that count their messages, by a clock of its own."""

    def __init__(self) -> None:
        self.twice = MeasuredTwice((*ARM, "finger"))
        self.now_s, self.due = 0.0, False
        self.publishers: set[bytes] = set()
        self._counts: dict[bytes, int] = {}

    def join(self, publisher: bytes, count: int = 0) -> None:
        self.publishers.add(publisher)
        self._counts[publisher] = count

    def send(self, publisher: bytes, names: Sequence[str] = ARM, after_s: float = 0.01) -> None:
        self.now_s += after_s
        self._counts[publisher] += 1
        self.due |= self.twice.received(names, self._counts[publisher], self.now_s)

    def look(self) -> list[str]:
        self.due = False
        return list(self.twice.joints_measured_twice(self.publishers, self.now_s))


@given(
    counts=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    order=st.lists(st.sampled_from([DRIVER, ZEROS]), max_size=40),
)
def test_any_order_of_two_publishers_of_a_joint_is_found(counts: tuple[int, int], order: list[bytes]) -> None:
    topic = Topic()
    topic.join(DRIVER, counts[0])
    topic.join(ZEROS, counts[1])
    topic.look()
    for publisher in (*order, *[DRIVER, ZEROS] * 3):
        topic.send(publisher)
    assert topic.due
    assert topic.look() == ["a", "b"]
    for _ in range(100):
        topic.send(DRIVER)
    topic.now_s += 100.0
    assert topic.look() == ["a", "b"]  # the other one has only paused


@given(
    messages=st.lists(
        st.tuples(st.sampled_from([DRIVER, GRIPPER]), st.floats(0.0, 1.0), st.integers(0, 3)), max_size=60
    ),
    counts=st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
)
def test_publishers_of_different_joints_are_not_though_messages_get_lost(
    messages: list[tuple[bytes, float, int]], counts: tuple[int, int]
) -> None:
    topic = Topic()
    topic.join(DRIVER, counts[0])
    topic.join(GRIPPER, counts[1])
    for publisher, after_s, lost in messages:
        topic._counts[publisher] += lost
        topic.send(publisher, ARM if publisher is DRIVER else ("finger", "unknown"), after_s)
        assert topic.look() == []


@given(
    first=st.integers(1, 20),
    after_s=st.floats(LOOK_S, 30.0),
    early=st.booleans(),
    again=st.integers(0, 3),
)
def test_a_publisher_that_starts_again_is_not_two_though_both_are_listed(
    first: int, after_s: float, early: bool, again: int
) -> None:
    topic = Topic()
    topic.join(DRIVER)
    for number in range(again + 1):
        for _ in range(first):
            topic.send(DRIVER if not number else RESTARTED + bytes([number]))
            assert topic.look() == []
        after = RESTARTED + bytes([number + 1])
        topic.join(after)
        if early:  # it is listed before its first message
            topic.now_s += after_s
            assert topic.look() == []
        topic.send(after, after_s=after_s)
        assert topic.look() == []
    for _ in range(50):
        topic.send(after)
        assert topic.look() == []


def found() -> Topic:
    topic = Topic()
    topic.join(DRIVER, 500)
    topic.join(ZEROS)
    topic.join(GRIPPER)
    for _ in range(8):
        topic.send(DRIVER)
        topic.send(GRIPPER, ["finger"])
        topic.send(ZEROS)
        topic.look()
    assert topic.look() == ["a", "b"]
    return topic


def test_it_ends_with_one_publisher_on_the_topic() -> None:
    topic = found()
    topic.publishers = {DRIVER}
    assert topic.look() == []


def test_it_ends_beside_another_joints_publisher_once_numbers_rise() -> None:
    topic = found()
    topic.publishers -= {ZEROS}
    end_s = topic.now_s + AGAIN_S
    while topic.now_s < end_s:
        assert topic.look() == ["a", "b"]
        topic.send(DRIVER)
        topic.send(GRIPPER, ["finger"])
    topic.now_s += 0.1
    assert topic.look() == []


def test_it_does_not_end_where_the_wrong_publisher_has_left() -> None:
    topic = found()
    topic.join(b"third", 90)
    topic.publishers -= {GRIPPER}
    for _ in range(300):
        topic.send(DRIVER)
        topic.send(ZEROS)
        assert topic.look() == ["a", "b"]
        topic.now_s += 0.1


@pytest.mark.parametrize("seconds", [1, 4])
def test_a_slow_publisher_is_found_too(seconds: int) -> None:
    topic = Topic()
    topic.join(DRIVER, 500)
    topic.join(ZEROS)
    topic.look()
    for message in range(4):
        for _ in range(100 * seconds):
            topic.send(DRIVER)
        topic.send(ZEROS)
        assert bool(topic.look()) == (message >= 1)


def test_a_third_publisher_that_comes_and_goes_hides_nothing() -> None:
    topic = Topic()
    topic.join(DRIVER, 500)
    topic.join(ZEROS)
    found = []
    for period in range(80):
        topic.publishers ^= {b"third"}
        found.append(topic.look())
        for _ in range(25):
            topic.send(DRIVER)
        if period % 4 == 0:
            topic.send(ZEROS)
            topic.send(DRIVER)
    assert found[20:] == [["a", "b"]] * 60


def test_what_a_second_publisher_left_behind_blames_no_later_one() -> None:
    topic = Topic()
    topic.join(DRIVER, 500)
    topic.join(ZEROS)
    for _ in range(4):
        topic.send(DRIVER)
        topic.send(ZEROS)
    topic.publishers -= {ZEROS}  # before anyone looks
    assert topic.look() == []
    topic.now_s += 60.0
    topic.join(GRIPPER)
    for _ in range(20):
        topic.send(DRIVER)
        topic.send(GRIPPER, ["finger"])
        assert topic.look() == []


def test_one_publisher_alone_holds_nothing_whatever_it_counts() -> None:
    topic = Topic()
    topic.join(DRIVER)
    for number in (5, 4, 3, 2, 1):
        topic._counts[DRIVER] = number
        topic.send(DRIVER)
        assert topic.look() == []
