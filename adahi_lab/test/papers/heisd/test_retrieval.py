"""What was recorded is found where it was recorded; neighbours are of different episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test.papers.heisd.walks import EPISODES, STEPS, recorded, saved

from adahi_lab.papers.heisd.retrieval import load_retrieval
from adahi_ros.core.checkpoint_files import CheckpointError


@pytest.mark.parametrize("goals", [0, 1])
def test_where_an_observation_was_recorded_the_recorded_action_is_found(tmp_path: Path, goals: int) -> None:
    data = recorded(goals=goals)
    policy = load_retrieval(saved(tmp_path, data))
    of_rows = np.repeat(data.goals, STEPS, axis=0)
    found = policy.candidates(policy.signature.observations(data.observations[:, None], of_rows), 2)
    np.testing.assert_array_equal(found[:, 0], data.actions)


def test_actions_are_those_of_the_goal_where_the_robot_reads_one(tmp_path: Path) -> None:
    goals = np.repeat([0.0, 1.0], EPISODES // 2).astype(np.float32)[:, None]
    data = replace(recorded(), goals=goals)
    index = load_retrieval(saved(tmp_path, data)).index
    of_rows = np.repeat(goals, STEPS, axis=0)
    rows = index.nearest(index.queries(data.observations, 1.0 - of_rows), 1)[:, 0]
    np.testing.assert_array_equal(of_rows[rows], 1.0 - of_rows)


def test_neighbours_are_of_different_episodes(tmp_path: Path) -> None:
    index = load_retrieval(saved(tmp_path, recorded())).index
    queries = index.keys[:30]
    rows = index.nearest(queries, 5)
    assert all(len(set(each)) == 5 for each in index.last[rows])
    apart = np.square(index.keys[rows] - queries[:, None]).mean(axis=2)
    assert (np.diff(apart, axis=1) >= 0.0).all()
    np.testing.assert_array_equal(rows[:, 0], np.arange(30))


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("last", lambda values: values[::-1].copy(), "last: must be the row"),
        ("last", lambda values: values + 1, "last: must be the row"),
        ("keys", lambda values: values * np.float32(np.nan), "keys: must be finite"),
        ("scale", lambda values: values * 0.0, "scale, action_scale: must be positive"),
        ("keys", lambda values: values[1:], "keys: of shape"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, name: str, change: object, fault: str) -> None:
    path = saved(tmp_path, recorded())
    file = path.with_suffix(".safetensors")
    tensors = load_file(file)
    tensors[name] = np.ascontiguousarray(change(tensors[name]))  # type: ignore[operator]
    save_file(tensors, file)
    with pytest.raises(CheckpointError, match=fault):
        load_retrieval(path)


def test_another_checkpoint_is_no_index(tmp_path: Path) -> None:
    path = saved(tmp_path, recorded())
    json = path.with_suffix(".json")
    json.write_text(json.read_text().replace('"retrieval"', '"corrector"'))
    with pytest.raises(CheckpointError, match=r"kind: 'corrector', must be 'retrieval'"):
        load_retrieval(path)
