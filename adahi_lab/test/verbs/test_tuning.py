from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from test.cli.conftest import Fails, Measured

SPACE = {"train": [], "methods": {"adahi": {"threshold": {"low": 0.1, "high": 2.0}}}, "episodes": 2}


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.yaml"
    path.write_text(yaml.safe_dump(SPACE))
    return path


def test_what_is_found_is_what_evaluate_takes(
    exported: Path, calibrated: Path, space: Path, tmp_path: Path, measured: Measured
) -> None:
    pytest.importorskip("optuna", reason="pip install -r requirements/tune.txt")
    out = tmp_path / "out"
    toys = ["--checkpoints", exported, "--calibration", calibrated, "--workers", 1]
    tuned, found = measured("lab", "tune", "ball", "--space", space, "--trials", 2, "--out", out, *toys)
    assert "trial 1" in tuned.output
    assert [row["state"] for row in found["trials"]] == ["complete", "complete"]
    best = found["trials"][found["best"]]
    assert found["costs"]["cpu_s"] == pytest.approx(sum(row["costs"]["cpu_s"] for row in found["trials"]))
    parameters = yaml.safe_load((out / "best/ball.yaml").read_text())["/**"]["ros__parameters"]
    threshold = float(f"{best['params']['threshold.adahi']:.6g}")
    assert parameters["gate"] == {"name": "deviation", "threshold": threshold}
    kept = ["--checkpoints", out / "best/checkpoints", "--calibration", out / "best/ball.yaml"]
    _, evaluated = measured("evaluate", "ball", "--methods", "adahi", "--episodes", 2, "--workers", 1, *kept)
    assert evaluated["methods"]["adahi"]["threshold"] == threshold


def test_what_cannot_be_searched_is_reported_before_anything_is_started(
    exported: Path,
    calibrated: Path,
    space: Path,
    tmp_path: Path,
    fails: Fails,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    toys = ["--checkpoints", exported, "--calibration", calibrated, "--out", out]
    assert "--space: nowhere.yaml, no such file" in fails(
        "lab", "tune", "ball", "--space", "nowhere.yaml", *toys
    )
    monkeypatch.setitem(sys.modules, "optuna", None)
    for name in [name for name in sys.modules if name.startswith(("adahi_lab.tuning.", "optuna."))]:
        monkeypatch.delitem(sys.modules, name)
    output = fails("lab", "tune", "ball", "--space", space, *toys)
    assert "optuna: must be installed to tune: pip install -r requirements/tune.txt" in output
    assert not out.exists()


def test_the_password_of_a_database_is_neither_reported_nor_kept(
    exported: Path,
    calibrated: Path,
    space: Path,
    tmp_path: Path,
    fails: Fails,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = pytest.importorskip("adahi_lab.tuning.search", reason="pip install -r requirements/tune.txt")
    url, shown = "none://somebody:secret@host/tuning", "none://somebody:***@host/tuning"
    toys = ["--checkpoints", exported, "--calibration", calibrated, "--out", tmp_path / "out"]
    arguments = ["lab", "tune", "ball", "--space", space, "--storage", url, *toys]
    monkeypatch.setattr(sys, "argv", ["adahi", *map(str, arguments)])
    searched = Mock(wraps=search.run)
    monkeypatch.setattr(search, "run", searched)
    output = fails(*arguments)
    assert f"storage: '{shown}', cannot be opened: " in output
    assert "secret" not in output
    plan = searched.call_args.args[0]
    assert plan.storage == url
    assert f"--storage {shown}" in plan.ground.command.replace("'", "")
