"""A LeRobotDataset gives the steps that a robot's bags would give."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from test.calibration.lerobot_arm import (
    CAMERA,
    ENDS,
    ENVIRONMENT,
    FRAME,
    ROWS,
    STATE,
    change_info,
    change_table,
    contract_values,
    film,
    pictures,
    recorded,
    write_dataset,
    write_tasks,
)

from adahi_lab.calibration import lerobot_frames
from adahi_lab.calibration.bag_corrections import driven_steps
from adahi_lab.calibration.lerobot_recording import LeRobotRecording
from adahi_lab.calibration.plan_store import digest_of_bags
from adahi_lab.calibration.recordings import bags_first, read_recordings
from adahi_lab.datasets import dataset_rows
from adahi_lab.datasets.dataset_writer import save_dataset
from adahi_lab.datasets.lerobot_dataset import INTERVENTION
from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.bags.definitions import BagError
from adahi_ros.contract.parsing import parse_contract

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
needs_av = pytest.mark.skipif(importlib.util.find_spec("av") is None, reason="PyAV is not installed")
DATA = Path(__file__).parents[3] / "test/data/lerobot/dataset"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset", pictures())


def read(folder: Path, **changed: Any) -> LeRobotRecording:
    return LeRobotRecording.read_from(folder, parse_contract(contract_values(**changed)))


def test_rows_of_interventions_are_steps_that_a_person_drove(folder: Path) -> None:
    contract = parse_contract(contract_values())
    sources = [write_dataset(folder.parent / "demonstrated"), folder]
    dataset = read_recordings(sources, contract)
    assert not driven_steps(sources, dataset)[1]
    marks = [row in (3, 4, 19) for row in range(ENDS[-1])]
    change_table(folder / ROWS, lambda rows: rows.update({INTERVENTION: marks}))
    feature = {"dtype": "bool", "shape": [1], "names": None}
    change_info(folder, lambda info: info["features"].update({INTERVENTION: feature}))
    driven, said = driven_steps(sources, dataset)
    assert (driven.tolist(), said) == ([False] * ENDS[-1] + marks, True)


def test_rows_become_steps(folder: Path) -> None:
    found, data = read(folder).dataset(None), recorded()
    for name in ("observations", "actions", "ends"):
        np.testing.assert_array_equal(getattr(found.trajectories, name), getattr(data, name))
    assert found.trajectories.task == "arm"
    assert found.instructions == ()
    assert found.places.tolist() == [[0, row] for row in range(20)]
    assert np.diff(found.stamps_ns).tolist() == [100_000_000] * 19
    observed = list(read(folder).observations())
    assert [(each.episode, each.step) for each in observed[4:6]] == [(0, 4), (1, 0)]
    np.testing.assert_array_equal(observed[6].named[STATE], data.observations[6, :4])
    np.testing.assert_array_equal(observed[6].named[ENVIRONMENT], data.observations[6, 4:])
    assert not observed[0].images


def test_columns_are_chosen_by_their_names(folder: Path) -> None:
    names = ["gripper.pos", "wrist.pos", "elbow.pos", "base.pos"]

    def name(info: dict[str, Any]) -> None:
        info["features"][STATE]["names"] = names
        info["features"]["action"]["names"] = {"motors": ["gripper", "wrist"]}

    change_info(folder, name)
    found, data = read(folder).dataset(None).trajectories, recorded()
    np.testing.assert_array_equal(found.observations[:, :4], data.observations[:, 3::-1])
    np.testing.assert_array_equal(found.actions, data.actions[:, ::-1])


def test_a_dataset_of_an_so101_fits_the_contract_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/how_to/run_lerobot.md").read_text()
    contract = parse_contract(yaml.safe_load(page.split("```yaml\n")[1].split("```")[0]))
    joints = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
    numbers = np.random.default_rng(1).normal(size=(9, 12)).astype(np.float32)
    data = Trajectories(
        "so101", numbers[:, :6], numbers[:, 6:], np.zeros((2, 0), np.float32), np.array([4, 9])
    )
    save_dataset(tmp_path / "so101", data, 30.0, 0, "grab it")
    names = [f"{joint}.pos" for joint in joints]
    change_info(
        tmp_path / "so101",
        lambda info: [info["features"][key].update(names=names) for key in (STATE, "action")],
    )
    warned: list[str] = []
    found = LeRobotRecording.read_from(tmp_path / "so101", contract, warned.append).dataset(None).trajectories
    np.testing.assert_array_equal(found.observations, data.observations)  # degrees, as they are
    np.testing.assert_array_equal(found.actions, data.actions)
    assert not warned


def test_strange_names_are_reported_and_the_order_counts(folder: Path) -> None:
    change_info(folder, lambda info: info["features"]["action"].update(names=["one", "two"]))
    warned: list[str] = []
    found = LeRobotRecording.read_from(folder, parse_contract(contract_values()), warned.append)
    np.testing.assert_array_equal(found.actions, recorded().actions)
    (warning,) = warned
    assert warning.endswith(
        "features: action: names: one, two; the contract's are wrist, gripper: their order counts, check it"
    )


def test_a_dataset_of_our_exporter_has_the_goals_after_the_numbers(
    tmp_path: Path, contract: Any, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2)
    save_dataset(tmp_path / "toy", data, 20.0, 2, "go")
    found = LeRobotRecording.read_from(tmp_path / "toy", contract).dataset(None).trajectories
    for name in ("observations", "actions", "goals", "ends"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))


def test_each_row_has_the_instruction_of_its_task(folder: Path) -> None:
    write_tasks(folder, ["stack", " ", "open"], [0] * 3 + [2] * 4 + [1] * 2 + [2] * 11)
    found = read(folder).dataset("")
    assert found.instructions == ("stack",) * 3 + ("open",) * 15
    assert found.trajectories.ends.tolist() == [3, 5, 7, 18]
    assert found.places[:, 1].tolist() == [*range(7), *range(9, 20)]
    whole = read(folder).dataset("wave", 3)
    assert whole.instructions[7:9] == ("wave", "wave")
    assert (whole.places[:, 0] == 3).all()
    write_tasks(folder, [""], [0] * 20)
    with pytest.raises(
        ValueError, match=r"dataset: no task has an instruction, must have one; or give --ins"
    ):
        read(folder).dataset("")


def test_stored_images_are_read_where_the_target_wants_them(folder: Path) -> None:
    for each, image in zip(read(folder).observations([CAMERA]), pictures(), strict=True):
        np.testing.assert_array_equal(each.images[CAMERA], image)


def test_what_lerobot_wrote_is_read_over_all_files() -> None:
    values = contract_values()
    values["observations"][ENVIRONMENT]["select"] = ["state.0:2"]
    values["actions"]["action"]["select"] += ["positions.base"]
    found = LeRobotRecording.read_from(DATA, parse_contract(values))
    assert found.dataset("").trajectories.ends.tolist() == [7, 12, 20]
    assert set(found.dataset("").instructions) == {"draw"}
    assert {each.images[CAMERA].shape for each in found.observations([CAMERA])} == {(*FRAME, 3)}


@needs_av
def test_videos_are_decoded_at_the_times_of_the_rows(folder: Path) -> None:
    film(folder, pictures())
    observed = list(read(folder).observations([CAMERA]))
    assert len(observed) == ENDS[-1]
    shades = pictures().mean(axis=(1, 2, 3))
    nearest = [int(np.argmin(np.abs(each.images[CAMERA].mean() - shades))) for each in observed]
    assert nearest == list(range(ENDS[-1]))
    change_table(folder / ROWS, lambda rows: rows.update(timestamp=[9.0] * 20))
    with pytest.raises(ValueError, match=r"file-000\.mp4: no frame within 0\.0500 s of 9\.0000 s"):
        next(read(folder).observations([CAMERA]))
    (folder / f"videos/{CAMERA}/chunk-000/file-000.mp4").write_bytes(b"no video")
    with pytest.raises(ValueError, match=r"file-000\.mp4: "):
        next(read(folder).observations([CAMERA]))
    (folder / f"videos/{CAMERA}/chunk-000/file-000.mp4").unlink()
    with pytest.raises(FileNotFoundError, match=r"file-000\.mp4: no such file"):
        next(read(folder).observations([CAMERA]))


@needs_av
def test_a_large_video_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film(folder, pictures())
    monkeypatch.setattr(lerobot_frames, "MAX_PIXELS", 100)
    with pytest.raises(ValueError, match=r"mp4: 40 x 32 pixels, must be at least one and at most 100"):
        next(read(folder).observations([CAMERA]))


def test_videos_need_a_package_that_the_error_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_info(folder, lambda info: info["features"][CAMERA].update(dtype="video"))
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match=r"dtype: 'video' needs PyAV; install it with 'pip install av'"):
        next(read(folder).observations([CAMERA]))


@pytest.mark.parametrize(
    ("feature", "values", "message"),
    [
        (STATE, {"shape": [5]}, r"features: observation\.state: shape: \[5\], must be \[4\]"),
        ("action", {"shape": [3]}, r"features: action: shape: \[3\], must be \[2\], as in the contract"),
        ("action", {"dtype": "string"}, r"features: action: dtype: 'string', must be of numbers"),
        (CAMERA, {"dtype": "depth"}, r"images\.top: dtype: 'depth', must be 'image' or 'video', .* are none"),
    ],
)
def test_a_feature_that_does_not_fit_is_named(
    folder: Path, feature: str, values: dict[str, Any], message: str
) -> None:
    change_info(folder, lambda info: info["features"][feature].update(values))
    with pytest.raises(ValueError, match=message):
        next(read(folder).observations([CAMERA]))


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"info\.json: fps: 10, must be 30, the fps of the contract"):
        read(folder, fps=30.0)
    change_info(folder, lambda info: info["features"].pop(ENVIRONMENT))
    with pytest.raises(ValueError, match=r"must have observation\.state, observation\.environment_state of "):
        read(folder)
    change_info(folder, lambda info: info.update(codebase_version="v2.1"))
    with pytest.raises(ValueError, match=r"codebase_version: 'v2\.1', must be v3\."):
        read(folder)


def test_a_damaged_row_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_table(folder / ROWS, lambda rows: rows[CAMERA].__setitem__(1, {"bytes": b"x", "path": None}))
    images = read(folder).observations([CAMERA])
    next(images)
    with pytest.raises(ValueError, match=r"observation\.images\.top: row 1: data: 1 bytes, must be a whole"):
        next(images)
    change_table(folder / ROWS, lambda rows: rows[CAMERA].__setitem__(1, {"bytes": None, "path": "a.png"}))
    images = read(folder).observations([CAMERA])
    next(images)
    with pytest.raises(ValueError, match=r"no bytes in row 1, must be a PNG or JPEG file"):
        next(images)
    change_table(folder / ROWS, lambda rows: rows.pop(CAMERA))
    with pytest.raises(ValueError, match=r"observation\.images\.top: missing, must be a column"):
        next(read(folder).observations([CAMERA]))
    write_tasks(folder, ["go"], [0] * 19 + [7])
    with pytest.raises(ValueError, match=r"task_index: 7 in row 19, must be one of meta/tasks\.parquet"):
        read(folder).dataset("")
    write_tasks(folder, ["go" * 400], [0] * 20)
    with pytest.raises(ValueError, match=r"tasks\.parquet: __index_level_0__: 800 characters in row 0, must"):
        read(folder).dataset("")
    monkeypatch.setattr(dataset_rows, "MOST_TASKS", 1)
    write_tasks(folder, ["go", "come"], [0] * 20)
    with pytest.raises(ValueError, match=r"tasks\.parquet: more than 1 tasks, must be at most that"):
        read(folder).dataset("")
    (folder / "meta/tasks.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"tasks\.parquet: no such file; the target reads an inst"):
        read(folder).dataset("")


def test_bags_and_datasets_are_joined(
    bag: Path, contract: Any, tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2)
    save_dataset(tmp_path / "toy", data, 20.0, 2, "go")
    sources = bags_first([tmp_path / "toy", bag, tmp_path / "toy"])
    assert sources == [bag, tmp_path / "toy", tmp_path / "toy"]
    found = read_recordings(sources, contract)
    assert len(found.trajectories) == 36
    assert np.bincount(found.places[:, 0]).tolist() == [360] * 3
    np.testing.assert_array_equal(found.trajectories.actions[360:720], data.actions)
    assert [each["steps"] for each in found.summary["bags"]] == [360] * 3
    with pytest.raises(BagError):
        read_recordings([tmp_path / "nothing"], contract)


def test_other_rows_or_images_have_another_digest(folder: Path, tmp_path: Path) -> None:
    same = write_dataset(tmp_path / "again", pictures())
    digests = digest_of_bags([folder, same])
    assert digests[0] == digests[1]
    change_table(folder / ROWS, lambda rows: rows["action"].__setitem__(0, [0.0, 0.0]))
    assert digest_of_bags([folder]) != digests[:1]
