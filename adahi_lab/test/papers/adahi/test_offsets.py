"""Training of offsets with which a robot decodes the target's codes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.progress import Progress
from typer.testing import CliRunner

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import DRAFT_CODES
from adahi_lab.figures import Figures
from adahi_lab.methods.method import Method
from adahi_lab.papers.adahi.offsets import train_offsets
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.training import recorded_rollouts
from adahi_lab.training.learn import Lessons
from adahi_lab.training.vqbet_files import load_tokenizer, save_policy
from adahi_lab.training.vqbet_training import CodeFitConfig
from adahi_ros.cli.app import app
from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_torch import load_network


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    for path in asset("checkpoints/ball").glob("*.*"):
        if not path.name.startswith(DRAFT_CODES):
            shutil.copy2(path, tmp_path)
    return tmp_path


@cache
def demonstrations() -> Trajectories:
    return collect_parallel("ball", 10, 0, action_noise=0.1, workers=1).trajectories


def trained(folder: Path, steps: int) -> Figures:
    lessons = Lessons(demonstrations(), load_tokenizer(folder), 6, CodeFitConfig(1))
    return train_offsets(folder, lessons, 16, steps, 0, "test", Progress(disable=True))


def test_the_export_computes_the_same_offsets(folder: Path) -> None:
    trained(folder, 2)
    seen = np.random.default_rng(0).normal(size=(3, 6, 6)).astype(np.float32), np.zeros((3, 2), np.float32)
    codes = np.array([[0, 1], [15, 3], [7, 7]])
    one, other = (
        load_policy(folder / DRAFT_CODES, backend).predict(*seen).offset_at(codes)  # type: ignore[attr-defined]
        for backend in ("torch", "onnxruntime")
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_policies_that_read_different_windows_are_refused(folder: Path) -> None:
    network = load_network(load_checkpoint(folder / "draft"))
    short = type(network)(replace(network.config, window_length=3), network.moments, network.action_scale)
    save_policy(folder, "draft", short, {})
    with pytest.raises(ValueError, match="window_length: the draft's is 3, the target's 6; must be the same"):
        trained(folder, 1)


def test_later_rounds_learn_also_from_episodes_with_the_draft_before(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[tuple[str, int, bool]] = []

    def record(compared: Comparison, method: Method, episodes: int, workers: int) -> tuple[Trajectories, int]:
        recorded.append((method.label, compared.seed, (folder / f"{DRAFT_CODES}.json").exists()))
        return demonstrations(), 0

    monkeypatch.setattr(recorded_rollouts, "record_rollouts", record)
    demonstrations().save(tmp_path / "demos.safetensors")
    given = ["train", "offsets", "ball", "--checkpoints", str(folder), "--steps", "2", "--seed", "3"]
    more = ["--demos", str(tmp_path / "demos.safetensors"), "--rounds", "2"]
    refused = CliRunner().invoke(app, [*given, *more])
    assert "--rounds: 2, needs --rollouts" in str(refused.exception or refused.output)
    done = CliRunner().invoke(app, [*given, *more, "--rollouts", "4"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert recorded == [("Hybrid", 3, False), ("Hybrid codes", 4, True)]
