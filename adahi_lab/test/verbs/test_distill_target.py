"""`adahi train corrector` for a target of another kind, that reads images and an instruction."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint, load_corrector
from adahi_ros.policies.registry import POLICIES
from test.bags.conftest import run
from test.bags.seeing import HORIZON, Seeing, Still, messages, seeing_values
from test.tiny_intents import STUDENT

pytestmark = pytest.mark.usefixtures("unexported")
OF_PLAN = {**STUDENT, "reads_extra": False, "replies": 2}


@pytest.fixture
def seeing_options(
    contract_values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """Of a target of another kind, that a YAML file describes and reads images."""
    monkeypatch.setitem(POLICIES.shipped, "seeing", Seeing)
    files = {
        "seeing.yaml": seeing_values(contract_values),
        "target.yaml": {"kind": "seeing", "gain": 2.0},
        "recipe.yaml": {
            name: {"seed": 2, "size": {"hidden": 4}, "fit": {"steps": 5, "batch_size": 16}}
            for name in ("corrector", "distilled")
        },
    }
    for name, values in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(values))
    return [
        *("--contract", tmp_path / "seeing.yaml", "--target", tmp_path / "target.yaml"),
        *("--recipe", tmp_path / "recipe.yaml", "--out", tmp_path / "arm"),
    ]


@pytest.fixture
def with_intents(seeing_options: list[Any], tmp_path: Path) -> list[Any]:
    """Options of `seeing_options`, with both intents in the recipe."""
    recipe = tmp_path / "recipe.yaml"
    values = yaml.safe_load(recipe.read_text())
    recipe.write_text(yaml.safe_dump({**values, "intent": STUDENT, "intent_of_plan": OF_PLAN}))
    return [*seeing_options, "--intent"]


def test_one_command_gives_intents_of_a_target_with_an_instruction(
    in_bag: Callable[..., Path],
    with_intents: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    params, figures = tmp_path / "arm.yaml", tmp_path / "figures.json"
    said = run("train", "corrector", in_bag(messages(3)), *with_intents, "--draft", "--params", params)
    beside = "intent is left out: the target reads observation.joints, which recordings do not keep"
    assert beside in said
    assert not (tmp_path / "arm/intent.json").exists()
    nodes = yaml.safe_load(params.read_text())
    robot, verifier = (each["ros__parameters"] for each in nodes.values())
    assert robot["proposer"] == {"name": "corrector", "file": str(tmp_path / "arm/corrector")}
    assert "intent" not in verifier
    acting = f"{{name: intent_of_plan, file: {tmp_path / 'arm/intent_of_plan'}}}"
    assert f"to act by intents, set proposer: {acting}" in said
    robot |= {"proposer": yaml.safe_load(acting), "gate": {"name": "age", "threshold": 3.0}}
    params.write_text(yaml.safe_dump(nodes))
    held, final = in_bag(messages(4)), tmp_path / "final.yaml"
    run("thresholds", "--bag", held, "--params", params, "--out", final, "--rate", 0.5)
    assert "gate: {name: age, threshold: 1.0}" in final.read_text()
    run("thresholds", "--bag", held, "--params", params, "--out", final, "--overwrite")
    assert "gate: {name: age, threshold: 3.0}" in final.read_text()
    written = ("--json", figures, "--picture", tmp_path / "a.png")
    run("bag", "evaluate", held, "--params", final, "--methods", "best,intent_of_plan", *written)
    found = json.loads(figures.read_text())
    calls = {name: each["calls"] for name, each in found["methods"].items()}
    assert calls["best"] > calls["intent_of_plan"] == found["episodes"] > 1


def test_a_target_that_is_not_ours_gives_a_robot_all_that_it_needs(
    in_bag: Callable[..., Path],
    seeing_options: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unsure(read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # of old plans
        return np.zeros((len(read), 2), np.float32), read[:, -1]

    monkeypatch.setattr(CorrectorCheckpoint, "on_onnx", lambda checkpoint: unsure)
    bag, params, figures = in_bag(messages(3)), tmp_path / "arm.yaml", tmp_path / "figures.json"
    words = ["train", "corrector", bag, *seeing_options, "--draft", "--params", params, "--json", figures]
    words += ["--instruction", "wave", "--jpeg-quality", 60]
    run(*words)
    corrector, draft = (load_corrector(tmp_path / "arm" / name) for name in ("corrector", "draft"))
    sizes = {"observation_dim": 6, "goal_dim": 2, "action_dim": 2, "hidden": 4}
    assert corrector.config == {**sizes, "horizon": HORIZON}
    assert draft.config == {**sizes, "horizon": 1}
    stated = json.loads(figures.read_text())
    assert stated["draft"] == {name: draft.training[name] for name in ("episodes", "examples", "held_out")}
    assert stated["asking"] == {
        "threshold": pytest.approx(np.exp(0.125), abs=0.2),
        "rate": pytest.approx(0.5, abs=0.1),
    }
    nodes = yaml.safe_load(params.read_text())
    robot = nodes["/**/draft_policy"]["ros__parameters"]
    assert robot["checkpoint"] == str(tmp_path / "arm" / "draft")
    assert robot["proposer"] == {"name": "corrector", "file": str(tmp_path / "arm" / "corrector")}
    assert robot["contract"] == str(tmp_path / "seeing.yaml")
    assert robot["wait_policy"] == "ahead"
    assert robot["gate"] == {"name": "expected_error", "threshold": stated["asking"]["threshold"]}
    assert robot["verification"] == {"jpeg_quality": 60, "reliability": "reliable"}
    assert robot["instruction"] == "wave"
    verifier = nodes["/**/target_verifier"]["ros__parameters"]
    assert verifier == {
        "checkpoint": str(tmp_path / "target.yaml"),
        "rule": {"name": "replace"},
        "verification": {"reliability": "reliable"},
    }


def test_calibration_takes_bags_that_training_left_out(
    in_bag: Callable[..., Path],
    seeing_options: list[Any],
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_age(read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(read), 2), np.float32), read[:, -1]

    monkeypatch.setattr(CorrectorCheckpoint, "on_onnx", lambda checkpoint: by_age)
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    monkeypatch.setattr("adahi_lab.reporting.replay_figure.draw_replay", lambda *arguments: None)
    params, final, figures = (tmp_path / name for name in ("arm.yaml", "final.yaml", "figures.json"))
    held = in_bag(messages(4))

    how = ["--draft", "--params", params, "--instruction", "wave", "--jpeg-quality", 60]
    run("train", "corrector", in_bag(messages(3)), *seeing_options, *how)
    text = run("thresholds", "--bag", held, "--params", params, "--out", final)
    before, after = (yaml.safe_load(path.read_text()) for path in (params, final))
    assert after["/**/target_verifier"] == before["/**/target_verifier"]
    old, new = (each["/**/draft_policy"]["ros__parameters"] for each in (before, after))
    gate = new.pop("gate")
    assert old.pop("gate")["name"] == gate["name"] == "expected_error"
    assert f"asks where expected_error is above {gate['threshold']:.3g}" in text
    assert {name: new[name] for name in old} == old
    calibration = new["calibration"]
    assert calibration["transmission_rate"] == 0.5  # half of four actions
    assert calibration["measured_rates"]["expected_error"] == pytest.approx(0.5, abs=0.1)
    assert "expected_error" not in calibration["thresholds"]  # which are those of who drafts
    requested = sorted((tmp_path / "arm" / "planned").iterdir())
    assert len(requested) == 2
    run("bag", "evaluate", held, "--params", final, "--json", figures)
    assert sorted((tmp_path / "arm" / "planned").iterdir()) == requested
    methods = json.loads(figures.read_text())["methods"]
    assert list(methods) == ["best", "deviation:replace", "never:replace", "target", "random:replace"]
    rate = calibration["measured_rates"]["expected_error"]
    assert methods["best"]["transmission_rate"] == pytest.approx(rate, abs=0.1)
    other = ["--rate", 0.9, "--instruction", "stop"]
    run("thresholds", "--bag", held, "--params", params, "--out", final, *other)
    often = yaml.safe_load(final.read_text())["/**/draft_policy"]["ros__parameters"]
    assert often["gate"]["threshold"] < gate["threshold"]
    assert often["instruction"] == "stop"
    assert "--params: none.yaml, no such file" in fails("thresholds", "--bag", held, "--params", "none.yaml")
    assert "must be left out where no bag is given" in fails("thresholds", "ball", "--params", params)


def test_a_robot_without_a_draft_is_calibrated(
    in_bag: Callable[..., Path],
    seeing_options: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_age(read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(read), 2), np.float32), read[:, -1]

    monkeypatch.setattr(CorrectorCheckpoint, "on_onnx", lambda checkpoint: by_age)
    params, final = tmp_path / "arm.yaml", tmp_path / "final.yaml"
    run("train", "corrector", in_bag(messages(3)), *seeing_options, "--params", params)
    text = run("thresholds", "--bag", in_bag(messages(4)), "--params", params, "--out", final)
    gate = yaml.safe_load(final.read_text())["/**/draft_policy"]["ros__parameters"]["gate"]
    assert gate["name"] == "expected_error"
    assert f"asks where expected_error is above {gate['threshold']:.3g}" in text


def test_an_unavailable_target_ends_it_and_the_same_command_resumes(
    in_bag: Callable[..., Path],
    seeing_options: list[Any],
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bag = in_bag(messages(3))
    requested: list[Seeing] = []

    def failing(folder: Path, gain: float) -> Seeing:
        requested.append(Seeing(folder, gain, fails_after=30 if len(requested) == 0 else 10**9))
        return requested[-1]

    monkeypatch.setitem(POLICIES.shipped, "seeing", failing)
    words = ["train", "corrector", bag, *seeing_options]
    text = fails(*words)
    assert "adahi: seeing: ws://gpu:8000, dropped the connection; 16 of 33 steps are planned" in text
    assert not (tmp_path / "arm" / "corrector.json").exists()
    run(*words)
    assert [len(each.read) for each in requested] == [16, 17]
    stopped = (tmp_path / "arm" / "corrector.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "arm")
    run(*words)
    assert (tmp_path / "arm" / "corrector.safetensors").read_bytes() == stopped


def test_a_target_that_reads_images_is_calibrated_by_its_recorded_plans(
    in_bag: Callable[..., Path],
    seeing_options: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(POLICIES.shipped, "still", Still)
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    monkeypatch.setattr("adahi_lab.reporting.replay_figure.draw_replay", lambda *arguments: None)
    monkeypatch.setattr("adahi_lab.reporting.calibration_figure.draw_calibrations", lambda *arguments: None)
    (tmp_path / "draft.yaml").write_text("kind: still")
    bag, params, figures = in_bag(messages(3)), tmp_path / "params.yaml", tmp_path / "figures.json"
    pair = ["--draft", tmp_path / "draft", "--target", tmp_path / "target.yaml"]
    stated = ["--instruction", "wave"]
    calibrated = ["thresholds", "--bag", bag, *seeing_options[:2], *pair, *stated, "--out", params]
    run(*calibrated)
    plans = list((tmp_path / "planned").iterdir())
    written = "--params", params, "--json", figures
    words = ["bag", "evaluate", bag, *seeing_options[:2], *pair, *stated, *written]
    words += ["--methods", "target,plan_2,never:replace"]
    run(*words)
    assert list((tmp_path / "planned").iterdir()) == plans  # asked once
    found = json.loads(figures.read_text())
    robot = yaml.safe_load(params.read_text())
    robot["/**"]["ros__parameters"] |= {"verification": {"jpeg_quality": 30}, "instruction": "wave"}
    params.write_text(yaml.safe_dump(robot))
    words = [each for each in words if each not in stated]
    run(*words)
    assert len(list((tmp_path / "planned").iterdir())) == 2  # of other pictures
    assert json.loads(figures.read_text())["costs"]["request_bytes"] < found["costs"]["request_bytes"]
    assert found["steps"] == 35
    assert found["methods"]["target"]["transmission_rate"] == 1.0
    assert 0.5 <= found["methods"]["plan_2"]["transmission_rate"] < 0.7
    assert found["costs"]["request_bytes"] > 2 * 300  # two pictures
