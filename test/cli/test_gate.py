from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.bags.bag_dataset import TRAJECTORIES
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.learned import SIGNS, LearnedGate
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.training import train_gate
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.train_gate import Lessons, lessons
from test.cli.conftest import Fails, Measured

STEPS = 1500


def test_a_gate_is_trained_and_its_reliability_reported(
    tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = np.random.default_rng(1).normal(size=(STEPS, len(SIGNS)))
    known = Lessons(signs, np.exp(signs[:, 0]), np.arange(STEPS) // 50)
    monkeypatch.setattr(train_gate, "lessons", lambda *arguments: known)
    monkeypatch.setattr(train_gate, "FIT", FitConfig(300, 64, 1e-2))
    out, picture = tmp_path / "gate.safetensors", tmp_path / "gate.png"
    result, written = measured("gate", "train", "ball", "--out", out, "--picture", picture)
    assert picture.is_file()
    LearnedGate(str(out))
    assert (written["task"], written["proposer"]) == ("ball", "corrector")
    assert written["rank_correlation"] > 0.9
    assert f"learned {written['rank_correlation']:.2f}; age 1.00" in result.output.replace("\n", " ")


def test_what_cannot_be_trained_is_reported(tmp_path: Path, checkpoints: Path, fails: Fails) -> None:
    verb = ("gate", "train", "ball", "--out", tmp_path / "gate.safetensors", "--picture", tmp_path / "g.png")
    assert fails(*verb, "--proposer", "draft") == "adahi: proposer: 'draft', must be plan or corrector\n"
    output = fails(*verb, "--checkpoints", checkpoints, "--backend", "torch", "--workers", 1)
    assert output.startswith("adahi: corrector: there is no corrector beside these policies")


@pytest.fixture(scope="module")
def folder(make_checkpoints: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draft and target, and one that plans eight actions."""
    folder = tmp_path_factory.mktemp("policies") / "toy"
    shutil.copytree(make_checkpoints(), folder)
    (folder / "plans").mkdir()
    for path in make_checkpoints(chunk_length=8).iterdir():
        if path.name.startswith(("target", "tokenizer")):
            shutil.copy(path, folder / "plans")
    return folder


@pytest.fixture
def words(demonstrations: Callable[[int], Trajectories], folder: Path, tmp_path: Path) -> list[str]:
    (tmp_path / "data").mkdir()
    demonstrations(2).save(tmp_path / "data" / TRAJECTORIES)
    given = ["--out", tmp_path / "gate.safetensors", "--picture", tmp_path / "gate.png"]
    given += ["--data", tmp_path / "data", "--checkpoints", folder, "--proposer", "plan"]
    return [str(each) for each in ["gate", "train", "toy", *given, "--backend", "torch", "--workers", 1]]


def test_a_gate_is_learned_of_bags_alone(
    words: list[str], tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_gate, "FIT", FitConfig(20, 64))
    _, result = measured(*words)
    LearnedGate(str(tmp_path / "gate.safetensors"))
    assert 0 < result["steps"] <= 3 * 29 * 3  # those of a fifth of the episodes, at three rates


def test_a_recorded_episode_is_for_one_purpose_at_every_rate(
    folder: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2).episodes([0, 1, 2])
    learned = lessons(data, PolicyFiles(folder, "torch"), "plan", 1)
    assert set(learned.episode) == {0, 1, 2}
    counts = np.bincount(learned.episode)
    steps = np.diff(data.ends, prepend=0)
    assert (counts > 2 * (steps - 8)).all()  # of all three rates
    assert (counts <= 3 * steps).all()
    assert np.isfinite(learned.harm).all()


def test_what_cannot_be_learned_of_is_reported(words: list[str], fails: Fails, tmp_path: Path) -> None:
    output = "there is no corrector beside these policies"
    assert output in fails(*words, "--proposer", "corrector")
    without = [
        word for word in words if word not in ("--checkpoints", words[words.index("--checkpoints") + 1])
    ]
    assert "--checkpoints: none, must be given for toy" in fails(*without)
    words[words.index("toy")] = "ball"
    assert "task: 'ball', must be" in fails(*words)
    words[words.index("--data") + 1] = str(tmp_path)
    assert "make it with 'adahi data from-bag'" in fails(*words)
