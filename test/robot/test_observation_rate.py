"""Observations that arrive less often than the contract says, in simulated time."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.health_level import Level
from adahi_ros.robot.diagnosis import Diagnosis, News
from test.robot.conftest import Robot

PERIOD_S = 0.05
SECONDS = 20.0


class Observed:
    """What a robot says while observations arrive."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self.condition = Diagnosis(0.0, PERIOD_S)
        self.condition.active = True
        self.now_s = 0.0
        self.news: list[News] = []
        self.health: list[tuple[Level, str]] = []

    def arrive(self, period_s: float, jitter: float = 0.0, seconds: float = SECONDS) -> None:
        """Let observations arrive at multiples of a period, each late by up to a share of it."""
        rng, start_s, report_s = np.random.default_rng(0), self.now_s, self.now_s + 1.0
        for number in range(1, round(seconds / period_s) + 1):
            self.now_s = start_s + (number + jitter * rng.random()) * period_s
            news = self.condition.observed(round(self.now_s * NANOSECONDS), self.now_s)
            self.news += [] if news is None else [news]
            if self.now_s >= report_s:
                report_s += 1.0
                self.report()

    def report(self) -> None:
        health = self.condition.report(
            self._robot.session,
            self._robot.loop,
            enabled=True,
            stopped=False,
            interventions={},
            verifiers={},
            now_s=self.now_s,
            now_ns=round(self.now_s * NANOSECONDS),
        )
        self.health.append((health.level, health.message))


@pytest.fixture
def observed(robot: Robot) -> Observed:
    return Observed(robot)


@pytest.mark.parametrize("late", [1.12, 1.25, 3.0])
def test_late_observations_are_a_warning_that_names_both_periods(observed: Observed, late: float) -> None:
    observed.arrive(late * PERIOD_S)
    level, message = observed.health[-1]
    assert level is Level.WARN
    assert f"every {late * PERIOD_S:.3g} s, the contract's control period is 0.05 s" in message
    assert observed.news == [News(Level.WARN, message)]  # logged once


def test_the_warning_ends_when_observations_are_in_time(observed: Observed) -> None:
    observed.arrive(1.2 * PERIOD_S)
    observed.arrive(PERIOD_S, seconds=4.0)
    assert observed.health[-1] == (Level.OK, "stepping")
    observed.arrive(1.2 * PERIOD_S)
    assert len(observed.news) == 2


def test_a_silence_and_a_new_activation_begin_again(observed: Observed) -> None:
    observed.arrive(1.2 * PERIOD_S)
    observed.condition.begin(observed.now_s)
    observed.arrive(1.2 * PERIOD_S, seconds=3.0)
    assert observed.health[-1] == (Level.OK, "stepping")
    observed.arrive(1.2 * PERIOD_S)
    observed.now_s += 3.0
    observed.arrive(1.2 * PERIOD_S, seconds=3.0)
    assert observed.health[-1] == (Level.OK, "stepping")
