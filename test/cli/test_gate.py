from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from adahi_ros.gates.learned import SIGNS, LearnedGate
from adahi_ros.lab.training.fitting import FitConfig
from adahi_ros.lab.training.train_gate import Lessons

STEPS = 1500


def test_a_gate_is_trained_and_its_reliability_told(
    tmp_path: Path, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = np.random.default_rng(1).normal(size=(STEPS, len(SIGNS)))
    known = Lessons(signs, np.exp(signs[:, 0]), np.arange(STEPS) // 50)
    monkeypatch.setattr("adahi_ros.lab.training.train_gate.lessons", lambda *arguments: known)
    monkeypatch.setattr("adahi_ros.lab.training.train_gate.FIT", FitConfig(300, 64, 1e-2))
    out, picture, figures = (tmp_path / name for name in ("gate.safetensors", "gate.png", "gate.json"))
    result = run("gate", "train", "ball", "--out", out, "--picture", picture, "--json", figures)
    assert result.exit_code == 0
    assert picture.is_file()
    LearnedGate(str(out))
    written = json.loads(figures.read_text())
    assert (written["task"], written["proposer"]) == ("ball", "corrector")
    assert written["rank_correlation"] > 0.9
    assert f"learned {written['rank_correlation']:.2f}; age 1.00" in result.output.replace("\n", " ")


def test_what_cannot_be_trained_is_told(tmp_path: Path, checkpoints: Path, fails: Callable[..., str]) -> None:
    asked = ("gate", "train", "ball", "--out", tmp_path / "gate.safetensors", "--picture", tmp_path / "g.png")
    assert fails(*asked, "--proposer", "draft") == "adahi: proposer: 'draft', must be plan or corrector\n"
    said = fails(*asked, "--checkpoints", checkpoints, "--backend", "torch", "--workers", 1)
    assert said.startswith("adahi: corrector: there is no corrector beside these policies")
