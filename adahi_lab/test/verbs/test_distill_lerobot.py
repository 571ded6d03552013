"""`adahi train corrector` on LeRobotDatasets.

LeRobot is not among the packages of the tests. To run the last test, too:
    export PYTHONPATH=$PWD:$(.venv/bin/python -m adahi_lab.peers.environments lerobot_grpc)
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from test.calibration.lerobot_arm import (
    change_info,
    contract_values,
    pictures,
    write_dataset,
)

from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from test.bags.conftest import run

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
needs_lerobot = pytest.mark.skipif(
    importlib.util.find_spec("lerobot") is None, reason="LeRobot is not installed"
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe with a corrector and a draft that are hardly trained."""
    path = tmp_path / "recipe.yaml"
    model = {"seed": 3, "size": {"hidden": 4}, "fit": {"steps": 5, "batch_size": 16}, "samples": 2}
    path.write_text(yaml.safe_dump({"corrector": model, "distilled": model}))
    return path


def corrected(path: Path, horizon: int) -> np.ndarray:
    """Let a trained corrector correct a plan of zeros; return its action."""
    checkpoint = load_corrector(path)
    config: dict[str, Any] = checkpoint.config
    assert config["horizon"] == horizon
    observed = np.zeros((1, config["observation_dim"]), np.float32)
    goal, ahead = np.zeros((1, config["goal_dim"])), np.zeros((1, horizon, config["action_dim"]))
    number = np.ones(1, dtype=np.int64)
    view = PlanView(observed, observed, observed, goal, ahead, number, number)
    return Corrector(checkpoint).correct(view).actions


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that our exporter writes of a simulated robot."""
    folder = tmp_path_factory.mktemp("ball")
    run("data", "simulate", "ball", "--out", folder / "demos.safetensors", "--episodes", 4)
    run("data", "to-lerobot", folder / "demos.safetensors", "--out", folder / "dataset")
    return folder / "dataset"


def test_a_dataset_of_our_exporter_gives_a_corrector_that_runs(
    ball: Path, recipe: Path, tmp_path: Path
) -> None:
    out, params, figures = tmp_path / "out", tmp_path / "params.yaml", tmp_path / "figures.json"
    how = ["--contract", "ball", "--recipe", recipe, "--out", out, "--params", params, "--json", figures]
    output = run("train", "corrector", ball, *how)
    found = json.loads(figures.read_text())["corrector"]
    info = json.loads((ball / "meta/info.json").read_text())
    assert found["episodes"] == info["total_episodes"]
    assert f"{found['examples']:,} examples of {found['episodes']} episodes" in output
    horizon = load_corrector(out / "corrector").config["horizon"]
    assert np.isfinite(corrected(out / "corrector", int(horizon))).all()
    robot = yaml.safe_load(params.read_text())["/**/draft_policy"]["ros__parameters"]
    assert robot["proposer"]["file"] == str(out / "corrector")


def test_what_does_not_fit_is_named(
    ball: Path, recipe: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    how = ["--recipe", recipe, "--out", tmp_path / "out"]
    output = fails("train", "corrector", ball, "--contract", "kitchen", *how)
    assert "info.json: fps: 20, must be 12.5, the fps of the contract" in output
    output = fails("train", "corrector", tmp_path, "--contract", "ball", *how)
    assert f"{tmp_path}: no metadata.yaml, expected the folder of a bag" in output
    old = write_dataset(tmp_path / "old")
    change_info(old, lambda info: info.update(codebase_version="v2.1"))
    output = fails("train", "corrector", old, "--contract", "ball", *how)
    assert "codebase_version: 'v2.1', must be v3.x" in output
    (old / "meta/info.json").unlink()
    output = fails("train", "corrector", old, "--contract", "ball", *how)
    assert "meta/info.json: no such file; expected the folder of a LeRobotDataset" in output
    assert not (tmp_path / "out/corrector.json").exists()


@needs_lerobot
@pytest.mark.parametrize("filmed", [False, True])
def test_an_act_of_lerobot_plans_at_the_rows_of_a_dataset(filmed: bool, recipe: Path, tmp_path: Path) -> None:
    from test.calibration.lerobot_arm import film

    from adahi_ros.policies.remote.lerobot_folder import import_lerobot
    from benchmarks.lerobot_target_conformance import write_policy

    import_lerobot()
    write_policy(tmp_path / "act", "act", tmp_path)
    (tmp_path / "target.yaml").write_text("kind: lerobot\nfolder: act\ndevice: cpu\nrate_hz: 10\n")
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump(contract_values()))
    dataset = write_dataset(tmp_path / "dataset", pictures())
    if filmed:
        film(dataset, pictures())
    out = tmp_path / "out"
    how = ["--contract", tmp_path / "arm.yaml", "--target", tmp_path / "target.yaml", "--recipe", recipe]
    run("train", "corrector", dataset, *how, "--out", out, "--backend", "torch", "--draft")
    assert load_corrector(out / "corrector").training["episodes"] == 3
    assert np.isfinite(corrected(out / "corrector", 8)).all()
    assert load_corrector(out / "draft").config["horizon"] == 1
