"""Bags of a toy robot: two joints, a task's state and goal, a trajectory command to each state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from typer.testing import CliRunner

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.plain_contract import plain_values
from adahi_ros.bags.bag_reader import Received
from adahi_ros.bags.bag_writer import STORAGES
from adahi_ros.bags.definitions import types_of
from adahi_ros.bags.recorded_topics import ASSIGNMENTS, BESIDE_A_RUN, DRAFT_STATUS, INSTRUCTION
from adahi_ros.cli.app import app
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.protocol.records import StepRecord

JOINTS = ("left_joint", "right_joint")
PERIOD_NS = 50_000_000
START_NS = 1_000_000_000_000
LATE_NS = 1_000_000  # from stamp to recorder
KINDS = {
    "joint_states": "sensor_msgs/msg/JointState",
    "task_state": "adahi_msgs/msg/TaskState",
    "command": "trajectory_msgs/msg/JointTrajectory",
    **DRAFT_STATUS,
    **BESIDE_A_RUN,
    **INSTRUCTION,
    **ASSIGNMENTS,
    "front/image_raw": "sensor_msgs/msg/Image",
    "wrist/image_raw/compressed": "sensor_msgs/msg/CompressedImage",
}
STORE = types_of(KINDS.values())


WANTED = {"joint_states": "sensor_msgs/msg/JointState", "task_state": "adahi_msgs/msg/TaskState"}
FORMS = [(storage, how) for storage in STORAGES for how in ("none", "file", "message")]
Comparable = list[tuple[str, int, bytes]]


def comparable(found: Iterable[Received]) -> Comparable:
    """Return what can be compared of joint states and states of a task."""
    values = {"joint_states": "position", "task_state": "state"}
    return [
        (each.topic, each.received_ns, np.asarray(getattr(each.message, values[each.topic])).tobytes())
        for each in found
    ]


def run(*arguments: object) -> str:
    """Run `adahi` in this process; return what it printed."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


class Line(NamedTuple):
    """One message as it is to be written."""

    topic: str
    message: Any
    received_ns: int


def make(kind: str, **fields: Any) -> Any:
    """Make a message of a type, with nothing in the fields that are not given."""
    empty = {"string": "", "bool": False}
    values: dict[str, Any] = {}
    fields_of: Any = STORE.fielddefs[kind][1]
    for name, (node, of) in fields_of:
        if name in fields:
            values[name] = fields[name]
        elif int(node) == 2:
            values[name] = make(of)
        elif int(node) == 1:
            values[name] = empty.get(of[0], 0)
        else:
            element, name_of_type = of[0][0], of[0][1]
            numeric = int(element) == 1 and name_of_type[0] != "string"
            values[name] = np.zeros(0, _dtype(name_of_type[0])) if numeric else []
    return STORE.types[kind](**values)


def _dtype(name: str) -> type:
    return np.dtype({"bool": "bool", "byte": "uint8", "char": "uint8"}.get(name, name)).type


