from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from adahi_ros.nodes.launching.domain import exclusive_domain
from adahi_ros.nodes.launching.observer import Observer
from adahi_ros.nodes.robot import rehearsal
from adahi_ros.nodes.robot.rehearsal import AHEAD_S, LATE_S, Rehearsal

PATIENCE_S = 30.0  # only what is broken takes longer


def be_busy_until(end_s: float) -> None:
    while time.monotonic() < end_s:
        pass


class Stage:
    """A rehearsal, when it took place, and a way to let time pass."""

    def __init__(self, observer: Observer) -> None:
        self.times_s: list[float] = []
        self.busy_s = 0.0
        self.rehearsal = Rehearsal(observer.node, self._go_through)
        self._observer = observer

    def _go_through(self) -> None:
        self.times_s.append(time.monotonic())
        be_busy_until(self.times_s[-1] + self.busy_s)

    def wait_until(self, done: Callable[[], bool]) -> None:
        self._observer.wait_until(done, PATIENCE_S, "rehearsal")

    def spin_for(self, duration_s: float) -> None:
        end = time.monotonic() + duration_s
        self.wait_until(lambda: time.monotonic() > end)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with exclusive_domain() as domain:
        observer = Observer(domain, "rehearsing")
        try:
            yield Stage(observer)
        finally:
            observer.close()


@pytest.fixture
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late on a busy machine."""
    monkeypatch.setattr(rehearsal, "LATE_S", PATIENCE_S)


@pytest.mark.usefixtures("_patience")
def test_what_is_expected_is_rehearsed_once_and_not_long_before(stage: Stage) -> None:
    expected = time.monotonic() + 0.05
    stage.rehearsal.expect(0.05)
    stage.wait_until(lambda: bool(stage.times_s))
    stage.spin_for(0.1)
    assert len(stage.times_s) == 1
    assert stage.times_s[0] >= expected - AHEAD_S


@pytest.mark.usefixtures("_patience")
def test_nothing_is_rehearsed_that_is_unknown_or_too_soon_or_called_off(stage: Stage) -> None:
    stage.rehearsal.expect(0.03)
    stage.rehearsal.expect(None)
    stage.spin_for(0.06)
    stage.rehearsal.expect(0.03)
    stage.rehearsal.expect(AHEAD_S)
    stage.spin_for(0.06)
    stage.rehearsal.expect(0.03)
    stage.rehearsal.call_off()
    stage.spin_for(0.06)
    assert not stage.times_s


@pytest.mark.usefixtures("_patience")
def test_the_newest_expectation_counts(stage: Stage) -> None:
    stage.rehearsal.expect(0.02)
    expected = time.monotonic() + 0.06
    stage.rehearsal.expect(0.06)
    stage.wait_until(lambda: bool(stage.times_s))
    assert stage.times_s[0] >= expected - AHEAD_S


def test_what_is_late_already_is_not_delayed_further(stage: Stage) -> None:
    stage.rehearsal.expect(0.02)
    be_busy_until(time.monotonic() + 0.02 + 2 * LATE_S)
    stage.spin_for(0.05)
    assert not stage.times_s


@pytest.mark.usefixtures("_patience")
def test_what_takes_long_begins_so_much_earlier_and_not_where_there_is_no_time_for_it(stage: Stage) -> None:
    takes_s = 0.04
    stage.busy_s = takes_s
    stage.rehearsal.expect(0.01)
    stage.wait_until(lambda: bool(stage.times_s))
    stage.rehearsal.expect(0.2)
    assert stage.rehearsal.timer.timer_period_ns < 1e9 * (0.2 - takes_s)
    stage.wait_until(lambda: len(stage.times_s) > 1)
    stage.rehearsal.expect(takes_s)
    assert stage.rehearsal.timer.is_canceled()
    for _ in range(8):  # it may have taken so long but once
        stage.rehearsal.expect(takes_s)
    assert not stage.rehearsal.timer.is_canceled()
