"""The simulator moved by every kind of command that fits its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import TaskState
from rclpy.qos import HistoryPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from adahi_lab.nodes.command_inputs import INTERFACES
from adahi_lab.tasks import make, make_expert
from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.sinks import message_sink
from adahi_ros.contract.sinks.interface import Command
from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.nodes.common.qos import command_qos, message_type, new_message
from test.system.stage import BEST_EFFORT, Stage

SEED = 5
MOVED = [
    ("ball", "joint_trajectory"),
    ("ball", "forward_command"),
    ("kitchen", "forward_command"),
    ("kitchen", "joint_jog"),
]


class Controller:
    """Sees a simulator's states and sends it commands of one kind."""

    def __init__(self, stage: Stage, task: str, interface: str, **parameters: Any) -> None:
        self.stage = stage
        self.world = make(task)
        self.world.reset(SEED, [0])
        spec = self.world.spec
        self.names, self.field = spec.commanded, spec.command_field
        self.interface = message_sink(INTERFACES[interface], Commanded.alike(self.names, self.field))
        self.states: list[TaskState] = []
        self.subscription = stage.node.create_subscription(
            TaskState, "task_state", self.states.append, BEST_EFFORT
        )
        self.publisher = stage.node.create_publisher(
            message_type(self.interface.kind), "command", command_qos()
        )
        self.process = stage.start_simulator(task=task, seed=SEED, command_interface=interface, **parameters)
        stage.wait(lambda: self.publisher.get_subscription_count() > 0, "simulator's subscription")

    def wait_for(self, step: int) -> TaskState:
        self.stage.wait(lambda: bool(self.states) and self.states[-1].step_id >= step, f"state {step}")
        return self.states[-1]

    def send(self, action: np.ndarray, stamp_ns: int) -> None:
        command = Command(self.names, self.field, action, 0.05, stamp_ns)
        self.publisher.publish(self.interface.message(command, new_message))


@contextmanager
def controlled(stage: Stage, task: str, interface: str, **parameters: Any) -> Iterator[Controller]:
    controller = Controller(stage, task, interface, **parameters)
    yield controller
    stage.end(controller.process)
    stage.node.destroy_subscription(controller.subscription)
    stage.node.destroy_publisher(controller.publisher)


@pytest.mark.parametrize(("task", "interface"), MOVED)
def test_in_lockstep_each_command_is_one_step_of_the_world(stage: Stage, task: str, interface: str) -> None:
    with controlled(stage, task, interface, lockstep=True) as controller:
        world = controller.world
        for step in range(4):
            state = controller.wait_for(step)
            np.testing.assert_array_equal(state.state, world.state[0])
            action = 0.1 * np.cos(step + np.arange(world.spec.action_dim))
            controller.send(action, from_stamp(state.header.stamp))
            world.step(action[None])
        controller.wait_for(4)
        assert "ignored" not in controller.process.output


def test_a_command_that_names_no_state_is_executed_at_once(stage: Stage) -> None:
    """In real time, where the first command sets the clock going."""
    with controlled(stage, "kitchen", "joint_jog") as controller:
        assert controller.wait_for(0).step_id == 0
        controller.send(np.full(controller.world.spec.action_dim, 0.1), 0)
        controller.wait_for(1)
        assert "ignored" not in controller.process.output


def test_in_lockstep_a_command_that_names_no_state_is_no_step(stage: Stage) -> None:
    """A policy that holds its robot says so again and again; that is nothing to warn of."""
    with controlled(stage, "ball", "joint_trajectory", lockstep=True, command_timeout_s=0.05) as controller:
        controller.wait_for(0)
        controller.send(np.array([0.1, 0.1]), 0)
        seen = len(controller.states)
        stage.wait(lambda: len(controller.states) > seen + 2, "states after it")
        assert controller.states[-1].step_id == 0
        controller.send(np.array([0.1, 0.1]), from_stamp(controller.states[-1].header.stamp))
        controller.wait_for(1)
        assert controller.states[-1].step_id == 1
        assert "ignored" not in controller.process.output


def test_an_expert_says_what_it_wants_by_any_interface(stage: Stage) -> None:
    world, expert = make("ball"), make_expert("ball")
    world.reset(SEED, [0])
    expert.reset(SEED, [0])
    wanted = []
    while not world.done[0]:
        wanted.append(expert.act(world)[0].tolist())
        world.step(np.array(wanted[-1:]))
    kept: dict[str, list[Any]] = {"joint_states": [], "task_state": [], "command": []}
    kinds = dict(zip(kept, (JointState, TaskState, Float64MultiArray), strict=True))
    every = QoSProfile(history=HistoryPolicy.KEEP_ALL)
    subscriptions = [
        stage.node.create_subscription(kinds[topic], topic, messages.append, every)
        for topic, messages in kept.items()
    ]
    process = stage.start_simulator(
        seed=SEED,
        demonstrate=True,
        action_noise=0.0,
        speed=20.0,
        wait_for_subscribers=1,
        command_interface="forward_command",
    )
    stage.wait(lambda: len(kept["command"]) >= len(wanted), "commands")
    stage.end(process)
    for subscription in subscriptions:
        stage.node.destroy_subscription(subscription)
    assert [list(command.data) for command in kept["command"][: len(wanted)]] == wanted


@pytest.mark.parametrize(
    ("task", "interface", "words"),
    [
        ("kitchen", "twist", ["TwistStamped", "panda_joint1", "linear.x"]),
        ("ball", "twist", ["TwistStamped has positions, must have velocities"]),
        ("ball", "telepathy", ["command_interface: 'telepathy'", "one of joint_trajectory"]),
    ],
)
def test_a_command_that_does_not_fit_the_task_is_reported_in_a_line(
    stage: Stage, task: str, interface: str, words: list[str]
) -> None:
    process = stage.start_simulator(task=task, command_interface=interface)
    output = stage.await_end(process, 1)
    assert [line for line in output.splitlines() if line.startswith("error: ")]
    assert all(word in output for word in words), output
