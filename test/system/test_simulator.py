"""The simulator between its topics, commanded by the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import EpisodeResult, TaskState
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.messages import from_stamp, to_command
from adahi_ros.nodes.robot_simulator_node import RobotSimulatorNode
from adahi_ros.tasks import make, names

SEED = 4
STILL_RAD = {"ball": 1e-12, "kitchen": 0.2}  # in half a second; the kitchen's arm sinks under its weight
FIRST_EPISODE = 6


class Pilot:
    """Sees the states, sends the commands."""

    def __init__(self, stage: Any, **parameters: Any) -> None:
        self.stage = stage
        self.names = make("ball").spec.joint_names
        self.states: list[TaskState] = []
        self.joints: list[JointState] = []
        self.results: list[EpisodeResult] = []
        deep = QoSProfile(depth=1000)
        kept = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        best_effort = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
        stage.node.create_subscription(TaskState, "task_state", self.states.append, best_effort)
        stage.node.create_subscription(JointState, "joint_states", self.joints.append, best_effort)
        stage.node.create_subscription(EpisodeResult, "episode_result", self.results.append, kept)
        self.command_out = stage.node.create_publisher(JointTrajectory, "command", deep)
        self.process = stage.start(
            "robot_simulator_node",
            seed=SEED,
            first_episode=FIRST_EPISODE,
            **parameters,
        )
        stage.processes.may_end = self.process

    def state(self, episode: int, step: int) -> TaskState:
        """Wait for a state."""
        self.stage.wait(lambda: self._is_newest(episode, step), f"state {step} of episode {episode}")
        return self.states[-1]

    def send(self, names: Sequence[str], positions: np.ndarray, stamp_ns: int) -> None:
        self.command_out.publish(to_command(names, "positions", positions, 0.05, stamp_ns))

    def _is_newest(self, episode: int, step: int) -> bool:
        newest = self.states[-1:]
        return bool(newest) and (newest[0].episode_id, newest[0].step_id) == (episode, step)


def see_the_state_repeated(pilot: Pilot) -> None:
    first = pilot.state(FIRST_EPISODE, 0)
    pilot.stage.wait(lambda: len(pilot.states) >= 3, "repetition")
    stamps = [from_stamp(state.header.stamp) for state in pilot.states]
    assert stamps == sorted(set(stamps))
    assert all(state.state == first.state for state in pilot.states)
    assert set(stamps) & {from_stamp(state.header.stamp) for state in pilot.joints}


def send_garbage(pilot: Pilot) -> None:
    names, good = pilot.names, np.array([0.05, -0.1])
    pilot.stage.wait(lambda: pilot.command_out.get_subscription_count() > 0, "simulator's subscription")
    for index, (bad_names, positions, delay_ns) in enumerate(
        [
            (names, np.array([math.nan, 0.0]), 0),
            (names, np.array([math.inf, 0.0]), 0),
            (names, np.zeros(1), 0),
            (names[:1], np.zeros(1), 0),
            (("elbow_joint", names[1]), good, 0),
            (names, good, -10_000_000_000),  # answers a state that is long past
            (names, good, 10_000_000_000),  # answers one that is not there yet
        ]
    ):
        stamp = from_stamp(pilot.state(FIRST_EPISODE, 0).header.stamp)
        pilot.send(bad_names, positions, stamp + delay_ns)
        seen = len(pilot.states)
        pilot.stage.wait(lambda seen=seen: len(pilot.states) > seen + 1, f"state after command {index}")
        assert pilot.states[-1].step_id == 0
    empty = to_command(names, "positions", good, 0.05, from_stamp(pilot.states[-1].header.stamp))
    empty.points = []
    pilot.command_out.publish(empty)


def fly(pilot: Pilot, episode: int) -> None:
    """Roll the ball off the plate, step by step beside a world of our own."""
    world = make("ball")
    world.reset(SEED, [episode])
    action = np.array([0.19, 0.2])
    steps = 0
    while not world.done[0]:
        state = pilot.state(episode, steps)
        assert list(state.state) == world.state[0].tolist()
        assert state.header.frame_id == world.spec.frame_id
        assert list(state.goal) == world.goal[0].tolist()
        pilot.send(pilot.names[::-1], action[::-1], from_stamp(state.header.stamp))
        world.step(action[None])
        steps += 1
    number = episode - FIRST_EPISODE
    pilot.stage.wait(lambda: len(pilot.results) > number, "result")
    result = pilot.results[number]
    assert (result.episode_id, result.steps, result.success) == (episode, steps, bool(world.success[0]))


@pytest.mark.parametrize("name", names())
def test_holding_still_is_an_action_of_the_task(name: str) -> None:
    world = make(name)
    simulator: Any = SimpleNamespace(_task=world)
    still = RobotSimulatorNode._standing_still(simulator)
    assert still.shape == (world.spec.action_dim,)
    assert np.all((world.spec.action_low <= still) & (still <= world.spec.action_high))
    world.step(still[None])


@pytest.mark.parametrize("name", STILL_RAD)
def test_holding_still_is_no_motion(name: str) -> None:
    world = make(name)
    world.reset(SEED, [FIRST_EPISODE])
    if name == "ball":  # the plate is level at the start
        for _ in range(5):
            world.step(np.array([[0.1, -0.2]]))
    simulator: Any = SimpleNamespace(_task=world)
    before = world.joint_positions
    still = RobotSimulatorNode._standing_still(simulator)
    np.testing.assert_array_equal(still, before[0] if name == "ball" else np.zeros(9))
    for _ in range(round(0.5 * world.spec.control_rate_hz)):
        world.step(RobotSimulatorNode._standing_still(simulator)[None])
    np.testing.assert_allclose(world.joint_positions, before, atol=STILL_RAD[name])


def test_lockstep(stage: Any) -> None:
    """States are repeated, garbage moves nothing, good commands move the task, and it ends by itself."""
    pilot = Pilot(stage, episodes=2, lockstep=True, command_timeout_s=0.1)
    see_the_state_repeated(pilot)
    send_garbage(pilot)
    fly(pilot, FIRST_EPISODE)
    fly(pilot, FIRST_EPISODE + 1)
    stage.wait(lambda: pilot.process.exit_code is not None, "end")
    stage.processes.all.remove(pilot.process)
    assert pilot.process.exit_code == 0, pilot.process.output
    output = pilot.process.output
    assert "ignored command" in output
    assert "must be finite" in output
    assert "Traceback" not in output


def test_real_time(stage: Any) -> None:
    """The clock starts with a command, and without a new one the joints hold still."""
    pilot = Pilot(stage)
    good = np.array([0.05, -0.1])
    stage.wait(lambda: pilot.command_out.get_subscription_count() > 0, "simulator's subscription")
    stamp = from_stamp(pilot.state(FIRST_EPISODE, 0).header.stamp)
    pilot.send(pilot.names, good, stamp + 3_600_000_000_000)
    stage.wait(lambda: "ignored command" in pilot.process.output, "warning of a command from the future")
    assert "must be that of a state" in pilot.process.output
    seen = len(pilot.states)
    stage.wait(lambda: len(pilot.states) > seen + 2, "states after it")
    assert pilot.states[-1].step_id == 0
    pilot.send(pilot.names, good, from_stamp(pilot.states[-1].header.stamp))
    stage.wait(lambda: "holding still" in pilot.process.output, "warning of no command")
    assert pilot.states[-1].step_id > 0
    stage.processes.all.remove(pilot.process)
    pilot.process.end()
    assert pilot.process.exit_code == 0, pilot.process.output
