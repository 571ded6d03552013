"""The deadman at a terminal: each start is a fresh press, and its end stops the arm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from std_msgs.msg import Bool

from adahi_ros.nodes.robot.deadman import Deadman
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.nodes.test_other_publishers import Arm


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


def deadman(arm: Arm) -> Deadman:
    made = Deadman(context=arm.observer.context, use_global_arguments=False)
    arm.add(made)
    return made


def test_each_start_of_the_deadman_is_a_fresh_press_and_later_ones_are_not(
    arm: Arm, capfd: pytest.CaptureFixture[str]
) -> None:
    arm.policy(values={"safety.require_enable": True})
    arm.runs()
    pressed = deadman(arm)
    arm.moves()
    stops = arm.observer.node.create_publisher(Bool, "enable", 1)

    def stopped() -> bool:
        if not arm.states[-1].stopped:
            stops.publish(Bool(data=False))
        return bool(arm.states[-1].stopped and arm.states[-1].at_rest)

    arm.wait(stopped, "the stop")
    text = "to press afresh, end this and start it again"
    arm.wait(lambda: text in capfd.readouterr().err, "the warning")
    assert arm.states[-1].stopped
    arm.observer.node.destroy_publisher(stops)
    for timer in pressed.timers:
        timer.cancel()
    arm.commands.clear()
    deadman(arm)
    arm.moves()


def test_a_deadman_without_a_robot_waits_and_names_the_topic_that_is_there(
    arm: Arm, capfd: pytest.CaptureFixture[str]
) -> None:
    other = "/follower/enable"
    received: list[Bool] = []
    arm.observer.node.create_subscription(Bool, other, received.append, 10)
    waits = deadman(arm)
    arm.wait(lambda: f"to /enable; there is {other} (" in capfd.readouterr().err, "the warning")
    assert not waits._pressed
    assert not received


def test_the_deadman_presses_at_its_start_or_never(arm: Arm) -> None:
    """A node that is not active publishes no state; what stops it later is not this start's to end."""
    policy = arm.policy(active=False, values={"safety.require_enable": True})
    pressed = deadman(arm)
    arm.wait(lambda: pressed._pressed, "the press")
    policy._operator.permission.set_enabled(False, time.monotonic(), 0.0)
    assert arm.observer.change_state("draft_policy", "activate", DEADLINE_S)
    arm.runs()
    arm.wait(lambda: bool(arm.states) and arm.states[-1].stopped, "the stop")
    arm.nodes.wait_s(1.0)
    assert arm.states[-1].stopped


def test_a_deadman_that_stood_still_presses_no_more(arm: Arm) -> None:
    arm.policy(values={"safety.require_enable": True})
    arm.runs()
    pressed = deadman(arm)
    arm.moves()
    pressed._ran_s -= 2.0
    arm.wait(lambda: arm.states[-1].at_rest, "the hold")
    arm.nodes.wait_s(1.0)
    assert not arm.states[-1].enabled
    assert pressed.late_s > 2.0
