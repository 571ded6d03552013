"""Heartbeats count of one policy runner, the first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from rclpy.publisher import Publisher
from std_msgs.msg import Empty

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.robot.heartbeat_watch import QOS, TOPIC, HeartbeatWatch

DEADLINE_S = 20.0
TIMEOUT_S = 0.5
BEATS = 20


class Runners:
    """Publishers of heartbeats beside a node that watches them.

    Attributes:
        silences: what the watch reported.
    """

    def __init__(self, observer: Observer, opened: ExitStack) -> None:
        self.silences: list[str] = []
        self._observer = observer
        self._received: list[Empty] = []
        observer.node.create_subscription(Empty, TOPIC, self._received.append, QOS)
        self.watch = HeartbeatWatch(observer.node, TIMEOUT_S, self.silences.append, opened)

    def join(self) -> Publisher:
        publisher = self._observer.node.create_publisher(Empty, TOPIC, QOS)
        self._wait(lambda: publisher.get_subscription_count() == 2, "both subscriptions")
        return publisher

    def leave(self, publisher: Publisher) -> None:
        self._observer.node.destroy_publisher(publisher)

    def beat(self, *publishers: Publisher, until: Callable[[], object] | None = None) -> None:
        """Publish heartbeats of all of them, until some were received or something happens."""
        enough = len(self._received) + BEATS * len(publishers)

        def each() -> None:
            for publisher in publishers:
                publisher.publish(Empty())

        self._wait(until or (lambda: len(self._received) >= enough), "heartbeats", each)

    def _wait(self, done: Callable[[], object], what: str, act: Callable[[], None] = lambda: None) -> None:
        self._observer.wait_until(lambda: bool(done()), DEADLINE_S, what, act)


@pytest.fixture
def runners(observer: Observer) -> Iterator[Runners]:
    with ExitStack() as opened:
        yield Runners(observer, opened)


def test_a_killed_runner_is_noticed_beside_heartbeats_of_another(runners: Runners) -> None:
    runner = runners.join()
    runners.watch.begin(time.monotonic())
    runners.beat(runner)
    other = runners.join()
    runners.beat(runner, other)
    assert runners.silences == []
    runners.leave(runner)
    runners.beat(other, until=lambda: runners.silences)
    assert "no heartbeat of the policy runner" in runners.silences[0]


def test_a_runner_beside_another_is_not_silent(runners: Runners) -> None:
    runner = runners.join()
    runners.watch.begin(time.monotonic())
    runners.beat(runner)
    other = runners.join()
    for _ in range(3):
        runners.beat(runner, other)
    assert runners.silences == []


def test_after_an_end_the_next_runner_counts(runners: Runners) -> None:
    runner = runners.join()
    runners.watch.begin(time.monotonic())
    runners.beat(runner)
    runners.watch.end()
    runners.leave(runner)
    second = runners.join()
    runners.watch.begin(time.monotonic())
    runners.beat(second)
    assert runners.silences == []
    runners.beat(until=lambda: runners.silences)


def test_the_next_runner_may_end_as_soon_as_the_node_acts(
    runners: Runners, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = runners.watch
    for runner, acting in ((b"first", 1), (b"second", 0)):
        monkeypatch.setattr(watch._watch, "knows", lambda _, runner=runner: runner)
        for begin in (lambda: watch.begin(time.monotonic()), lambda: None)[: 1 + acting]:
            watch._received(Empty(), {"received_timestamp": time.time_ns()})
            begin()
        runners.beat(until=lambda: runners.silences)
        watch.end()
        runners.silences.clear()


def test_a_heartbeat_that_comes_while_the_node_is_cleaned_up_is_ignored(observer: Observer) -> None:
    with ExitStack() as opened:
        watch = HeartbeatWatch(observer.node, TIMEOUT_S, lambda text: None, opened)
    watch._received(Empty(), {"received_timestamp": time.time_ns()})  # the events executor had queued it
