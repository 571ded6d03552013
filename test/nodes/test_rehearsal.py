from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from adahi_ros.nodes.domain import exclusive_domain
from adahi_ros.nodes.observer import Observer
from adahi_ros.nodes.rehearsal import AHEAD_S, Rehearsal

PATIENCE_S = 30.0  # only what is broken takes longer


class Stage:
    """A rehearsal, when it took place, and a way to let time pass."""

    def __init__(self, observer: Observer) -> None:
        self.times_s: list[float] = []
        self.rehearsal = Rehearsal(observer.node, lambda: self.times_s.append(time.monotonic()))
        self._observer = observer

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


def test_what_is_expected_is_rehearsed_once_and_not_long_before(stage: Stage) -> None:
    expected = time.monotonic() + 0.05
    stage.rehearsal.expect(0.05)
    stage.wait_until(lambda: bool(stage.times_s))
    stage.spin_for(0.1)
    assert len(stage.times_s) == 1
    assert stage.times_s[0] >= expected - AHEAD_S


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


def test_the_newest_expectation_counts(stage: Stage) -> None:
    stage.rehearsal.expect(0.02)
    expected = time.monotonic() + 0.06
    stage.rehearsal.expect(0.06)
    stage.wait_until(lambda: bool(stage.times_s))
    assert stage.times_s[0] >= expected - AHEAD_S
