"""A draft that learns from corrections: what must never happen to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.training.fitting import Run
from adahi_lab.training.learn import LearningConfig, Lessons, learn_from, update
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


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({"worse": -0.1}, "worse: -0.1"),
        ({"steps": 0}, "steps: 0"),
        ({"rehearsal": 1.5}, "rehearsal: 1.5, must be 0 to 1"),
        ({"rehearsal": float("nan")}, "rehearsal: nan"),
    ],
)
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
