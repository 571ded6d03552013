"""Garbage bags: folders of files that are cut off, flipped or missing, and messages that are no messages."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rclpy.serialization import serialize_message

from adahi_ros.bags.dataset import read_dataset
from adahi_ros.bags.run import bag_run_figures, read_run
from adahi_ros.bags.writer import BagWriter
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.messages import to_command, to_joint_state, to_status, to_task_state
from adahi_ros.wire.records import Reason, StepRecord

from .messages import damaged, mutated
from .trees import as_yaml
from .values import Garbage

STEPS = 30
START_NS = 1_800_000_000_000_000_000
PERIOD_NS = 50_000_000
NAMES = ("plate_roll_joint", "plate_pitch_joint")
KINDS = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/task_state": "adahi_msgs/msg/TaskState",
    "/command": "trajectory_msgs/msg/JointTrajectory",
    "/draft_status": "adahi_msgs/msg/DraftStatus",
}


def _record(step: int, stamp_ns: int) -> StepRecord:
    return StepRecord(
        stamp_ns=stamp_ns,
        robot_id="robot",
        episode=0,
        step=step,
        gate="deviation",
        deviation=1.0,
        score=1.0,
        threshold=0.5,
        transmitted=True,
        verified=True,
        accepted=(True, True),
        reason=Reason.NONE,
        reason_counts=(step, *[0] * (len(Reason) - 1)),
        message="",
        draft_action=(0.0, 0.0),
        action=(0.0, 0.0),
        draft_ms=0.1,
        verify_ms=1.0,
        target_compute_ms=0.2,
        total_ms=1.5,
        request_bytes=400,
        response_bytes=60,
    )


def _messages(step: int) -> dict[str, Any]:
    stamp_ns, small = START_NS + step * PERIOD_NS, np.full(2, 0.001 * step)
    return {
        "/joint_states": to_joint_state(NAMES, small, small, stamp_ns),
        "/task_state": to_task_state(np.full(4, 0.01 * step), np.array([0.1, 0.1]), 0, step, stamp_ns),
        "/command": to_command(NAMES, "positions", small, 0.05, stamp_ns),
        "/draft_status": to_status(_record(step, stamp_ns)),
    }


def _write(path: Path, storage: str, garbage: Garbage | None = None) -> None:
    """Write a bag; with garbage, a few of its messages are that."""
    bag = BagWriter(path, storage)
    for topic, kind in KINDS.items():
        bag.add(topic, kind)
    for step in range(STEPS):
        for topic, message in _messages(step).items():
            data = serialize_message(message)
            if garbage is not None and garbage.chance(0.05):
                data = (
                    damaged(message, garbage)
                    if garbage.chance(0.5)
                    else serialize_message(mutated(message, garbage))
                )
            bag.write(topic, data, START_NS + step * PERIOD_NS + 1_000_000)
    bag.close()


@functools.cache
def _sound(storage: str) -> Path:
    """Return a bag as it should be, made once in each process."""
    path = Path(tempfile.mkdtemp(prefix="adahi_ros_bags_")) / storage
    _write(path, storage)
    return path


def bag(garbage: Garbage, folder: Path) -> None:
    """A bag, read as data for training and as a run."""
    storage, path = garbage.pick(("mcap", "sqlite3")), folder / "bag"
    how = garbage.count(0, 3)
    if how == 0:
        _write(path, storage, garbage)
    else:
        shutil.copytree(_sound(storage), path)
        file = garbage.pick(sorted(path.iterdir()))
        if how == 1 and garbage.chance(0.1):
            file.unlink()
        elif how == 2:
            description = path / "metadata.yaml"
            description.write_bytes(as_yaml(yaml.safe_load(description.read_text()), garbage))
        else:
            file.write_bytes(garbage.damaged(file.read_bytes()))
    if garbage.chance(0.1):
        path = garbage.pick(sorted(path.iterdir()))
    reads = [
        lambda: read_dataset([path], load_contract("ball")).trajectories.save(folder / "made"),
        lambda: bag_run_figures(read_run(path)),
    ]
    garbage.pick(reads)()