def header(stamp_ns: int) -> Any:
    stamp = make("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return make("std_msgs/msg/Header", stamp=stamp)


def joints(stamp_ns: int, positions: np.ndarray) -> Any:
    kind = KINDS["joint_states"]
    return make(kind, header=header(stamp_ns), name=list(JOINTS), position=np.float64(positions))


def state(stamp_ns: int, values: np.ndarray, goal: np.ndarray, episode: int, step: int) -> Any:
    return make(
        KINDS["task_state"],
        header=header(stamp_ns),
        episode_id=episode,
        step_id=step,
        state=np.float64(values),
        goal=np.float64(goal),
    )


def command(stamp_ns: int, action: np.ndarray) -> Any:
    point = make("trajectory_msgs/msg/JointTrajectoryPoint", positions=np.float64(action))
    return make(KINDS["command"], header=header(stamp_ns), joint_names=list(JOINTS), points=[point])


def result(stamp_ns: int, episode: int, success: bool) -> Any:
    return make(KINDS["episode_result"], header=header(stamp_ns), episode_id=episode, success=success)


def status(record: StepRecord) -> Any:
    same = ("robot_id", "gate", "deviation", "score", "threshold", "transmitted", "verified", "message")
    plan = ("proposer", "plan_age", "plan_left", "expected_error", "requests_pending")
    numbers = ("draft_ms", "verify_ms", "target_compute_ms", "total_ms", "request_bytes", "response_bytes")
    return make(
        KINDS["draft_status"],
        header=header(record.stamp_ns),
        episode_id=record.episode,
        step_id=record.step,
        accepted=np.array(record.accepted, dtype=bool),
        reason=int(record.reason),
        reason_counts=np.array(record.reason_counts, dtype=np.uint32),
        draft_action=np.array(record.draft_action, np.float32),
        planned_action=np.array(record.planned_action, np.float32),
        action=np.array(record.action, np.float32),
        **{name: getattr(record, name) for name in (*same, *plan, *numbers)},
    )


def assignments(revision: int, **revisions: int) -> Any:
    """Return a verifier's notice, with the revisions of robots by name."""
    return make(
        KINDS["assignments"],
        started=make("builtin_interfaces/msg/Time", sec=1),
        revision=revision,
        robot_ids=list(revisions),
        revisions=np.array(list(revisions.values()), dtype=np.uint32),
    )


def safety(stamp_ns: int, counts: list[int]) -> Any:
    kind = KINDS["safety_state"]
    return make(kind, header=header(stamp_ns), counts=np.array(counts, dtype=np.uint32))


def recorded(data: Trajectories, start_ns: int = START_NS) -> list[Line]:
    """Return the messages of recorded episodes, as a robot would send them."""
    lines, stamp_ns = [], start_ns
    for episode, (start, end) in enumerate(data.spans()):
        for row in range(start, end):
            seen, stamp_ns = data.observations[row], stamp_ns + PERIOD_NS
            lines += [
                Line("joint_states", joints(stamp_ns, seen[:2]), stamp_ns + LATE_NS),
                Line(
                    "task_state",
                    state(stamp_ns, seen[2:], data.goals[episode], episode, row - start),
                    stamp_ns + LATE_NS + 1,
                ),
                Line("command", command(stamp_ns, data.actions[row]), stamp_ns + LATE_NS + 2),
            ]
        lines.append(Line("episode_result", result(stamp_ns, episode, True), stamp_ns + LATE_NS + 3))
    return lines


def write_bag(
    path: Path,
    lines: Iterable[Line],
    storage: str = "mcap",
    compression: str = "none",
    prefix: str = "/",
    kinds: dict[str, str] = KINDS,
) -> Path:
    """Write messages, or what already is bytes, into a bag; return its folder."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    connections: dict[str, Any] = {}
    with writer:
        for line in lines:
            kind = kinds[line.topic]
            if line.topic not in connections:
                name = line.topic if line.topic.startswith("/") else f"{prefix}{line.topic}"
                connections[line.topic] = writer.add_connection(name, kind, typestore=STORE)
            data = line.message
            if not isinstance(data, bytes):
                data = STORE.serialize_cdr(data, kind)
            writer.write(connections[line.topic], line.received_ns, data)
    return path


@pytest.fixture(scope="session")
def contract_values() -> dict[str, Any]:
    return plain_values("toy", 20.0, JOINTS, 4, 2, JOINTS, "positions")


@pytest.fixture(scope="session")
def contract(contract_values: dict[str, Any]) -> Contract:
    return parse_contract(contract_values)


@pytest.fixture(scope="session")
def contract_file(contract_values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("contract") / "toy.yaml"
    path.write_text(yaml.safe_dump(contract_values))
    return path


@pytest.fixture(scope="session")
def lines(demonstrations: Callable[[int], Trajectories]) -> list[Line]:
    """The messages of twelve episodes of thirty steps."""
    return recorded(demonstrations(2))


@pytest.fixture(scope="session")
def bag(lines: list[Line], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bag(tmp_path_factory.mktemp("bags") / "toy", lines)


@pytest.fixture(scope="session")
def in_bag(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """From messages to a new bag of them; further arguments are those of `write_bag`."""
    return lambda lines, **how: write_bag(tmp_path_factory.mktemp("bags") / "some", lines, **how)
