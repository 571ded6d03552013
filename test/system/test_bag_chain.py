"""From a recording to a policy that runs, and a report of its run: every command, as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from adahi_msgs.msg import TaskState
from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_lab.datasets.bag_dataset import read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.plain_contract import plain_values
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_ros.bags.bag_reader import read_bag
from adahi_ros.bags.bag_writer import STORAGES
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.recovery import recover
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.messages import to_joint_state, to_stamp
from adahi_ros.policies.backends import load_policy
from test.system.recorder import COMMAND, ENDS_S, RELIABLE, Recorder
from test.system.stage import JOINTS, Stage

EPISODES, SEED = 2, 3
BURST = 2000
UNHURRIED_S = 60.0  # longer than a demonstration: a busy machine may stop the recorder for all of it
LATE_RUN = 100  # s on its clock, and the number of its episode
Record = Callable[..., Recorder]


def adahi(folder: Path, *arguments: object) -> str:
    ended = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def states_in(bag: Path, namespace: str = "") -> list[TaskState]:
    kind = {"task_state": "adahi_msgs/msg/TaskState"}
    return [each.message for each in read_bag(bag, kind, namespace=namespace)]


def steps_in(bag: Path, namespace: str = "") -> list[int]:
    return [state.step_id for state in states_in(bag, namespace)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, recipe_of: Callable[..., str]) -> Path:
    folder = tmp_path_factory.mktemp("chain")
    spec = make("ball").spec
    values = plain_values("ball", 20.0, spec.joint_names, 4, 2, spec.commanded, spec.command_field)
    (folder / "ball.yaml").write_text(yaml.safe_dump({**values, "max_age_s": UNHURRIED_S}))
    (folder / "recipe.yaml").write_text(recipe_of(60, draft=20, target=40))
    return folder


@pytest.fixture(scope="module")
def record(folder: Path, recorders: Callable[..., Recorder]) -> Record:
    """From the name of a bag and options to a recorder of the contract."""
    return lambda out, *options: recorders(folder, "--contract", "ball.yaml", "--out", out, *options)


@pytest.fixture(scope="module")
def demonstrated(stage: Stage, folder: Path, record: Record) -> Path:
    """A bag of the expert, twenty times as fast as it acts."""
    recorder = record("demonstrations", "--use-sim-time")
    simulator = stage.start_simulator(
        task="ball",
        seed=SEED,
        episodes=EPISODES,
        demonstrate=True,
        speed=20.0,
        wait_for_subscribers=1,
        qos_overrides=RELIABLE,
    )
    stage.await_end(simulator)
    output = recorder.end()
    assert "demonstrations: " in output
    assert "Traceback" not in output
    return folder / "demonstrations"


@pytest.fixture(scope="module")
def trained(demonstrated: Path, folder: Path) -> str:
    """What calibration said of policies that were trained on the bag."""
    made = adahi(folder, "data", "from-bag", demonstrated, "--contract", "ball.yaml", "--out", "data")
    assert f"ball: {EPISODES} episodes" in made
    adahi(folder, "train", "ball", "--data", "data", "--recipe", "recipe.yaml", "--out", "policies")
    return adahi(
        folder,
        *("thresholds", "--bag", demonstrated, "--contract", "ball.yaml", "--draft", "policies/draft"),
        *("--rate", 0.5, "--out", "params.yaml", "--picture", "calibration.png"),
    )


def test_a_recorded_demonstration_is_what_collecting_it_gives(trained: str, folder: Path) -> None:
    data = Trajectories.load(folder / "data/trajectories.safetensors")
    same = collect_parallel("ball", EPISODES, SEED, 0.1, workers=1).trajectories
    for name in ("observations", "actions", "goals", "ends"):
        assert getattr(data, name).tobytes() == getattr(same, name).tobytes(), name
    summary = json.loads((folder / "data/dataset.json").read_text())
    assert summary["faults"] == {}
    assert not any(summary["left_out"].values())


def test_the_recording_is_replayed_without_a_robot(trained: str, demonstrated: Path, folder: Path) -> None:
    output = adahi(
        folder,
        *("bag", "evaluate", demonstrated, "--params", "params.yaml", "--figure", "replay.png"),
        *("--json", "replay.json"),
    )
    assert "modelled" in output
    methods = json.loads((folder / "replay.json").read_text())["methods"]
    assert methods["adahi"]["transmission_rate"] == pytest.approx(0.5, abs=0.1)
    assert methods["adahi"]["modelled_latency_ms"]["mean"] < methods["hybrid"]["modelled_latency_ms"]["mean"]


def test_the_policies_run_on_the_robot_and_their_run_is_reported(
    trained: str, stage: Stage, folder: Path, record: Record
) -> None:
    recorder = record("run")
    values = yaml.safe_load((folder / "params.yaml").read_text())["/**"]["ros__parameters"]
    settings = {name: value for name, value in values.items() if name != "calibration"}
    stage.start("target_verifier_node", checkpoint=str(folder / "policies/target"))
    patient = {"deadline_s": 5.0, "safety__hold_after_s": 60.0, "safety__require_enable": False}
    stage.start("draft_policy_node", **settings, **patient, command__lockstep=True)
    stage.activate()
    recorder.wait_until_it_records("draft_status")
    simulator = stage.start_simulator(episodes=1, lockstep=True, wait_for_subscribers=2)
    stage.await_end(simulator)
    recorder.end(signal.SIGTERM)
    output = adahi(folder, "report", "run", "--json", "run.json")
    found = json.loads((folder / "run.json").read_text())
    assert found["steps"] >= 10
    assert found["judged_episodes"] == 1
    assert 0.0 < found["transmission_rate"] < 1.0
    assert f"{found['steps']} steps" in output
    assert "timeline-0" in (folder / "run.html").read_text()
    output = adahi(
        folder,
        *("train", "ball", "--from-corrections", "run", "--contract", "ball.yaml", "--data", "data"),
        *("--recipe", "recipe.yaml", "--checkpoints", "policies", "--out", "learned", "--steps", 3),
        *("--no-guard", "--json", "learned.json"),
    )
    learned = json.loads((folder / "learned.json").read_text())
    replies = round(found["transmission_rate"] * found["reply_rate"] * found["steps"])
    assert learned["corrections"] + sum(learned["left_out"].values()) == replies
    assert learned["corrections"] > replies / 2
    assert learned["share"] == 1.0
    assert "'adahi thresholds' makes new ones" in output
    assert load_policy(folder / "learned/draft", "onnxruntime").signature.codes is not None


def test_a_recorder_in_a_namespace_ends_by_itself_with_a_whole_bag(
    stage: Stage, folder: Path, record: Record
) -> None:
    """Nobody publishes `command` here; the bag is whole all the same, and what lacks is told."""
    out = stage.node.create_publisher(TaskState, "/left/task_state", qos_profile_sensor_data)
    recorder = record("left", "--namespace", "left", "--storage", "sqlite3", "--duration", 3.0)
    sent = 0

    def over() -> bool:
        nonlocal sent
        if out.get_subscription_count():
            out.publish(TaskState(step_id=sent, state=[float(sent)]))
            sent += 1
        return recorder.process.poll() is not None

    stage.wait(over, "end of the recorder")
    assert recorder.process.returncode == 0
    output = recorder.output()
    assert "no messages on /left/joint_states; check the names, and --namespace" in output
    assert "no messages on /left/command; right if nothing commanded it" in output
    steps = steps_in(folder / "left", "left")
    assert steps == list(np.arange(steps[0], steps[-1] + 1))
    assert 0 < len(steps) <= sent


def test_episodes_of_services_become_a_dataset_each_with_its_instruction(
    stage: Stage, folder: Path, record: Record
) -> None:
    recorder = record("episodes", "--episodes", "--instruction", "lift it 🙂", "--namespace", "cell")
    kinds = {"joint_states": JointState, "task_state": TaskState, "command": JointTrajectory}
    outs = {name: stage.node.create_publisher(kind, f"/cell/{name}", 100) for name, kind in kinds.items()}
    spoken = stage.node.create_publisher(String, "/cell/instruction", 1)
    called = {
        name: stage.client(Trigger, f"/cell/bag_recorder/{name}_episode")
        for name in ("start", "save", "discard")
    }
    refused = called["save"](Trigger.Request())
    assert (refused.success, refused.message) == (False, "no episode is being recorded; start one first")
    published = (*outs.values(), spoken)
    stage.wait(lambda: all(each.get_subscription_count() > 0 for each in published), "recorder")
    lengths = {"save": 7, "discard": 5, "end": 4}
    for episode, end in enumerate(["save", "discard", "save", "end"]):
        assert called["start"](Trigger.Request()).success
        now_ns = stage.node.get_clock().now().nanoseconds
        for step in range(lengths[end] + episode):
            stamp_ns = now_ns + step * 50_000_000
            outs["joint_states"].publish(to_joint_state(JOINTS, np.zeros(2), np.zeros(2), stamp_ns))
            state = TaskState(episode_id=episode, step_id=step, state=[0.0] * 4, goal=[0.0] * 2)
            state.header.stamp = to_stamp(stamp_ns)
            outs["task_state"].publish(state)
            point = JointTrajectoryPoint(positions=[0.1, 0.2])
            command = JointTrajectory(header=state.header, joint_names=JOINTS, points=[point])
            outs["command"].publish(command)
        assert all(each.wait_for_all_acked(Duration(seconds=ENDS_S)) for each in outs.values())
        if end in called:
            assert called[end](Trigger.Request()).success
        if episode == 1:  # between two episodes
            spoken.publish(String(data="open it"))
            assert spoken.wait_for_all_acked(Duration(seconds=ENDS_S))
    output = recorder.end()
    assert "episodes: 3 episodes saved" in output
    bags = sorted((folder / "episodes").iterdir())
    assert [each.name for each in bags] == ["episode_000000", "episode_000001", "episode_000002"]
    read = read_dataset(bags, load_contract(str(folder / "ball.yaml")), "cell", instruction="none")
    assert np.diff(read.trajectories.ends, prepend=0).tolist() == [7, 9, 7]
    assert read.instructions == ("lift it 🙂",) * 7 + ("open it",) * 16


def test_all_that_arrived_is_written_however_often_the_recorder_is_ended(
    stage: Stage, folder: Path, record: Record
) -> None:
    before = stage.node.count_subscribers("task_state")  # nodes of tests before this one
    recorder = record("burst")
    out = stage.node.create_publisher(TaskState, "task_state", QoSProfile(depth=BURST))
    stage.wait(lambda: out.get_subscription_count() > before, "recorder")
    for step in range(BURST):
        out.publish(TaskState(step_id=step, state=[0.5] * 50))
    assert out.wait_for_all_acked(Duration(seconds=ENDS_S))
    recorder.process.send_signal(signal.SIGINT)
    assert "Traceback" not in recorder.end(signal.SIGTERM)
    assert steps_in(folder / "burst") == list(range(BURST))


def test_a_clock_that_begins_again_ends_the_bag_and_says_so(
    stage: Stage, folder: Path, record: Record
) -> None:
    recorder = record("twice", "--namespace", "twice", "--use-sim-time")
    clock = stage.node.create_publisher(Clock, "/clock", 10)
    out = stage.node.create_publisher(TaskState, "/twice/task_state", QoSProfile(depth=BURST))
    stage.wait(lambda: out.get_subscription_count() > 0 and clock.get_subscription_count() > 0, "recorder")
    sent = 0

    def runs(second: int) -> Callable[[], bool]:
        def over() -> bool:
            nonlocal sent
            clock.publish(Clock(clock=Time(sec=second)))
            out.publish(TaskState(episode_id=second, step_id=sent))
            sent += 1
            return recorder.process.poll() is not None or (second == LATE_RUN and sent > BURST // 20)

        return over

    for second in (LATE_RUN, 1):
        stage.wait(runs(second), f"run at {second} s")
    output = recorder.ended(1)
    assert "the clock went back by " in output
    assert "twice: ends where the clock was reset; " in output
    kept = states_in(folder / "twice", "twice")
    assert kept
    assert kept[-1].episode_id == LATE_RUN


@pytest.mark.parametrize("storage", STORAGES)
def test_what_came_before_a_recorder_was_killed_is_recovered(
    storage: str, stage: Stage, folder: Path, record: Record, tmp_path: Path
) -> None:
    bag, how = folder / f"killed_{storage}", ("--namespace", storage, "--storage", storage)
    recorder = record(bag.name, *how)
    out = stage.node.create_publisher(TaskState, f"/{storage}/task_state", QoSProfile(depth=BURST))
    stage.wait(lambda: out.get_subscription_count() > 0, "recorder")
    for step in range(BURST // 10):
        out.publish(TaskState(step_id=step))
    tries = 0

    def on_the_disk() -> bool:
        nonlocal tries
        tries += 1
        now = Path(shutil.copytree(bag, tmp_path / str(tries)))
        try:
            return recover(now, now / "new").counts[out.topic_name] == BURST // 10
        except (BagError, OSError):  # it was being written
            return False

    stage.wait(on_the_disk, "messages on the disk")
    recorder.process.kill()
    recorder.process.wait()
    adahi(folder, "bag", "repair", bag, "--out", f"new_{storage}")
    assert steps_in(folder / f"new_{storage}", storage) == list(range(BURST // 10))


def test_what_somebody_publishes_with_another_type_is_reported(
    stage: Stage, folder: Path, record: Record
) -> None:
    out = stage.node.create_publisher(String, "/other/command", 10)
    recorder = record("other", "--namespace", "other")
    warning = "/other/command: is published as std_msgs/msg/String, expected trajectory_msgs/msg/JointTraj"
    stage.wait(lambda: warning in recorder.output(), "warning")
    recorder.process.send_signal(signal.SIGINT)
    assert "/other/command: found a publisher, recording" not in recorder.ended(1)
    stage.node.destroy_publisher(out)
