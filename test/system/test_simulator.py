"""The simulator between its topics, commanded by the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import EpisodeResult, TaskState
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.run_record import EpisodeRecord, episode_record_from_message
from adahi_lab.tasks import TASKS, demonstrations, make
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.nodes.common.messages import from_stamp, to_image
from test.commands import trajectory
from test.system.stage import BEST_EFFORT, DEEP, Stage

SEED = 4
FIRST_EPISODE = 6


class Pilot:
    """Sees the states, sends the commands."""

    def __init__(self, stage: Stage, **parameters: Any) -> None:
        self.stage = stage
        self.names = make("ball").spec.joint_names
        kept = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.states: list[TaskState] = stage.received(TaskState, "task_state", BEST_EFFORT)
        self.joints: list[JointState] = stage.received(JointState, "joint_states", BEST_EFFORT)
        self.results: list[EpisodeResult] = stage.received(EpisodeResult, "episode_result", kept)
        self.command_out = stage.node.create_publisher(JointTrajectory, "command", DEEP)
        self.process = stage.start_simulator(seed=SEED, first_episode=FIRST_EPISODE, **parameters)
        stage.processes.may_end = self.process

    def state(self, episode: int, step: int) -> TaskState:
        """Wait for a state."""
        self.stage.wait(lambda: self._is_newest(episode, step), f"state {step} of episode {episode}")
        return self.states[-1]

    def send(self, names: Sequence[str], positions: np.ndarray, stamp_ns: int) -> None:
        self.command_out.publish(trajectory(names, positions, stamp_ns))

    def await_states(self, count: int, what: str) -> None:
        """Wait for so many states from now on."""
        most = len(self.states) + count
        self.stage.wait(lambda: len(self.states) >= most, what)

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
            (names, good, -10_000_000_000),  # belongs to a state that is long past
            (names, good, 10_000_000_000),  # to one that is not there yet
        ]
    ):
        stamp = from_stamp(pilot.state(FIRST_EPISODE, 0).header.stamp)
        pilot.send(bad_names, positions, stamp + delay_ns)
        pilot.await_states(2, f"state after command {index}")
        assert pilot.states[-1].step_id == 0
    empty = trajectory(names, good, from_stamp(pilot.states[-1].header.stamp))
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


def test_lockstep(stage: Stage) -> None:
    """States are repeated, garbage moves nothing, good commands move the task, and it ends by itself."""
    pilot = Pilot(stage, episodes=2, lockstep=True, command_timeout_s=0.1)
    see_the_state_repeated(pilot)
    send_garbage(pilot)
    fly(pilot, FIRST_EPISODE)
    fly(pilot, FIRST_EPISODE + 1)
    output = stage.await_end(pilot.process)
    assert "ignored command" in output
    assert "must be finite" in output


def test_real_time(stage: Stage) -> None:
    """The clock starts with a command, and without a new one the joints hold still."""
    pilot = Pilot(stage)
    references = stage.received(JointState, "controller_reference")
    good = np.array([0.05, -0.1])
    stage.wait(lambda: pilot.command_out.get_subscription_count() > 0, "simulator's subscription")
    stamp = from_stamp(pilot.state(FIRST_EPISODE, 0).header.stamp)
    pilot.send(pilot.names, good, stamp + 3_600_000_000_000)
    stage.wait(lambda: "ignored command" in pilot.process.output, "warning of a command from the future")
    assert "s in the future, must be at most 0.15 s" in pilot.process.output
    pilot.await_states(3, "states after it")
    assert pilot.states[-1].step_id == 0
    pilot.send(pilot.names, good, 0)
    stage.wait(lambda: "holding still" in pilot.process.output, "warning of no command")
    assert pilot.states[-1].step_id > 0
    stage.wait(lambda: bool(references), "the controller's set point")
    assert list(references[0].position) == good.tolist()
    assert list(references[0].name) == list(pilot.names)
    stage.end(pilot.process)


# Demonstrations

NOISE = 0.5  # as much as makes some episodes fail
EPISODES = 4
SPEED = 20.0


class Recorder:
    """Keeps everything that a demonstration shows, until it is over."""

    def __init__(self, stage: Stage, task: str, episodes: int, **parameters: Any) -> None:
        self.stage = stage
        self.episodes = episodes
        self.world = make(task)
        self.interface = JointTrajectorySink()
        self.kept: dict[str, list[Any]] = {}
        every = QoSProfile(history=HistoryPolicy.KEEP_ALL)
        self._subscriptions = [
            stage.node.create_subscription(kind, topic, self.kept.setdefault(topic, []).append, every)
            for topic, kind in {
                "joint_states": JointState,
                "task_state": TaskState,
                "command": JointTrajectory,
                "/clock": Clock,
                "episode_result": EpisodeResult,
            }.items()
        ]
        shown = {"task": task, "seed": SEED, "episodes": episodes, "demonstrate": True}
        self.process = stage.start_simulator(**shown, wait_for_subscribers=1, **parameters)
        stage.await_end(self.process)
        stage.wait(self._is_whole, "what the simulator sent last")  # it may be over before all is read here
        for subscription in self._subscriptions:
            stage.node.destroy_subscription(subscription)

    def _is_whole(self) -> bool:
        results = self.kept["episode_result"]
        counts = [len(self.kept[topic]) for topic in ("joint_states", "task_state", "command")]
        return len(results) == self.episodes and min(counts) >= sum(result.steps for result in results)

    @property
    def observations(self) -> np.ndarray:
        rows = [
            [*joints.position, *state.state]
            for joints, state in zip(self.kept["joint_states"], self.kept["task_state"], strict=True)
        ]
        return np.array(rows).astype(np.float32)

    @property
    def actions(self) -> np.ndarray:
        spec = self.world.spec
        rows = [
            self.interface.action(command, spec.commanded, spec.command_field)
            for command in self.kept["command"]
        ]
        return np.array(rows).astype(np.float32)

    @property
    def results(self) -> list[EpisodeRecord]:
        return [episode_record_from_message(result) for result in self.kept["episode_result"]]

    def stamps(self, topic: str) -> list[int]:
        return [from_stamp(message.header.stamp) for message in self.kept[topic]]


class Forgiving:
    """A task that calls every episode a success where it is asked from outside, so that all are kept."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    @property
    def success(self) -> np.ndarray:
        return np.ones_like(self.task.success)


