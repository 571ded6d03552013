"""Datasets that we write: read again by our reader; LeRobot's own reads them in benchmarks/lerobot_act.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.datasets.dataset_writer import ENVIRONMENT, STATE, save_dataset
from adahi_lab.datasets.lerobot_dataset import load_dataset
from adahi_lab.datasets.trajectories import Trajectories

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
ENDS = np.array([4, 7, 12])


@pytest.fixture
def data() -> Trajectories:
    draw = np.random.default_rng(0)
    shapes = ((12, 5), (12, 1), (3, 2))
    observations, actions, goals = (draw.normal(size=shape).astype(np.float32) for shape in shapes)
    return Trajectories("arm", observations, actions, goals, ENDS)


def columns(folder: Path, part: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = parquet.read_table(folder / part).to_pydict()
    return found


@pytest.mark.parametrize(("joints", "own"), [(2, 2), (0, 5)])
def test_what_is_written_is_read_again(data: Trajectories, tmp_path: Path, joints: int, own: int) -> None:
    folder = tmp_path / "dataset"
    save_dataset(folder, data, 10.0, joints, "lift it")
    read = load_dataset(folder, "arm")
    goals = np.repeat(data.goals, np.diff(ENDS, prepend=0), axis=0)
    np.testing.assert_array_equal(read.observations, np.concatenate([data.observations, goals], axis=1))
    np.testing.assert_array_equal(read.actions, data.actions)
    np.testing.assert_array_equal(read.ends, ENDS)
    features = json.loads((folder / "meta/info.json").read_text())["features"]
    assert features[STATE]["shape"] == [own]
    assert features[ENVIRONMENT]["shape"] == [7 - own]


def test_the_distribution_is_of_all_rows(data: Trajectories, tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    save_dataset(folder, data, 10.0, 0, "lift it")
    stats = json.loads((folder / "meta/stats.json").read_text())
    np.testing.assert_allclose(stats["action"]["std"], data.actions.std(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats[STATE]["q90"], np.percentile(data.observations, 90, axis=0), rtol=1e-6)
    assert stats["action"]["count"] == [12]


def test_without_a_goal_there_is_nothing_beside_the_state(data: Trajectories, tmp_path: Path) -> None:
    save_dataset(tmp_path / "dataset", data.without_goals(), 12.5, 0, "lift it")
    info = json.loads((tmp_path / "dataset/meta/info.json").read_text())
    assert ENVIRONMENT not in info["features"]
    assert info["fps"] == 12.5


def test_what_cannot_be_written_is_reported(data: Trajectories, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^joints: 6, must be from 0 to 5"):
        save_dataset(tmp_path / "dataset", data, 10.0, 6, "lift it")
    with pytest.raises(ValueError, match=r"^fps: 0, must be above 0"):
        save_dataset(tmp_path / "dataset", data, 0, 0, "lift it")
    assert not (tmp_path / "dataset").exists()
    with pytest.raises(FileExistsError, match="is there already"):
        save_dataset(tmp_path, data, 10.0, 0, "lift it")
