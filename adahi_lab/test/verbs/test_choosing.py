"""`adahi choose`: which candidates it runs, and what it says of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adahi_lab.cli import choosing
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.policies.backends import load_policy
from test.cli.conftest import Measured
from test.tiny_intents import tiny_intents


def test_intents_are_candidates_where_they_are_trained(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "BY_PLANS", "")
    folder = Path(shutil.copytree(named("ball", CHECKPOINTS), tmp_path / "ball"))
    target = load_policy(folder / "plans/target", "onnxruntime").signature
    tiny_intents(folder / "plans", "intent_of_plan", target, at_target=False)
    options = ["--checkpoints", folder, "--episodes", 1, "--workers", 1]
    result, figures = measured("choose", "ball", *options)
    assert list(figures["methods"]) == [figures["chosen"]] == ["intent_of_plan"]
    assert "use intent_of_plan" in result.output
    assert "proposer.steps bounds how long a robot acts by it" in result.output


def test_a_goal_that_the_robot_can_be_given_needs_no_server(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "BY_PLANS", "plan_4")
    result, figures = measured("choose", "ball_instructed", "--episodes", 20, "--workers", 1)
    assert list(figures["methods"]) == ["plan_4", "intent", "intent_of_plan", "goal_once"]
    assert figures["chosen"] == "goal_once"
    reached = figures["methods"]["goal_once"]["success_rate"]
    assert f"a robot that can be given the goal itself needs no server: goal_once has {reached:.3f}" in (
        " ".join(result.output.split())
    )


def test_a_plan_is_recommended_with_the_longest_time_of_a_reply(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--methods", "plan_4", "--episodes", 1, "--workers", 1]
    result, _ = measured("choose", "ball", *options)
    assert (
        "on a robot, replies must take less than half of a plan: 0.4 s (16 actions at 20 Hz)" in result.output
    )