def collected(task: str) -> tuple[Trajectories, list[bool]]:
    """Return what `adahi data simulate` would record, and which episodes succeeded."""
    world = Forgiving(make(task))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstrations, "make", lambda name: world)
        recorded = collect_parallel(task, EPISODES, SEED, NOISE, workers=1).trajectories
    return recorded, world.task.success.tolist()


def test_a_demonstration_is_bit_for_bit_what_collect_records(stage: Stage) -> None:
    expected, success = collected("ball")
    assert True in success
    assert False in success
    shown = Recorder(stage, "ball", episodes=EPISODES, action_noise=NOISE, speed=SPEED)
    np.testing.assert_array_equal(shown.observations, expected.observations)
    np.testing.assert_array_equal(shown.actions, expected.actions)
    goals = [shown.kept["task_state"][start].goal for start, _ in expected.spans()]
    np.testing.assert_array_equal(np.array(goals).astype(np.float32), expected.goals)
    lengths = [end - start for start, end in expected.spans()]
    assert shown.results == [EpisodeRecord(e, lengths[e], success[e]) for e in range(EPISODES)]
    numbers = [(state.episode_id, state.step_id) for state in shown.kept["task_state"]]
    assert numbers == [(e, step) for e in range(EPISODES) for step in range(lengths[e])]


def test_simulated_time_passes_a_control_period_per_step(stage: Stage) -> None:
    shown = Recorder(stage, "ball", episodes=2, action_noise=0.1, speed=SPEED)
    period_ns = round(1e9 / shown.world.spec.control_rate_hz)
    stamps = shown.stamps("task_state")
    assert stamps == [(step + 1) * period_ns for step in range(len(stamps))]
    assert shown.stamps("joint_states") == shown.stamps("command") == stamps
    assert {from_stamp(tick.clock) for tick in shown.kept["/clock"]} <= {*stamps, stamps[-1] + period_ns}
    assert shown.kept["/clock"]


def test_at_speed_one_time_is_the_machines(stage: Stage) -> None:
    before = stage.node.get_clock().now().nanoseconds
    shown = Recorder(stage, "ball", episodes=1, action_noise=0.0)
    stamps = shown.stamps("command")
    assert stamps == shown.stamps("task_state") == shown.stamps("joint_states") == sorted(set(stamps))
    assert before < stamps[0] < stamps[-1] < stage.node.get_clock().now().nanoseconds
    assert not shown.kept["/clock"]


def test_it_begins_without_the_subscribers_that_do_not_come(stage: Stage) -> None:
    process = stage.start_simulator(
        episodes=1, demonstrate=True, wait_for_subscribers=9, subscribers_wait_s=0.1
    )
    stage.processes.may_end = process
    stage.wait(lambda: "episode 0: success" in process.output, "end of the episode")
    assert "wait_for_subscribers: 9, begins without" in process.output
    stage.end(process)


@pytest.mark.parametrize(("name", "value"), [("demonstrate", True), ("speed", 2.0)])
def test_lockstep_waits_for_commands_and_for_nothing_else(stage: Stage, name: str, value: Any) -> None:
    process = stage.start_simulator(lockstep=True, **{name: value})
    assert "error: lockstep: True, must be false with demonstrate" in stage.await_end(process, 1)


def test_an_image_message_holds_the_pixels_row_by_row() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    message = to_image(pixels, 7)
    assert (message.height, message.width, message.step, message.encoding) == (2, 3, 9, "rgb8")
    assert bytes(message.data) == pixels.tobytes()
    assert from_stamp(message.header.stamp) == 7
    assert message.header.frame_id == "camera_optical_frame"


@pytest.mark.skipif("ball_camera" not in TASKS, reason="no task has a camera")
def test_a_camera_is_shown_in_place_of_the_state(stage: Stage) -> None:
    world = make("ball_camera")
    world.reset(SEED, [FIRST_EPISODE])
    images: list[Image] = stage.received(Image, "camera/image_raw", BEST_EFFORT)
    pilot = Pilot(stage, task="ball_camera", lockstep=True, wait_for_subscribers=1)

    def image_at(stamp: Any) -> Image:
        stage.wait(lambda: any(image.header.stamp == stamp for image in images), "its image")
        return next(image for image in images if image.header.stamp == stamp)

    for step in range(3):
        state = pilot.state(FIRST_EPISODE, step)
        assert not state.state
        assert list(state.goal) == world.goal[0].tolist()
        stamp = state.header.stamp
        image = image_at(stamp)
        shown = np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, 3)
        np.testing.assert_array_equal(shown, world.images[0])  # type: ignore[attr-defined]
        action = np.array([0.1, -0.05])
        pilot.send(pilot.names, action, from_stamp(stamp))
        world.step(action[None])
    stage.end(pilot.process)
