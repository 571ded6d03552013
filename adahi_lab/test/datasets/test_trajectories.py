from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from adahi_lab.datasets.trajectories import Trajectories


def small() -> Trajectories:
    steps = np.arange(10, dtype=np.float32).reshape(5, 2)
    return Trajectories("toy", steps, -steps[:, :1], np.ones((2, 3), np.float32), np.array([2, 5]))


@pytest.mark.parametrize("goal_dim", [0, 2])
def test_what_was_saved_is_loaded(
    tmp_path: Path, demonstrations: Callable[[int], Trajectories], goal_dim: int
) -> None:
    data = demonstrations(goal_dim)
    data.save(tmp_path / "new" / "demos.safetensors")
    loaded = Trajectories.load(tmp_path / "new" / "demos.safetensors")
    assert loaded.task == "toy"
    assert len(loaded) == len(data) == 12
    for name in ("observations", "actions", "goals", "ends"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(data, name))
        assert getattr(loaded, name).dtype == getattr(data, name).dtype


def test_what_the_target_alone_saw_goes_along_and_is_not_the_robots(tmp_path: Path) -> None:
    plain = small()
    data = replace(plain, image_features=np.arange(15, dtype=np.float32).reshape(5, 3))
    data.save(tmp_path / "seen.safetensors")
    loaded = Trajectories.load(tmp_path / "seen.safetensors")
    np.testing.assert_array_equal(loaded.inputs, np.hstack([data.observations, data.image_features]))
    np.testing.assert_array_equal(loaded.episodes([1]).image_features, data.image_features[2:])
    np.testing.assert_array_equal(loaded.without_images().inputs, plain.observations)
    assert plain.image_features.shape == (5, 0)
    with pytest.raises(ValueError, match="image_features: 4 rows, observations has 5"):
        replace(data, image_features=data.image_features[1:])


def test_a_kill_during_the_write_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "demos.safetensors"
    small().save(path)

    def killed(tensors: object, to: Path, metadata: object) -> None:
        to.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("adahi_lab.datasets.trajectories.save_file", killed)
        with pytest.raises(KeyboardInterrupt):
            replace(small(), task="other").save(path)
    assert Trajectories.load(path).task == "toy"
    replace(small(), task="other").save(path)
    assert Trajectories.load(path).task == "other"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": np.zeros((4, 1))}, "actions: 4 rows, observations has 5"),
        ({"goals": np.zeros((3, 3))}, "goals: 3 rows, ends has 2"),
        ({"ends": np.array([2, 4])}, "ends: must increase from above 0 up to 5"),
        ({"ends": np.array([5, 5])}, "ends: must increase"),
        ({"ends": np.array([0, 5])}, "ends: must increase"),
        ({"ends": np.array([-1, 5])}, "ends: must increase"),
        ({"ends": np.array([], int), "goals": np.zeros((0, 3))}, "ends: must increase"),
        ({"observations": np.full((5, 2), np.nan)}, "observations: holds values that are not finite"),
        ({"actions": np.full((5, 1), np.inf)}, "actions: holds values that are not finite"),
        ({"goals": np.full((2, 3), -np.inf)}, "goals: holds values that are not finite"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(small(), **changes)


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "demos.safetensors"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        Trajectories.load(path)
    small().save(path)
    whole = path.read_bytes()
    tensors = {name: getattr(small(), name) for name in ("observations", "actions", "goals", "ends")}

    def saved(metadata: dict[str, str] | None, **changes: np.ndarray) -> Callable[[], None]:
        return lambda: save_file({**tensors, **changes}, path, metadata=metadata)

    toy = {"adahi": '{"task": "toy"}'}
    for damage in (
        lambda: path.write_bytes(whole[: len(whole) // 2]),
        lambda: path.write_bytes(b""),
        lambda: save_file({"ends": tensors["ends"]}, path, metadata=toy),
        saved(None),
        *(saved({"adahi": text}) for text in ("{}", "no JSON", '{"task": 3}', "[" * 100_000, "[]")),
        saved(toy, ends=np.array([4, 4])),
        saved(toy, ends=tensors["ends"].astype(float)),
        saved(toy, ends=tensors["ends"][None]),
        saved(toy, goals=tensors["goals"].astype(np.complex64)),
        saved(toy, actions=tensors["actions"][:, 0].copy()),
    ):
        damage()
        with pytest.raises(ValueError, match=re.escape(str(path)) + ": not recorded episodes"):
            Trajectories.load(path)


def test_steps_of_a_mask_leave_episodes_of_which_there_is_something() -> None:
    data = small()
    steps, first = len(data.observations), int(data.ends[0])
    kept = np.ones(steps, dtype=bool)
    kept[:first] = False
    kept[first] = False
    left = data.where(kept)
    assert len(left) == len(data) - 1
    np.testing.assert_array_equal(left.observations, data.observations[first + 1 :])
    np.testing.assert_array_equal(left.actions, data.actions[first + 1 :])
    np.testing.assert_array_equal(left.goals, data.goals[1:])
    assert left.ends.tolist() == (data.ends[1:] - first - 1).tolist()
