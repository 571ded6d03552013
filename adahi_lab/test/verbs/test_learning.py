"""`adahi lab learn`, and `adahi train policy --from-corrections`: what they say, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import load_policy
from test.cli.conftest import Fails, Measured, Run

SMALL = ("--steps", 3, "--workers", 1)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    path = tmp_path_factory.mktemp("demos") / "ball.safetensors"
    run("data", "simulate", "ball", "--out", path, "--episodes", 4, "--workers", 1)
    return path


def test_learn_goes_through_its_rounds(demos: Path, tmp_path: Path, measured: Measured) -> None:
    out, picture = tmp_path / "out", tmp_path / "learn.png"
    result, figures = measured(
        *("lab", "learn", "ball", "--out", out, "--rounds", 1, "--episodes", 2, "--evaluated", 2, *SMALL),
        *("--demos", demos, "--picture", picture, "--no-guard"),
    )
    assert "adahi thresholds ball --checkpoints" in result.output.replace("\n", " ")
    values = figures["rounds"]
    assert [each["round"] for each in values] == [0, 1]
    assert values[0]["update"]["share"] == 1.0
    assert picture.stat().st_size > 0
    assert (
        load_policy(out / "draft", "onnxruntime").digest
        != load_policy(asset("checkpoints/ball") / "draft", "onnxruntime").digest
    )
    assert load_policy(out / "plans/target", "onnxruntime").signature.horizon > 1


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--ask", "nobody"), "methods: 'nobody', must be of"),
        (("--ask", "plan_8"), "ask: 'plan_8', must be of corrected plans"),
        (("--rate", 2), "rate: 2.0, must be between 0 and 1"),
        (("--rounds", 0), ""),
        (("--recipe", "nowhere.yaml"), "--recipe: nowhere.yaml, no such file"),
        (("--calibration", "nowhere.yaml"), "--calibration: nowhere.yaml, no such file"),
        (("--calibration", asset("config/kitchen.yaml")), "calibration: made for other policies"),
    ],
)
def test_learn_refuses(
    arguments: tuple[object, ...], output: str, tmp_path: Path, run: Run, fails: Fails
) -> None:
    command = ("lab", "learn", "ball", "--out", tmp_path / "out", *arguments)
    if output:
        assert output in fails(*command)
    else:
        run(*command, status=2)
    assert not (tmp_path / "out").exists()


def test_shipped_policies_are_not_replaced(fails: Fails) -> None:
    shipped = asset("checkpoints/ball")
    assert "is shipped; must be another place" in fails("lab", "learn", "ball", "--out", shipped)
    output = fails("train", "ball", "--from-corrections", "bag", "--out", shipped)
    assert "is shipped; must be another place" in output


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--only", "draft"), "only: draft, must be left out where --from-corrections is given"),
        (("--seed-offset", 3), "seed_offset: 3, must be left out where --from-corrections is given"),
        (("--contract", "kitchen"), "contract: of a robot 'kitchen', must be 'ball', the task"),
        ((), "no such bag"),
        (("--checkpoints", "nowhere"), "nowhere"),
    ],
)
def test_bags_that_cannot_be_learned_from_are_refused(
    arguments: tuple[object, ...], output: str, tmp_path: Path, fails: Fails
) -> None:
    out = tmp_path / "out"
    command = ("train", "ball", "--from-corrections", tmp_path / "bag", "--out", out, *arguments)
    assert output in fails(*command)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--steps", 3), "steps: 3"),
        (("--no-guard",), "no_guard: True"),
        (("--worse", 0.02), "worse: 0.02"),  # what it is by default, too
        (("--checkpoints", "somewhere"), "checkpoints: somewhere"),
        (("--incomplete",), "incomplete: True"),
    ],
)
def test_what_is_of_corrections_alone_is_refused_without(
    arguments: tuple[object, ...], output: str, tmp_path: Path, fails: Fails
) -> None:
    """Else it would be ignored, and nobody told."""
    out = tmp_path / "out"
    found = fails("train", "ball", "--out", out, *arguments)
    assert f"{output}, must be left out where --from-corrections is not given" in found
    assert not out.exists()
