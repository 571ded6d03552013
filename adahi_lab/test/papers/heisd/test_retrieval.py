"""What was recorded comes back where it was recorded, and neighbours tell where it is to be doubted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test.papers.heisd.walks import STEPS, T, recorded, saved

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval import Retrieval, load_retrieval
from adahi_ros.core.checkpoint_files import CheckpointError

NO_DRAWS = np.zeros((1, 0))


def proposed(policy: Retrieval, data: Trajectories, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    goals = np.repeat(data.goals, STEPS, axis=0)[rows]
    observations = policy.signature.observations(data.observations[rows][:, None], goals)
    proposal = policy.propose(observations, np.zeros((len(rows), 0)))
    assert proposal.expected_error is not None
    return proposal.actions, proposal.expected_error


@pytest.mark.parametrize("goals", [0, 1])
def test_where_an_observation_was_recorded_the_recorded_plan_is_retrieved(tmp_path: Path, goals: int) -> None:
    data = recorded(goals=goals)
    policy = load_retrieval(saved(tmp_path, data))
    rows = np.arange(len(data.observations))
    plans, _ = proposed(policy, data, rows)
    for row in rows:
        end = STEPS * (row // STEPS + 1)
        expected = data.actions[np.minimum(row + np.arange(T), end - 1)]
        np.testing.assert_array_equal(plans[row], expected)


def test_neighbours_are_of_different_episodes_and_may_leave_one_out(tmp_path: Path) -> None:
    data = recorded()
    index = load_retrieval(saved(tmp_path, data)).index
    queries = index.keys[:30]
    rows, apart = index.nearest(queries, 5)
    assert all(len(set(each)) == 5 for each in index.last[rows])
    assert (np.diff(apart, axis=1) >= 0.0).all()
    np.testing.assert_array_equal(rows[:, 0], np.arange(30))
    without, _ = index.nearest(queries, 5, without=index.last[:30])
    assert not (index.last[without] == index.last[:30, None]).any()


def test_it_is_a_policy_like_any_other(tmp_path: Path) -> None:
    policy = load_retrieval(saved(tmp_path, recorded()))
    assert policy.signature.horizon == T
    nothing = policy.propose(policy.signature.nothing(), NO_DRAWS)
    policy.check(nothing.actions)


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
