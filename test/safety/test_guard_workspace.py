"""The workspace box in the guard: an arm stops inside, and one that stands is not moved by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission
from adahi_ros.safety.workspace import Box
from test.safety.conftest import PERIOD_S, Robot

EDGE = 1.0
ARM = {"velocity": 2.0, "acceleration": 8.0, "max_step": 0.5}


def admits(before: np.ndarray, wanted: np.ndarray) -> bool:
    """Judge a tool whose place is the joint's position."""
    outside = abs(float(wanted[0])) - EDGE
    return outside <= 0.0 or outside < abs(float(before[0])) - EDGE


def boxed() -> Robot:
    return Robot("positions", ARM, judges={"workspace": admits})


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
    assert robot.act(3.0, measured=measured) is None
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
    assert robot.act(0.0, measured=0.0) is None
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


def test_the_limit_that_refuses_is_named_and_none_widens_another() -> None:
    limit = {**ARM, "position_low": -0.5, "position_high": 0.5}
    judges = {"workspace": admits, "cable": lambda before, wanted: bool(wanted[0] <= 0.2)}
    robot, path = Robot("positions", limit, judges=judges), [0.0]
    for target in (3.0, -3.0):
        for _ in range(40):
            path.append(robot.act(target, measured=path[-1]) or path[-1])
            robot.wait()
        if target > 0.0:
            assert robot.guard.holding
            assert robot.guard.interventions == (Intervention.WORKSPACE,)
            assert robot.guard.reason(robot.now_s) == "cable"
    assert 0.1 < max(path) <= 0.2
    assert min(path) == -0.5


class TwoLinks:
    """A planar arm with two links, 1.0 m and 0.7 m long."""

    joint_names = ("a", "b")

    def pose(self, joints: dict[str, float]) -> np.ndarray:
        pose, first, both = np.eye(4), joints["a"], joints["a"] + joints["b"]
        pose[:2, 3] = np.cos(first) + 0.7 * np.cos(both), np.sin(first) + 0.7 * np.sin(both)
        return pose


LOWEST, HIGHEST = np.array([0.3, -0.8, -1.0]), np.array([1.6, 0.8, 1.0])


def two_links(limit: dict[str, float]) -> Guard:
    names = ("a", "b")
    box = Box(TwoLinks(), names, LOWEST, HIGHEST)  # type: ignore[arg-type]
    envelope = Envelope(Limits.from_fields(names, dict.fromkeys(names, limit)), "positions", PERIOD_S)
    guard = Guard(
        envelope, GuardConfig(PERIOD_S, 0.5), Permission(False, 0.5), 0.0, {"workspace": box.admits}
    )
    guard.start(0.0)
    return guard


def outside(command: np.ndarray) -> float:
    """Return how far from the box the tool is, in m."""
    tool = TwoLinks().pose({"a": command[0], "b": command[1]})[:3, 3]
    return float(np.linalg.norm(tool - np.clip(tool, LOWEST, HIGHEST)))


@pytest.mark.parametrize(("end", "max_step", "lag"), [(1.2, 10.0, 0), (3.2, 0.3, 3), (3.2, 10.0, 0)])
def test_a_tool_that_moves_on_a_curve_stays_inside(end: float, max_step: float, lag: int) -> None:
    rng, worst = np.random.default_rng(1), 0.0
    limit = {**ARM, "position_low": -end, "position_high": end, "max_step": max_step}
    for _ in range(20):
        guard, now_s, wanted = two_links(limit), 0.0, np.zeros(2)
        path = [np.array([0.0, 0.9])]
        for _ in range(100):
            now_s += PERIOD_S
            if rng.random() < 0.1:
                wanted = rng.uniform(-3.0, 3.0, 2)
            guard.observed(now_s)
            command = guard.act(wanted, path[max(0, len(path) - 1 - lag)], now_s)
            if command is not None:
                path.append(command)
                worst = max(worst, outside(command))
    assert worst <= 0.01


def test_the_first_command_of_an_arm_that_is_not_measured_lies_inside() -> None:
    guard = two_links(ARM)
    assert guard.act(np.array([2.0, 1.0]), None, 0.1) is None
    assert guard.interventions == (Intervention.WORKSPACE,)
    assert guard.act(np.array([0.0, 0.9]), None, 0.2) is not None


def test_an_arm_stops_inside_at_any_pace_of_its_commands() -> None:
    robot, at = boxed(), 0.0
    for _ in range(200):
        at = robot.act(3.0, measured=at) or at
        robot.now_s += PERIOD_S / 5
        assert at <= EDGE + 1e-6
    assert at > EDGE - 0.1


def test_a_limit_is_asked_about_the_way_on_which_a_late_arm_would_brake() -> None:
    asked: list[float] = []

    def spy(before: np.ndarray, wanted: np.ndarray) -> bool:
        asked.append(float(wanted[0]))
        return True

    robot = Robot("positions", ARM, judges={"spy": spy})
    robot.act(0.0, measured=0.0)
    robot.now_s += 1.25 * PERIOD_S
    moved = 8.0 * PERIOD_S**2
    assert robot.act(3.0, measured=0.0) == pytest.approx(moved)
    assert max(asked) == pytest.approx(moved + (moved / PERIOD_S) ** 2 / 2 / 8.0)  # it moved in one period


def test_no_number_before_a_place_is_known_is_inside_no_limit() -> None:
    robot = boxed()
    assert robot.act(np.nan, measured=None) is None
    assert robot.act(0.1, measured=0.1) == 0.1


def test_a_limit_is_asked_about_the_way_from_the_last_command() -> None:
    asked: list[float] = []

    def spy(before: np.ndarray, wanted: np.ndarray) -> bool:
        asked.append(float(before[0]))
        return True

    robot = Robot("positions", {**ARM, "acceleration": 80.0}, judges={"spy": spy})
    robot.act(0.0, measured=0.0)
    robot.wait()
    assert robot.act(0.1, measured=0.05) is not None
    assert set(asked) == {0.0}


def test_an_arm_that_was_moved_at_the_edge_of_the_box_waits_for_a_press() -> None:
    robot, at = boxed(), 0.0
    for _ in range(60):
        at = robot.act(3.0, measured=at) or at
        robot.wait()
    assert robot.guard.interventions == (Intervention.WORKSPACE,)
    moved = at
    while moved < at + 0.5:  # by hand, slowly
        moved += 0.02
        assert robot.act(3.0, measured=moved) is None
        robot.wait()
    for _ in range(20):
        assert robot.act(0.0, measured=moved) is None
        robot.wait()
    robot.press(False)
    robot.press(True)
    assert robot.act(0.0, measured=moved) is not None


@pytest.mark.parametrize("periods", [3, 6])
@pytest.mark.parametrize("stop", [False, True])
def test_an_arm_that_was_moved_as_the_box_braked_it_is_not_brought_back(periods: int, stop: bool) -> None:
    robot, at = boxed(), 0.0
    while Intervention.WORKSPACE not in robot.guard.interventions:
        at = robot.act(3.0, measured=at) or at
        robot.now_s += PERIOD_S
    robot.now_s += (periods - 1) * PERIOD_S
    if stop:
        robot.press(False)
    assert robot.act(3.0, measured=at - 0.6) is None
    assert robot.wait(20) == []
