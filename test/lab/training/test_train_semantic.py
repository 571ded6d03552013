"""What a head learns of: forks that go on by themselves, and mismatches that lead away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_ros.acceptance.semantic import load_semantic_head, save_semantic_head
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training.train_semantic import (
    Mismatches,
    forked,
    lessons,
    ranked_right,
    train_semantic_head,
)


@pytest.mark.parametrize(("task", "actions"), [("ball", 2), ("swarm", 8), ("kitchen", 9), ("metaworld", 4)])
def test_a_fork_goes_on_as_its_world_does_and_leaves_it_alone(task: str, actions: int) -> None:
    if task == "metaworld":
        pytest.importorskip("metaworld")
    world = make(task)
    world.reset(3, [5, 6])
    action = np.full((2, actions), 0.1, np.float32)
    world.step(action)
    before = world.observation.copy()
    fork, same = forked(world), forked(world)
    for _ in range(3):
        fork.step(-action)
    np.testing.assert_array_equal(world.observation, before)
    for _ in range(3):
        world.step(action)
        same.step(action)
    np.testing.assert_array_equal(world.observation, same.observation)
    assert (world.observation != fork.observation).any()


def test_lessons_are_the_same_every_time_and_some_mismatches_lead_away(files: PolicyFiles) -> None:
    one, again = (lessons("ball", files, 1.0, 4, 12, 1) for _ in range(2))
    assert len(one.episode) > 4
    for mine, theirs in zip(vars(one).values(), vars(again).values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (one.kept > 0.0).any()
    assert set(one.episode) <= set(range(3_600_000, 3_600_012))  # of no evaluation


def synthetic(count: int) -> Mismatches:
    """Mismatches that matter where the first sign says so; redrawn lead as far as 1 at most."""
    draw = np.random.default_rng(0)
    signs = draw.normal(size=(count, 3))
    kept = np.where(signs[:, 0] + 0.3 * draw.normal(size=count) > 0.0, 2.0, 0.5)
    episode = np.repeat(np.arange(count // 10), 10)
    return Mismatches(episode, signs, draw.random(count), kept, np.linspace(0.0, 1.0, count))


def test_a_head_learns_what_matters(tmp_path: Path) -> None:
    data = synthetic(1000)
    head, found = train_semantic_head(data)
    assert found["area"] > 0.95 > 0.7 > found["area_of_distance"]
    assert abs(found["expected"] - found["measured"]) < 0.1
    assert found["held_out"] == 200
    path = tmp_path / "head.safetensors"
    save_semantic_head(path, head)
    np.testing.assert_array_equal(load_semantic_head(path).risk(data.signs), head.risk(data.signs))


def test_nothing_is_learned_of_one_kind() -> None:
    data = synthetic(100)
    with pytest.raises(ValueError, match="episodes: 10, must be more: all mismatches are of one kind"):
        train_semantic_head(Mismatches(data.episode, data.signs, data.apart, data.kept * 0, data.redrawn))


def test_the_area_under_roc() -> None:
    truth = np.array([False, False, True, True])
    assert ranked_right(np.array([0.1, 0.2, 0.3, 0.4]), truth) == 1.0
    assert ranked_right(np.array([0.4, 0.3, 0.2, 0.1]), truth) == 0.0
    assert ranked_right(np.zeros(4), truth) == 0.5
    assert np.isnan(ranked_right(np.zeros(2), truth[:2]))
