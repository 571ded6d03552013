"""The workspace box in the guard: an arm stops inside, and one that stands is not moved by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.intervention import Intervention
from test.safety.conftest import Robot

EDGE = 1.0
ARM = {"velocity": 2.0, "acceleration": 8.0, "max_step": 0.5}


class Box:
    """A tool whose place is the joint's position."""

    def admits(self, before: np.ndarray, wanted: np.ndarray) -> bool:
        outside = abs(float(wanted[0])) - EDGE
        return outside <= 0.0 or outside < abs(float(before[0])) - EDGE


def boxed() -> Robot:
    robot = Robot("positions", ARM)
    robot.guard._workspace = Box()  # type: ignore[assignment]
    return robot


@settings(max_examples=200)
@given(st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=20), st.integers(1, 20))
def test_an_arm_stops_inside_whatever_is_wanted(targets: list[float], steps: int) -> None:
    robot, at = boxed(), 0.0
    for target in targets:
        for _ in range(steps):
            at = robot.act(target, measured=at) or at
            robot.wait()
            assert abs(at) <= EDGE + 1e-6


@pytest.mark.parametrize("measured", [0.9, 1.19])
def test_an_arm_that_was_moved_by_hand_is_not_pulled_back(measured: float) -> None:
    robot = boxed()
    robot.act(0.0, measured=0.0)
    robot.press(False)
    robot.wait(40)
    robot.press(True)
    for _ in range(10):
        command = robot.act(3.0, measured=measured)
        assert command is None or abs(command - measured) <= 0.1 + 1e-6
        robot.wait()
    assert robot.guard.counts[Intervention.WORKSPACE] > 0


def test_an_arm_that_was_moved_by_hand_has_no_speed() -> None:
    robot = boxed()
    robot.act(0.9, measured=0.9)
    robot.press(False)
    robot.wait(40)
    robot.press(True)
    for _ in range(3):
        at = robot.act(0.0, measured=0.0)
        assert at == 0.0  # the box is not asked about a motion that was none
        robot.wait()
    assert Intervention.WORKSPACE not in robot.guard.counts


def test_an_arm_outside_may_return() -> None:
    robot, at = boxed(), 1.3
    for _ in range(40):
        at = robot.act(0.5, measured=at) or at
        robot.wait()
    assert at == pytest.approx(0.5)
