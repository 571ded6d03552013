"""Who lets the robot move and who stops it: every moment is given, no clock is read."""

from __future__ import annotations

import pytest

from test.safety.conftest import Robot


def stream(robot: Robot, periods: int) -> list[bool]:
    """Let `enable` say true once a period; return whether the robot was enabled after each."""
    said = []
    for _ in range(periods):
        robot.wait()
        robot.guard.allow(robot.now_s)
        said.append(robot.guard.enabled(robot.now_s))
    return said


@pytest.mark.parametrize("required", [True, False])
def test_a_stop_by_the_service_stays_while_the_topic_goes_on_saying_true(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    assert stream(robot, 3)[-1]
    robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 100))
    assert robot.guard.stopped
    assert robot.act(0.1) is None
    robot.guard.allow_until_told(robot.now_s)
    assert robot.guard.enabled(robot.now_s)
    assert not robot.guard.stopped
    assert robot.act(0.1) == 0.1


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("let_go", ["silent", "false"])
def test_after_a_stop_by_the_service_the_topic_must_let_go_before_it_enables(
    required: bool, let_go: str
) -> None:
    robot = Robot("positions", {}, require_enable=required, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 3))
    if let_go == "silent":
        robot.wait(3)
        assert not stream(robot, 1)[0]  # that was not long enough
        robot.wait(4)
    else:
        robot.guard.forbid(robot.now_s)
    assert robot.guard.stopped
    assert stream(robot, 1)[0]
    assert not robot.guard.stopped


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("looked", [True, False])
def test_time_in_which_nobody_listened_to_the_topic_is_no_silence(required: bool, looked: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.guard.forbid_until_told(robot.now_s)
    for _ in range(5):  # the process stands still; what was said meanwhile is heard all at once
        robot.now_s += 10.0
        if looked:
            robot.guard.look(robot.now_s)
        robot.guard.allow(robot.now_s)
        assert not robot.guard.enabled(robot.now_s)
        stream(robot, 3)
    assert robot.guard.stopped


@pytest.mark.parametrize("required", [True, False])
def test_after_a_false_on_the_topic_its_next_true_enables(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.guard.forbid(robot.now_s)
    assert robot.guard.stopped
    assert not robot.guard.enabled(robot.now_s)
    assert stream(robot, 1)[0]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_a_stop_outlasts_a_new_start(required: bool, active: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    if active:
        robot.guard.forbid_until_told(robot.now_s)
    robot.guard.stop()
    if not active:
        robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 30))
    robot.guard.start(robot.now_s)
    assert robot.guard.stopped
    assert not any(stream(robot, 30))
    robot.guard.allow_until_told(robot.now_s)
    assert robot.guard.enabled(robot.now_s)


def test_a_deadman_that_is_let_go_is_no_stop() -> None:
    robot = Robot("positions", {}, require_enable=True, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.wait(10)
    assert not robot.guard.enabled(robot.now_s)
    assert not robot.guard.stopped
    assert stream(robot, 1)[0]
