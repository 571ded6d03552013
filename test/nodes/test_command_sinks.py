"""Where commands leave the robot's node, by names as a node expands and remaps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from rclpy.lifecycle import LifecycleNode

from adahi_ros.contract.commanded import commanded_by_sink
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.launching.domain import exclusive_domain
from adahi_ros.nodes.launching.observer import Observer
from adahi_ros.nodes.robot.command_sinks import open_sinks


def half(topic: str, joint: str) -> dict[str, Any]:
    channel = {"topic": topic, "type": "trajectory_msgs/msg/JointTrajectory"}
    return {"channel": channel, "select": [f"positions.{joint}"]}


STATES = {"topic": "joint_states", "type": "sensor_msgs/msg/JointState"}


@pytest.fixture(scope="module")
def observer() -> Iterator[Observer]:
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        yield observer
        observer.close()


@pytest.mark.parametrize(
    ("right", "arguments", "shared"),
    [
        ("right/command", ["-r", "left/command:=right/command"], "/r1/right/command"),
        ("/r1/left/command", [], "/r1/left/command"),
        ("/r2/left/command", [], None),
        ("right/command", [], None),
    ],
)
def test_two_actions_may_not_meet_on_one_topic(
    observer: Observer, right: str, arguments: list[str], shared: str | None
) -> None:
    contract = parse_contract(
        {
            "robot_type": "two_arms",
            "fps": 20,
            "observations": {"observation.state": {"channel": STATES, "select": ["position.a"]}},
            "actions": {"left": half("left/command", "a"), "right": half(right, "b")},
        }
    )
    parts = commanded_by_sink(contract.action, [], "positions")
    with ExitStack() as opened:
        node = LifecycleNode(
            "robot", namespace="/r1", context=observer.context, cli_args=["--ros-args", *arguments]
        )
        opened.callback(node.destroy_node)
        if shared is None:
            sinks = open_sinks(node, contract, parts, "by_contract", "", opened)
            assert len(sinks) == 2
            return
        said = f"^left.channel.topic: 'left/command' and '{right}' of right, both '{shared}', must be one"
        with pytest.raises(ParameterError, match=said):
            open_sinks(node, contract, parts, "by_contract", "", opened)
