from __future__ import annotations

import json
from pathlib import Path

import pytest

from adahi_lab.evaluation import evaluate
from test.cli.conftest import Fails, Measured, Run

OPTIONS = ("--task", "ball", "--workers", 1, "--episodes", 2, "--methods", "best,hybrid")


def test_methods_are_measured_once_across_each_link_and_drawn(
    tmp_path: Path, run: Run, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, picture = tmp_path / "rows.json", tmp_path / "curve.png"
    places = ("--out", rows, "--picture", picture)
    result, figures = measured("lab", "curve", "delay", *OPTIONS, *places, "--values", "0,3")
    assert "ball against delay, 2 episodes, seed 0" in " ".join(result.output.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    by_method = figures["tasks"]["ball"]
    assert figures["values"] == [0, 3]
    assert list(by_method) == ["best", "hybrid"]
    for method in by_method.values():
        assert [each["key"]["link"]["delay"] for each in method] == [0, 3]
    waiting = [each["transmission_rate"] for each in by_method["hybrid"]]
    assert waiting[0] == 1.0
    assert waiting[1] == pytest.approx(0.25, abs=0.05)  # held for three steps, then a step is executed
    monkeypatch.setattr(evaluate, "play", lambda *arguments: pytest.fail("measured again"))
    run("lab", "curve", "delay", *OPTIONS, *places, "--values", "0,3")
    assert len(json.loads(rows.read_text())["rows"]) == 4


def test_seconds_are_control_steps_of_each_task_with_information_age(
    tmp_path: Path, measured: Measured
) -> None:
    places = ("--out", tmp_path / "rows.json", "--picture", tmp_path / "curve.png")
    options = ("--seconds", "--workers", 1, "--episodes", 2, "--methods", "plan_8,hybrid")
    result, figures = measured(
        "lab", "curve", "delay", "--task", "ball", *options, *places, "--values", "0,6"
    )
    assert "ball against delay in s" in " ".join(result.output.split())
    assert figures["values"] == [0, 6]
    for near, far in figures["tasks"]["ball"].values():
        assert (near["key"]["link"]["delay"], far["key"]["link"]["delay"]) == (0, 120)  # at 20 Hz
        assert near["held_share"] == 0.0
        assert far["held_share"] == 1.0  # each reply is older than every action of its plan, or too late
        # At most one request is in flight, so a long delay cannot cause a flood of them.
        assert far["calls_per_episode"] <= 1 + far["steps_per_episode"] / 120 + 1


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("speed",), "against: 'speed', must be one of delay, jitter, loss, outage"),
        (("delay", "--values", "1,x"), "values: '1,x', must be numbers separated by commas"),
        (("delay", "--values", "1,1"), "values: [1.0, 1.0], must be at least one, each different"),
        (("delay", "--values", "0.5"), "delay: 0.5, must be a whole number from 0 to 10000"),
        (("loss", "--values", "1"), "loss: 1.0, must be at least 0 and below 1"),
        (("loss", "--seconds"), "--seconds: must be with --values of delay or jitter or outage"),
    ],
)
def test_what_no_link_can_be_is_refused(arguments: tuple[str, ...], output: str, fails: Fails) -> None:
    assert fails("lab", "curve", *arguments) == f"adahi: {output}\n"
