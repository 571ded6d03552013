"""What of a robot's messages Rerun shows; `make test-lerobot` has Rerun, and runs all of it."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.bags.rerun_recording import CURVES_MOST, VIEWS, RerunRecording, parts_of
from adahi_ros.protocol.records import StepRecord
from test.bags.conftest import Line, command, joints, run, status

MS = 1_000_000


@dataclass
class Inner:
    positions: Any
    REASON_NONE: int = 0


@dataclass
class Message:
    """As rosbags makes them."""

    joint_names: Any = field(default_factory=list)
    points: Any = field(default_factory=list)
    header: Any = None
    text: str = "said"
    number: float = 2.0
    flags: Any = field(default_factory=lambda: np.array([True, False]))
    words: Any = field(default_factory=lambda: ["a", "b"])
    empty: Any = field(default_factory=lambda: np.zeros(0))


class RosMessage(SimpleNamespace):
    """As rclpy makes them."""

    def get_fields_and_field_types(self) -> dict[str, str]:
        return dict.fromkeys(vars(self), "")


def shown(message: Any) -> dict[str, tuple[Any, tuple[str, ...]]]:
    parts = parts_of(message, "/t")
    return {path: (v if isinstance(v, str) else v.tolist(), names) for path, v, names in parts}


def test_numbers_texts_and_the_last_point_are_shown() -> None:
    points = [Inner(np.array([9.0, 9.0])), Inner(np.array([1.0, 2.0]))]
    names = ("a", "b")
    assert shown(Message(list(names), points)) == {
        "/t/points/positions": ([1.0, 2.0], names),
        "/t/text": ("said", ()),
        "/t/number": ([2.0], names),
        "/t/flags": ([1.0, 0.0], names),
    }


def test_messages_of_rclpy_are_shown_alike_and_long_arrays_are_not() -> None:
    inner = RosMessage(positions=array("d", [1.0, 2.0]))
    message = RosMessage(points=[inner], step=3, done=True, data=array("d", [0.0] * (CURVES_MOST + 1)))
    assert shown(message) == {
        "/t/points/positions": ([1.0, 2.0], ()),
        "/t/step": ([3.0], ()),
        "/t/done": ([1.0], ()),
    }


def columns(file: Path) -> dict[str, str]:
    """From paths to what is drawn there, by Rerun's own reader."""
    experimental = pytest.importorskip("rerun.experimental")
    described = experimental.RrdReader(file).store().schema()
    found = [
        (each.entity_path, str(each.archetype).rpartition(".")[2]) for each in described.component_columns()
    ]
    return {path: kind for path, kind in found if kind not in ("SeriesLines", "RecordingInfo")}


@pytest.fixture
def step_lines(step_record: Callable[..., StepRecord]) -> list[Line]:
    steps = [step_record(step=step, message="late" * (step == 1), action=(0.5, step)) for step in range(3)]
    lines = [Line("draft_status", status(each), each.step * 50 * MS) for each in steps]
    for at in range(3):
        lines.append(Line("joint_states", joints(at, np.ones(2)), at * 50 * MS))
        lines.append(Line("command", command(at, np.ones(2)), at * 50 * MS))
    return lines


def test_a_bag_becomes_a_recording(
    in_bag: Callable[..., Path], step_lines: list[Line], tmp_path: Path
) -> None:
    pytest.importorskip("rerun")
    file = tmp_path / "run.rrd"
    bag = in_bag(step_lines, prefix="/r1/")
    assert run("bag", "rerun", bag, "--out", file, "--namespace", "r1") == f"{bag}: 3 topics in {file}\n"
    found = columns(file)
    assert {
        "/r1/joint_states/position": "Scalars",
        "/r1/command/points/positions": "Scalars",
        "/r1/draft_status/action": "Scalars",
        "/r1/draft_status/score": "Scalars",
        "/r1/draft_status/message": "TextLog",
    }.items() <= found.items()
    assert not [path for path in found if "REASON" in path or "msgtype" in path]
    run("bag", "rerun", bag, "--out", tmp_path / "other.rrd", "--namespace", "r10")
    assert "/r1/draft_status/action" not in columns(tmp_path / "other.rrd")


def test_an_image_is_shown_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    pytest.importorskip("rerun")
    pixels = np.full((4, 6, 3), 200, np.uint8)
    raw = SimpleNamespace(height=4, width=6, encoding="rgb8", is_bigendian=0, step=18, data=pixels.tobytes())
    recording = RerunRecording(str(tmp_path / "images.rrd"))
    recording.add("/camera", raw, 0)
    recording.add("/broken", SimpleNamespace(format="jpeg", data=b"no image"), 0)
    recording.close()
    assert columns(tmp_path / "images.rrd") == {"/camera": "EncodedImage"}


def test_the_views_name_fields_of_the_messages() -> None:
    messages = pytest.importorskip("adahi_msgs.msg")
    kinds = {"draft_status": "DraftStatus", "link_state": "LinkState", "safety_state": "SafetyState"}
    for path in (path for paths in VIEWS.values() for path in paths):
        topic, _, name = path.partition("/")
        assert name in getattr(messages, kinds[topic]).get_fields_and_field_types()


def test_without_rerun_the_verb_says_what_to_install(
    in_bag: Callable[..., Path], step_lines: list[Line]
) -> None:
    program = "import sys; sys.modules['rerun'] = None; from adahi_ros.cli.app import main; main()"
    command_line = [sys.executable, "-c", program, "bag", "rerun", str(in_bag(step_lines))]
    ended = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "adahi: rerun: not installed; this needs pip install -r requirements/rerun.txt\n"
