from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.calibration.parameter_file import Calibration, load_calibration

FIGURES = {
    "actions": 1000,
    "measured_rates": {"deviation": 0.6, "uncertainty": 0.59},
    "rejection_rate": [0.5, 0.0],
    "linear": {"slope": 1e-05, "intercept": -0.1, "r2": 1.0},
    "bins": {"deviation": [0.1, 1.0], "rejection": [0.0, 1.0]},
}


@pytest.fixture
def calibration() -> Calibration:
    thresholds = {"deviation": 0.75, "uncertainty": 0.98, "oracle": 0.9, "random": 0.4}
    return Calibration(
        "ball", "0123456789012345", "abcdefabcdefabcd", 0.5, "std", 1.0, 0.6, thresholds, FIGURES
    )


@pytest.fixture
def path(tmp_path: Path, calibration: Calibration) -> Path:
    file = tmp_path / "new" / "ball.yaml"
    calibration.save(file, "deviation", "adahi thresholds ball --rate 0.6")
    return file


def test_what_is_written_is_read(path: Path, calibration: Calibration) -> None:
    assert load_calibration(path) == calibration
    assert path.read_text().startswith("# Written by: adahi thresholds ball --rate 0.6\n")


def test_a_node_reads_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rclpy = pytest.importorskip("rclpy")
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")
    context = rclpy.Context()
    rclpy.init(context=context, args=["--ros-args", "--params-file", str(path)])
    try:
        node = rclpy.create_node("draft_policy", namespace="arm_7", context=context)
        declared = {
            "gate.name": ("never", "deviation"),
            "gate.threshold": (1.0, 0.75),
            "deviation.smoothing": (0.1, 0.5),
            "deviation.normalization": ("average", "std"),
            "draft_temperature": (2.0, 1.0),
        }
        for name, (default, expected) in declared.items():
            assert node.declare_parameter(name, default).value == expected
        assert not node.has_parameter("calibration.task")
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def test_a_controller_has_its_gates_threshold(calibration: Calibration) -> None:
    config = calibration.controller("uncertainty")
    assert (config.trigger.name, config.trigger.threshold) == ("uncertainty", 0.98)
    assert (config.smoothing, config.normalization, config.draft_temperature) == (0.5, "std", 1.0)
    assert calibration.controller("always").trigger.name == "always"
    with pytest.raises(
        ValueError, match=re.escape("thresholds.telepathy: missing, the calibration has deviation,")
    ):
        calibration.controller("telepathy")


def test_a_threshold_of_the_oracle_is_kept_for_evaluations_with_its_score(path: Path) -> None:
    read = load_calibration(path)
    assert read.threshold("oracle") == 0.9
    with pytest.raises(ValueError, match="gate: 'oracle', must be one of age, always,"):
        read.controller("oracle")  # a robot cannot have it


@pytest.mark.parametrize("gate", ["always", "never"])
def test_gates_without_a_threshold_need_no_calibration(calibration: Calibration, gate: str) -> None:
    assert calibration.threshold(gate) == 0.0


def _without(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(parameters: dict[str, Any]) -> None:
        for name in names[:-1]:
            parameters = parameters[name]
        del parameters[names[-1]]

    return change


def _with(value: Any, *names: str) -> Callable[[dict[str, Any]], None]:
    def change(parameters: dict[str, Any]) -> None:
        for name in names[:-1]:
            parameters = parameters[name]
        parameters[names[-1]] = value

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without("calibration"), "calibration: missing"),
        (_without("deviation", "smoothing"), "deviation.smoothing: missing"),
        (_without("calibration", "thresholds"), "calibration.thresholds: missing"),
        (_without("calibration", "task"), "calibration.task: missing"),
        (_with([], "calibration", "thresholds"), "calibration.thresholds: [], must be a mapping"),
        (
            _with("high", "deviation", "smoothing"),
            "deviation.smoothing: 'high', must be a finite floating-point",
        ),
        (
            _with(1, "draft_temperature"),
            "draft_temperature: 1, must be a finite floating-point number, such as",
        ),
        (_with(float("nan"), "draft_temperature"), "draft_temperature: nan, must be a finite"),
        (_with(0.0, "draft_temperature"), "draft_temperature: 0.0, must be above 0"),
        (_with(2.0, "deviation", "smoothing"), "smoothing: 2.0, must be above 0 and at most 1"),
        (_with("max", "deviation", "normalization"), "normalization: 'max', must be one of average, std"),
        (
            _with(float("inf"), "calibration", "thresholds", "deviation"),
            "calibration.thresholds.deviation: inf, must be a finite",
        ),
        (
            _with(0.5, "calibration", "thresholds", "telepathy"),
            "gate: 'telepathy', must be one of age, always, ",
        ),
    ],
)
def test_a_damaged_file_is_refused_by_file_and_field(
    path: Path, damage: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = yaml.safe_load(path.read_text())
    damage(document["/**"]["ros__parameters"])
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_calibration(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/**: missing"),
        ("- a\n- b\n", "/**: missing"),
        ("/**: {}\n", "/**.ros__parameters: missing"),
        ("/**: [1, 2", "not YAML: "),
    ],
)
def test_another_file_is_refused(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {message}')}"):
        load_calibration(path)


def test_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_calibration(tmp_path / "nowhere.yaml")


def test_a_write_that_is_stopped_leaves_the_file_as_it_was(
    path: Path, calibration: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def half(self: Path, text: str) -> None:
        write(self, text[: len(text) // 2])
        raise InterruptedError

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(InterruptedError):
        calibration.save(path, "random", "another command")
    assert load_calibration(path) == calibration
    assert list(path.parent.iterdir()) == [path]
