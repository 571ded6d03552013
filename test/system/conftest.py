"""Real nodes in processes of their own, over DDS, in a domain that no other test has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus, TaskState
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.child_processes import NodeProcess, NodeProcesses, node_processes
from adahi_ros.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.messages import from_stamp, from_status, to_joint_state, to_task_state
from adahi_ros.nodes.observer import Observer
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.records import StepRecord

DEADLINE_S = 30.0  # only a broken node is slower
JOINTS = ("plate_roll_joint", "plate_pitch_joint")


class Stage:
    """A domain with the processes in it, and a place to watch them from."""

    def __init__(self, domain: int, observer: Observer, processes: NodeProcesses) -> None:
        self.domain = domain
        self.observer = observer
        self.processes = processes

    @property
    def node(self) -> Any:
        return self.observer.node

    def start(self, module: str, **parameters: Any) -> NodeProcess:
        """Start a node; a double underscore in a parameter's name stands for a dot."""
        named = {name.replace("__", "."): value for name, value in parameters.items()}
        return self.processes.start(module, named)

    def check(self) -> None:
        """Raise if a node has ended that nobody ended."""
        self.processes.check()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        self.observer.wait_until(done, DEADLINE_S, what, self.check)

    def call(self, client: Any, request: Any) -> Any:
        return self.observer.call(client, request, DEADLINE_S, self.check)

    def change_state(self, label: str) -> bool:
        return self.observer.change_state("draft_policy", label, DEADLINE_S, self.check)


class Robot:
    """What a robot shows to the draft policy, and what it is told by it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.commands: list[JointTrajectory] = []
        self.steps: list[StepRecord] = []
        node, deep = stage.node, QoSProfile(depth=1000)
        kept = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.joints_out = node.create_publisher(JointState, "joint_states", deep)
        self.state_out = node.create_publisher(TaskState, "task_state", deep)
        node.create_subscription(JointTrajectory, "command", self.commands.append, deep)
        node.create_subscription(
            DraftStatus, "draft_status", lambda message: self.steps.append(from_status(message)), kept
        )

    def now(self) -> int:
        return int(self.stage.node.get_clock().now().nanoseconds)

    def joints(self, stamp_ns: int) -> JointState:
        return to_joint_state(JOINTS, np.array([0.01, -0.02]), np.zeros(2), stamp_ns)

    def state(self, episode: int, step: int, stamp_ns: int) -> TaskState:
        return to_task_state(np.full(4, 0.01 * step), np.array([0.1, 0.1]), episode, step, stamp_ns)

    def show(self, episode: int, step: int) -> int:
        """Publish one observation; return its stamp."""
        stamp = self.now()
        self.joints_out.publish(self.joints(stamp))
        self.state_out.publish(self.state(episode, step, stamp))
        return stamp

    def answer_to(self, episode: int, step: int) -> StepRecord:
        """Wait for the record of a step."""

        def found() -> list[StepRecord]:
            return [record for record in self.steps if (record.episode, record.step) == (episode, step)]

        self.stage.wait(lambda: bool(found()), f"status of step {step}")
        return found()[0]

    def command_to(self, stamp_ns: int) -> tuple[float, ...]:
        """Wait for the command that answers an observation; return its positions as float32."""

        def found() -> list[JointTrajectory]:
            return [command for command in self.commands if from_stamp(command.header.stamp) == stamp_ns]

        self.stage.wait(lambda: bool(found()), "command")
        return tuple(map(float, np.float32(found()[0].points[0].positions)))

    def show_until_answered(self, episode: int) -> None:
        """Show step 0 of an episode again and again: until discovery is through, nobody may hear it."""
        next_show = 0

        def answered() -> bool:
            nonlocal next_show
            if self.now() >= next_show:
                self.show(episode, 0)
                next_show = self.now() + 200_000_000
            return any(record.episode == episode for record in self.steps)

        self.stage.wait(answered, "first status")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """An empty domain."""
    with exclusive_domain() as domain, node_processes(loopback_environment(domain)) as processes:
        observer = Observer(domain, "test")
        try:
            yield Stage(domain, observer, processes)
        finally:
            observer.close()


@pytest.fixture(scope="module")
def make_robot() -> Callable[[Stage], Robot]:
    """From a stage to a robot on it."""
    return Robot


@pytest.fixture(scope="session")
def exported(checkpoints: Path) -> Path:
    """`checkpoints`, exported before a node has to."""
    for name in ("draft", "target"):
        load_policy(checkpoints / name, "onnxruntime")
    return checkpoints
