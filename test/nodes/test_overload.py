# SPDX-License-Identifier: Apache-2.0
"""A node with more work than it can do still serves everything else: a stop, or a robot that is new."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.nodes.common.messages import to_joint_state
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.nodes.robot.kept_messages import MessageIntake
from adahi_ros.nodes.server.request_scheduler import RequestScheduler
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.robot.loop import ControlLoop
from test.ball_contract import ball_contract
from test.nodes.in_process import DEADLINE_S, NodesInProcess

WORK_S = 0.1  # of one step, or of one batch
PERIOD_S = 0.01  # between what asks for it
OVERLOAD_S = 2.0
ROBOTS = 20
SOON_S = 1.0  # where everything waited in one line, it would be after `OVERLOAD_S` of more and more


def overload(nodes: NodesInProcess, act: Callable[[], object]) -> None:
    """Do something every `PERIOD_S` for `OVERLOAD_S`, and continue with it."""
    nodes.every(PERIOD_S, act)
    nodes.wait_s(OVERLOAD_S)


def takes_s(nodes: NodesInProcess, client: Any, request: Any) -> float:
    """Return how long a call takes."""
    started_s = time.monotonic()
    nodes.call(client, request)
    return time.monotonic() - started_s


def test_a_robot_whose_steps_take_too_long_is_stopped_soon(
    nodes: NodesInProcess, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, steps = ControlLoop.step, []

    def slow(loop: ControlLoop, observation: Any) -> None:
        steps.append(observation)
        time.sleep(WORK_S)
        step(loop, observation)

    monkeypatch.setattr(ControlLoop, "step", slow)
    values = {"gate.name": "never", "verifier_wait_s": 0.0, "safety.require_enable": False}
    values["safety.limits"] = "none"
    values["contract"] = ball_contract(max_age_s=5.0)
    nodes.spin(nodes.start(DraftPolicyNode, {"checkpoint": str(exported / "draft"), **values}))
    node = nodes.observer.node
    joints_out = node.create_publisher(JointState, "joint_states", 10)
    state_out = node.create_publisher(TaskState, "task_state", 10)
    stop = node.create_client(SetBool, "draft_policy/set_enabled")

    def show() -> None:
        stamp = node.get_clock().now().nanoseconds
        names = ("plate_roll_joint", "plate_pitch_joint")
        joints_out.publish(to_joint_state(names, np.zeros(2), np.zeros(2), stamp))
        state_out.publish(to_task_state(np.zeros(4), np.zeros(2), 1, len(steps), stamp))

    overload(nodes, show)
    assert len(steps) > 3
    assert takes_s(nodes, stop, SetBool.Request(data=False)) < SOON_S


def test_a_verifier_with_too_many_requests_describes_its_target_soon(
    nodes: NodesInProcess, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, batches = RequestScheduler._begin, []

    def slow(scheduler: RequestScheduler, turns: list[Any]) -> None:
        batches.append(len(turns))
        time.sleep(WORK_S)
        begin(scheduler, turns)

    monkeypatch.setattr(RequestScheduler, "_begin", slow)
    values = {"checkpoint": str(exported / "target"), "batch.quota_hz": 0.0}
    nodes.spin(nodes.start(TargetVerifierNode, values))
    node = nodes.observer.node
    asking = node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos("best_effort"))
    describing = node.create_client(DescribeTarget, "describe_target")
    assert takes_s(nodes, describing, DescribeTarget.Request()) < DEADLINE_S
    numbers = count()
    overload(
        nodes, lambda: asking.call_async(VerifyDraft.Request(robot_id=f"robot {next(numbers) % ROBOTS}"))
    )
    assert len(batches) > 3
    assert takes_s(nodes, describing, DescribeTarget.Request()) < SOON_S


def test_of_each_topic_the_newest_messages_are_kept_in_their_order() -> None:
    taken: list[tuple[str, object]] = []
    tasks: list[Callable[[], None]] = []
    node: Any = SimpleNamespace(executor=SimpleNamespace(create_task=tasks.append))
    intake = MessageIntake(node, lambda: True, lambda *message: taken.append(message))
    intake.pause()
    for topic, message in (("a", 1), ("b", 2), ("a", 3), ("a", 4)):
        intake.receive(topic, message, 2)
    assert taken == []
    (serve,) = tasks
    serve()
    assert taken == [("b", 2), ("a", 3), ("a", 4)]
