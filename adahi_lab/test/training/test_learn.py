"""A draft that learns from corrections: what must never happen to it."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.training import learn_rounds
from adahi_lab.training.fitting import Run
from adahi_lab.training.learn import LearningConfig, Lessons, learn_from, update
from adahi_lab.training.learn_draft import DraftLearner
from adahi_lab.training.learn_rounds import Rounds, learn_in_rounds
from adahi_lab.training.policy_corrections import Corrections
from adahi_lab.training.vqbet_files import load_tokenizer
from adahi_lab.training.vqbet_training import CodeFitConfig
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

H = 3
FIT = CodeFitConfig(10, 64, warmup=0, learning_rate=1e-2)
CONFIG = LearningConfig(steps=80)


@pytest.fixture(scope="module")
def lessons(checkpoints: Path, demonstrations: Callable[[int], Trajectories]) -> Lessons:
    return Lessons(demonstrations(2), load_tokenizer(checkpoints), H, FIT)


@pytest.fixture(scope="module")
def model(checkpoints: Path) -> VQBeT:
    return load_network(load_checkpoint(checkpoints / "draft"))


def replies(data: Trajectories, actions: np.ndarray) -> Corrections:
    """Replies of these actions at every step of some episodes."""
    whole = replace(data, actions=actions.astype(np.float32))
    steps = np.ones(len(actions), dtype=bool)
    return Corrections.of_steps(whole, steps, actions, np.zeros((len(actions), 2), dtype=bool), H)


@pytest.fixture(scope="module")
def sound(demonstrations: Callable[[int], Trajectories]) -> Corrections:
    data = demonstrations(2)
    return replies(data, data.actions)


@pytest.fixture(scope="module")
def garbage(demonstrations: Callable[[int], Trajectories]) -> Corrections:
    """Of a target that is broken: everywhere the same, and far from what was ever demonstrated."""
    data = demonstrations(2)
    return replies(data, np.full_like(data.actions, 2.0))


def same(one: VQBeT, other: VQBeT) -> bool:
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_of_no_corrections_nothing_changes(model: VQBeT, lessons: Lessons, sound: Corrections) -> None:
    found = update(model, lessons, sound.rows(np.zeros(0, dtype=int)), CONFIG, Run(0))
    assert same(found.model, model)
    assert not found.losses
    assert found.figures["why"] == "there is nothing to learn from"
    assert found.figures["acceptance"] is None


def test_what_is_held_out_is_not_rehearsed(
    demonstrations: Callable[[int], Trajectories], lessons: Lessons
) -> None:
    data = demonstrations(2)
    assert len(lessons.held_out) == 30  # one of twelve episodes
    assert len(lessons.rehearsed) == 11 * 30
    np.testing.assert_array_equal(lessons.held_out.observations, data.episodes([9]).observations)
    with pytest.raises(ValueError, match="demos: 1, must be at least 2"):
        Lessons(data.episodes([0]), lessons.tokenizer, H, FIT)


def test_a_folder_gets_the_draft_and_all_beside_it(
    exported: Path, lessons: Lessons, sound: Corrections, garbage: Corrections, tmp_path: Path
) -> None:
    out = tmp_path / "learned"
    found = learn_from(exported, out, lessons, sound, CONFIG, "adahi train policy", Run(3))
    policies = PolicyFiles(out, "onnxruntime").load()
    assert policies.share_codes
    assert policies.draft.digest != PolicyFiles(exported, "onnxruntime").load().draft.digest
    assert same(load_network(load_checkpoint(out / "draft")), found.model)
    reports = load_checkpoint(out / "draft").training["corrections"]
    assert reports["command"] == "adahi train policy"
    # Whoever learns on from there is held to the best there was.
    free = replace(CONFIG, rehearsal=0.0, worse=np.inf)
    forgetful = learn_from(out, out, lessons, garbage, free, "", Run(4))
    assert forgetful.figures["held_out"]["after"] > 1.1 * found.figures["held_out"]["after"]
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    refused = learn_from(out, out, lessons, garbage, replace(CONFIG, worse=0.0, steps=1), "", Run(5))
    assert refused.figures["held_out"]["bound"] == found.figures["held_out"]["after"]
    assert refused.figures["share"] == 0.0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files


HOW = Rounds(rounds=2, episodes=2, ask="hybrid", evaluated=3, seed=4)
FREE = LearningConfig(steps=20, worse=np.inf)
Learners = Callable[..., DraftLearner]


@pytest.fixture(scope="module")
def learner(exported: Path, lessons: Lessons, calibration: Calibration) -> Learners:
    """From rounds to a draft that begins to learn in them."""
    return lambda how=HOW: DraftLearner("ball", exported, lessons, calibration, how, FREE)


@pytest.fixture(scope="module")
def rounds(
    exported: Path, learner: Learners, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("rounds") / "learned"
    return out, learn_in_rounds(learner(), exported, out, HOW, "adahi lab learn")


def test_rounds_tell_every_draft_from_the_first(
    rounds: tuple[Path, dict[str, Any]], exported: Path, lessons: Lessons
) -> None:
    out, figures = rounds
    reports = figures["rounds"]
    assert [each["round"] for each in reports] == [0, 1, 2]
    updates = [each["update"] for each in reports[:-1]]
    assert updates[0]["corrections"] == updates[0]["new"]
    assert updates[1]["corrections"] == updates[0]["new"] + updates[1]["new"]
    assert updates[1]["held_out"]["before"] == updates[0]["held_out"]["after"]
    losses = [each["held_out"][when] for each in updates for when in ("before", "after")]
    assert updates[1]["held_out"]["best"] == min(losses)
    assert [each["share"] for each in updates] == [1.0, 1.0]
    first, last = (load_network(load_checkpoint(folder / "draft")) for folder in (exported, out))
    assert updates[0]["held_out"]["before"] == lessons.forgotten(first)
    assert updates[1]["held_out"]["after"] == lessons.forgotten(last)
    assert reports[0]["looks"]["draft alone"]["transmission_rate"] == 0.0
    assert reports[0]["looks"]["threshold as it was"]["transmission_rate"] == 1.0
    json.dumps(figures, allow_nan=False)


def test_rounds_that_were_stopped_go_on(
    rounds: tuple[Path, dict[str, Any]], exported: Path, learner: Learners, tmp_path: Path
) -> None:
    out, figures = rounds
    again = tmp_path / "again"
    lines: list[str] = []

    def stop(line: str) -> None:
        if line.startswith("round 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_in_rounds(learner(), exported, again, HOW, "adahi lab learn", stop)
    assert not again.exists()
    other = replace(HOW, seed=5)
    with pytest.raises(ValueError, match="from a run with other settings"):
        learn_in_rounds(learner(other), exported, again, other, "adahi lab learn")
    assert learn_in_rounds(learner(), exported, again, HOW, "adahi lab learn", lines.append) == figures
    assert "continues after round 1" in lines
    for name in ("draft.safetensors", "draft.json"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    assert not list(again.glob("*.training.*"))


def test_rounds_of_other_thresholds_or_another_recipe_do_not_go_on(
    exported: Path, lessons: Lessons, calibration: Calibration, tmp_path: Path
) -> None:
    def stop(line: str) -> None:
        raise EOFError

    def learn(lessons: Lessons, calibration: Calibration) -> None:
        learner = DraftLearner("ball", exported, lessons, calibration, HOW, FREE)
        learn_in_rounds(learner, exported, tmp_path / "out", HOW, "", stop)

    with pytest.raises(EOFError):
        learn(lessons, calibration)
    lower = replace(calibration, thresholds=dict.fromkeys(calibration.thresholds, 0.1))
    with pytest.raises(ValueError, match="from a run with other settings"):
        learn(lessons, lower)
    other = copy.copy(lessons)
    other.config = replace(lessons.config, learning_rate=1e-3)
    with pytest.raises(ValueError, match="from a run with other settings"):
        learn(other, calibration)


def test_what_is_gone_on_from_is_all_that_was_kept(exported: Path, learner: Learners) -> None:
    files, first, second = PolicyFiles(exported, "onnxruntime"), learner(), learner()
    first.current_figures(files)
    reports = first.learn(files, 0)
    second.restore(first.state(), {"update": {"held_out": {"best": 1e-3}}})
    second.current_figures(files)
    again = second.learn(files, 1)
    assert again["corrections"] == reports["new"] + again["new"]
    assert again["held_out"]["best"] == 1e-3


def test_gates_are_set_to_a_rate_before_every_round(
    exported: Path, learner: Learners, tmp_path: Path
) -> None:
    how = Rounds(rounds=1, episodes=2, ask="random", rate=0.5, evaluated=4, calibrated=2)
    looks = learn_in_rounds(learner(how), exported, tmp_path / "out", how, "")["rounds"][1]["looks"]
    assert looks["threshold at the rate"]["threshold"] == 0.5
    assert looks["threshold as it was"]["threshold"] == 0.4


def test_a_state_that_is_damaged_is_reported(exported: Path, learner: Learners, tmp_path: Path) -> None:
    staged = tmp_path / "out.training"
    staged.mkdir()
    (staged / learn_rounds.STATE).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a saved run"):
        learn_in_rounds(learner(), exported, tmp_path / "out", HOW, "")


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({"rounds": 0}, "rounds: 0, must be at least 1"),
        ({"episodes": 0}, "episodes: 0, must be at least 1"),
        ({"rate": 1.0}, "rate: 1.0, must be between 0 and 1"),
        ({"ask": "plan_8"}, "must be one that drafts"),
        ({"explore": "nobody"}, "methods: 'nobody', must be of"),
    ],
)
def test_rounds_out_of_range_are_refused(values: dict[str, Any], lines: str, learner: Learners) -> None:
    with pytest.raises(ValueError, match=lines):
        learner(Rounds(**values))


@pytest.mark.parametrize(("values", "lines"), [({"worse": -0.1}, "worse: -0.1"), ({"steps": 0}, "steps: 0")])
def test_ways_to_learn_out_of_range_are_refused(values: dict[str, float], lines: str) -> None:
    with pytest.raises(ValueError, match=lines):
        LearningConfig(**values)  # type: ignore[arg-type]


def test_a_draft_of_another_tokenizer_is_refused(
    exported: Path,
    make_checkpoints: Callable[..., Path],
    lessons: Lessons,
    sound: Corrections,
    tmp_path: Path,
) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(exported, mixed)
    other = make_checkpoints(seed=1)
    for suffix in ("json", "safetensors"):
        shutil.copy2(other / f"tokenizer.{suffix}", mixed)
    with pytest.raises(ValueError, match="tokenizer fingerprint"):
        learn_from(mixed, tmp_path / "out", lessons, sound, CONFIG, "", Run(0))
    assert not (tmp_path / "out").exists()
