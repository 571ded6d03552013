"""A node that gets no observation logs why, by topics and names: a misspelt one is silent otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from rcl_interfaces.msg import Log
from sensor_msgs.msg import JointState

from test.nodes.in_process import NodesInProcess
from test.nodes.test_other_publishers import JOINTS, Arm


@pytest.fixture
def arm(nodes: NodesInProcess, exported: Path) -> Iterator[Arm]:
    with closing(Arm(nodes, exported / "draft")) as arm:
        yield arm


@pytest.fixture
def said(arm: Arm) -> list[str]:
    """What all nodes log."""
    lines: list[str] = []

    def on_log(log: Log) -> None:
        lines.append(log.msg)

    arm.observer.node.create_subscription(Log, "/rosout", on_log, 100)
    return lines


def test_a_driver_that_spells_all_joints_otherwise_is_named(arm: Arm, said: list[str]) -> None:
    names = [f"{name}_1" for name in JOINTS]
    arm.nodes.every(0.05, lambda: arm.measure(arm.driver, names=names))
    arm.nodes.every(0.05, arm.step)
    arm.policy()
    fault = f"joint_states.name: {names}, has none of {[*JOINTS]} (did you mean '{names[0]}'?)"
    arm.wait(lambda: f"no observation: {fault}" in said, "names")


def test_a_misspelt_topic_is_named_with_the_one_that_is_there(arm: Arm, said: list[str]) -> None:
    other = arm.node("arm_driver").create_publisher(JointState, "joint_state", 10)
    assert arm.driver.topic_name == "/joint_states"
    arm.driver.destroy()
    arm.nodes.every(0.05, lambda: arm.measure(other))
    arm.policy()
    fault = "/joint_states has no publisher; there is /joint_state (/arm_driver)"
    silent = "/task_state: /watcher publishes it, but no message arrives"
    arm.wait(lambda: f"no observation: {fault}; {silent}" in said, "both topics")
