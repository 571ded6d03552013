# SPDX-License-Identifier: Apache-2.0
"""A node with more work than it can do still serves everything else: a stop, or a robot that is new."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import TaskState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from adahi_ros.lab.nodes.domain import exclusive_domain
from adahi_ros.lab.nodes.observer import Observer
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.managed import started
from adahi_ros.nodes.common.messages import to_joint_state, to_task_state
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.nodes.robot.kept_messages import KeptMessages
from adahi_ros.nodes.server.request_scheduler import RequestScheduler
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.robot.loop import ControlLoop

DEADLINE_S = 30.0
WORK_S = 0.1  # of one step, or of one batch
PERIOD_S = 0.01  # between what asks for it
OVERLOAD_S = 2.0
ROBOTS = 20
SOON_S = 1.0  # where everything waited in one line, it would be after `OVERLOAD_S` of more and more


class Overloaded:
    """A node that spins in a thread of its own, and what publishes to it."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def spin(self, node: Any) -> None:
        executor = executor_of(node)

        def spin() -> None:
            while not self._over.is_set():
                executor.spin_once(0.05)
            executor.shutdown()
            node.destroy_node()

        self._threads.append(threading.Thread(target=spin))
        self._threads[-1].start()

    def every(self, act: Any) -> None:
        """Do something every `PERIOD_S` for `OVERLOAD_S`, and go on with it."""

        def go_on() -> None:
            while not self._over.wait(PERIOD_S):
                act()

        self._threads.append(threading.Thread(target=go_on))
        self._threads[-1].start()
        end_s = time.monotonic() + OVERLOAD_S
        self.observer.wait_until(lambda: time.monotonic() > end_s, DEADLINE_S, "load")

    def takes_s(self, client: Any, request: Any) -> float:
        """Return how long a call takes."""
        begun_s = time.monotonic()
        self.observer.call(client, request, DEADLINE_S)
        return time.monotonic() - begun_s

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def overloaded() -> Iterator[Overloaded]:
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        overloaded = Overloaded(observer)
        yield overloaded
        overloaded.close()
        observer.close()


def start(kind: Any, overloaded: Overloaded, values: dict[str, Any]) -> None:
    overrides = [Parameter(name, value=value) for name, value in {"autostart": True, **values}.items()]
    context = overloaded.observer.context
    overloaded.spin(
        started(partial(kind, context=context, use_global_arguments=False, parameter_overrides=overrides))
    )


def test_a_robot_whose_steps_take_too_long_is_stopped_soon(
    overloaded: Overloaded, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, steps = ControlLoop.observe, []

    def slow(loop: ControlLoop, observation: Any) -> None:
        steps.append(observation)
        time.sleep(WORK_S)
        observe(loop, observation)

    monkeypatch.setattr(ControlLoop, "observe", slow)
    values = {"gate.name": "never", "verifier_wait_s": 0.0, "max_age_s": 5.0}
    start(DraftPolicyNode, overloaded, {"checkpoint": str(exported / "draft"), **values})
    node = overloaded.observer.node
    joints_out = node.create_publisher(JointState, "joint_states", 10)
    state_out = node.create_publisher(TaskState, "task_state", 10)
    stop = node.create_client(SetBool, "draft_policy/set_enabled")

    def show() -> None:
        stamp = node.get_clock().now().nanoseconds
        names = ("plate_roll_joint", "plate_pitch_joint")
        joints_out.publish(to_joint_state(names, np.zeros(2), np.zeros(2), stamp))
        state_out.publish(to_task_state(np.zeros(4), np.zeros(2), 1, len(steps), stamp))

    overloaded.every(show)
    assert len(steps) > 3
    assert overloaded.takes_s(stop, SetBool.Request(data=False)) < SOON_S


def test_a_verifier_with_too_many_requests_describes_its_target_soon(
    overloaded: Overloaded, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, batches = RequestScheduler._begin, []

    def slow(scheduler: RequestScheduler, turns: list[Any]) -> None:
        batches.append(len(turns))
        time.sleep(WORK_S)
        begin(scheduler, turns)

    monkeypatch.setattr(RequestScheduler, "_begin", slow)
    start(TargetVerifierNode, overloaded, {"checkpoint": str(exported / "target"), "batch.quota_hz": 0.0})
    node = overloaded.observer.node
    asking = node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos("best_effort"))
    describing = node.create_client(DescribeTarget, "describe_target")
    assert overloaded.takes_s(describing, DescribeTarget.Request()) < DEADLINE_S
    numbers = count()
    overloaded.every(
        lambda: asking.call_async(VerifyDraft.Request(robot_id=f"robot {next(numbers) % ROBOTS}"))
    )
    assert len(batches) > 3
    assert overloaded.takes_s(describing, DescribeTarget.Request()) < SOON_S


def test_of_each_topic_the_newest_messages_are_kept_in_their_order() -> None:
    kept = KeptMessages()
    for topic, message in (("a", 1), ("b", 2), ("a", 3), ("a", 4)):
        kept.add(topic, message, 2)
    assert [kept.pop() for _ in range(len(kept))] == [("b", 2), ("a", 3), ("a", 4)]
