"""LeRobot wrote the dataset in test/data/lerobot: lerobot_fixture.py."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.datasets import lerobot_dataset as lerobot_dataset
from adahi_lab.datasets.lerobot_dataset import load_dataset
from test.policies.damage import edit_in

DATA = Path(__file__).parents[3] / "test/data/lerobot/dataset"
LEFT_OUT = "left out of the observations: observation.images.top"
ROWS = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*left out of the observations")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of LeRobot's, to be changed."""
    return Path(shutil.copytree(DATA, tmp_path / "dataset"))


def rewrite(path: Path, name: str, change: Callable[[list[Any]], object]) -> None:
    """Change a column of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    values = table[name].to_pylist()
    change(values)
    at = table.column_names.index(name)
    pyarrow.parquet.write_table(table.set_column(at, name, pyarrow.array(values)), path)


@needs_pyarrow
def test_episodes_are_read_over_all_files() -> None:
    with pytest.warns(UserWarning, match=LEFT_OUT):
        read = load_dataset(DATA, "drawn")
    assert len(list(DATA.glob("data/*/*.parquet"))) > 1
    assert read.task == "drawn"
    assert read.ends.tolist() == [7, 12, 20]
    assert read.observations.shape == (20, 6)
    assert read.actions.shape == (20, 3)
    assert read.goals.shape == (3, 0)
    assert read.observations.dtype == read.actions.dtype == np.float32
    assert (read.observations[:, 3] == 0.25).all()
    assert (read.actions[:, 2] == -1.5).all()
    stats = json.loads((DATA / "meta/stats.json").read_text())
    for field, values in (
        ("observation.state", read.observations[:, :4]),
        ("observation.environment_state", read.observations[:, 4:]),
        ("action", read.actions),
    ):
        np.testing.assert_array_equal(values.min(axis=0), np.float32(stats[field]["min"]))
        np.testing.assert_allclose(values.mean(axis=0), stats[field]["mean"], rtol=1e-5)


@needs_pyarrow
def test_the_observations_may_be_chosen_and_ordered() -> None:
    all_of_it = load_dataset(DATA, "drawn").observations
    names = ("observation.environment_state", "observation.state")
    turned = load_dataset(DATA, "drawn", names).observations
    np.testing.assert_array_equal(turned, all_of_it[:, [4, 5, 0, 1, 2, 3]])
    with pytest.warns(UserWarning, match="left out .*: observation.state, observation.images.top"):
        alone = load_dataset(DATA, "drawn", names[:1]).observations
    np.testing.assert_array_equal(alone, all_of_it[:, 4:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda info: info.update(codebase_version="v2.1"), r"codebase_version: 'v2.1', must be v3.x"),
        (lambda info: info.pop("features"), "features: missing, must be a mapping"),
        (lambda info: info["features"].pop("action"), "features: no 'action', there are "),
        (
            lambda info: info["features"]["action"].update(shape=[3, 1]),
            r"features: action: shape: \[3, 1\], must be of one size",
        ),
        (
            lambda info: info["features"]["action"].update(dtype="string"),
            "features: action: dtype: 'string', must be",
        ),
        (
            lambda info: [
                info["features"].pop(f"observation.{name}") for name in ("state", "environment_state")
            ],
            "features: none of observation.state, observation.environment_state",
        ),
    ],
)
def test_what_info_json_must_say(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit_in(folder / "meta/info.json", change)
    with pytest.raises(ValueError, match=rf"meta/info\.json: {message}"):
        load_dataset(folder, "drawn")


def test_a_folder_that_is_no_dataset_is_named(folder: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"nowhere/meta/info\.json: no such file; expected the folder"
    ):
        load_dataset(folder / "nowhere", "drawn")
    shutil.rmtree(folder / "meta/episodes")
    with pytest.raises(FileNotFoundError, match=r"meta/episodes: no chunk-\*/file-\*\.parquet"):
        load_dataset(folder, "drawn")
    (folder / "meta/info.json").write_text("{")
    with pytest.raises(ValueError, match=r"meta/info\.json: not JSON"):
        load_dataset(folder, "drawn")


def test_without_pyarrow_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="needs pyarrow; install it with 'pip install pyarrow'"):
        load_dataset(DATA, "drawn")


def _set(row: int, value: Any) -> Callable[[list[Any]], None]:
    return lambda rows: rows.__setitem__(row, value)


@needs_pyarrow
@pytest.mark.parametrize(
    ("file", "column", "change", "message"),
    [
        (ROWS, "action", _set(2, [0.0, 1.0]), r"file-000\.parquet: action: must be 3 numbers in every row"),
        (ROWS, "action", _set(2, None), r"file-000\.parquet: action: must be 3 numbers in every row"),
        (ROWS, "action", _set(2, [0.0, float("nan"), 1.0]), "action: nan in row 2, entry 1, must be finite"),
        (ROWS, "index", _set(0, 5), "data: index: must count 20 rows from 0"),
        (ROWS, "episode_index", _set(2, 1), "data: episode_index: 1 in row 2, must be 0"),
        (
            EPISODES,
            "dataset_to_index",
            _set(0, 6),
            "dataset_from_index, dataset_to_index: must be of at least",
        ),
        (EPISODES, "dataset_to_index", _set(2, 19), "data: index: must count 19 rows"),
        (EPISODES, "episode_index", _set(1, 0), "episode_index: must number the episodes from 0, each once"),
    ],
)
def test_damage_is_named(
    folder: Path, file: str, column: str, change: Callable[[list[Any]], None], message: str
) -> None:
    rewrite(folder / file, column, change)
    with pytest.raises(ValueError, match=message):
        load_dataset(folder, "drawn")


@needs_pyarrow
def test_a_file_that_is_not_parquet_or_lacks_a_column_is_named(folder: Path) -> None:
    edit_in(
        folder / "meta/info.json",
        lambda info: info["features"].update({"observation.state": {"dtype": "float32", "shape": [5]}}),
    )
    with pytest.raises(
        ValueError, match=r"file-000\.parquet: observation\.state: 4 numbers a row, must be 5"
    ):
        load_dataset(folder, "drawn")
    features = {
        "action": {"dtype": "float32", "shape": [3]},
        "observation.effort": {"dtype": "float32", "shape": [2]},
    }
    edit_in(folder / "meta/info.json", lambda info: info.update(features=features))
    with pytest.raises(
        ValueError, match=r"file-000\.parquet: observation\.effort: missing, must be a column"
    ):
        load_dataset(folder, "drawn", ["observation.effort"])
    (folder / ROWS).write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"file-000\.parquet: not a Parquet file"):
        load_dataset(folder, "drawn", ["observation.effort"])


@needs_pyarrow
def test_a_file_of_more_numbers_than_can_be_held_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lerobot_dataset, "MOST_NUMBERS", 200)
    load_dataset(folder, "drawn")
    monkeypatch.setattr(lerobot_dataset, "MOST_NUMBERS", 20)
    with pytest.raises(ValueError, match=r"\.parquet: not a Parquet file \(.* numbers, must be at most 20\)"):
        load_dataset(folder, "drawn")
