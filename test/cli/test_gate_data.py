"""`adahi gate train --data`, on what a toy robot recorded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adahi_ros import cli
from adahi_ros.bags.bag_dataset import TRAJECTORIES
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.learned import LearnedGate
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.training import train_gate
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.train_gate import lessons


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
    given += [
        "--data",
        tmp_path / "data",
        "--checkpoints",
        folder,
        "--proposer",
        "plan",
        "--backend",
        "torch",
    ]
    return [str(each) for each in ["gate", "train", "toy", *given, "--workers", 1]]


def test_a_gate_is_learned_of_bags_alone(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_gate, "FIT", FitConfig(20, 64))
    figures = tmp_path / "gate.json"
    result = CliRunner().invoke(cli.app, [*words, "--json", str(figures)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    LearnedGate(str(tmp_path / "gate.safetensors"))
    told = json.loads(figures.read_text())
    assert 0 < told["steps"] <= 3 * 29 * 3  # those of a fifth of the episodes, at three rates


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


def test_what_cannot_be_learned_of_is_told(
    words: list[str], fails: Callable[..., str], tmp_path: Path
) -> None:
    said = "there is no corrector beside these policies"
    assert said in fails(*words, "--proposer", "corrector")
    without = [
        word for word in words if word not in ("--checkpoints", words[words.index("--checkpoints") + 1])
    ]
    assert "--checkpoints: none, must be given for toy" in fails(*without)
    words[words.index("toy")] = "ball"
    assert "task: 'ball', must be" in fails(*words)
    words[words.index("--data") + 1] = str(tmp_path)
    assert "make it with 'adahi dataset from-bag'" in fails(*words)
