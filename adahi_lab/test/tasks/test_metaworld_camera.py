"""Meta-World's tables as two cameras see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("metaworld", reason="Meta-World is optional: pip install -r requirements/metaworld.txt")

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import goal_is_for_target, make, names
from adahi_lab.tasks.demonstrations import collect_parallel, seen_by_robots
from adahi_lab.tasks.metaworld import MetaWorld
from adahi_lab.tasks.metaworld_camera import OWN_STATE, SIDE, MetaWorldSeen, MetaWorldView

TASK = "metaworld_seen"
EPISODES = [3, 0, 8]


@pytest.fixture(scope="module")
def view() -> MetaWorldView:
    view, tables = MetaWorldView(), MetaWorld()
    try:
        view.photograph(tables, np.array([0]))
    except RuntimeError as error:
        pytest.skip(str(error))
    return view


def test_drawing_does_not_change_the_episode(view: MetaWorldView) -> None:
    watched, plain = MetaWorld(), MetaWorld()
    for each in (watched, plain):
        each.reset(1, EPISODES)
        for _ in range(5):
            each.step(np.full((3, 4), 0.2))
            if each is watched:
                view.photograph(each, np.arange(3))
    np.testing.assert_array_equal(watched.state, plain.state)


def test_the_robot_observes_only_itself_and_the_target_gets_the_rest() -> None:
    world, plain = make(TASK), MetaWorld()
    assert isinstance(world, MetaWorldSeen)
    for each in (world, plain):
        each.reset(2, EPISODES)
    np.testing.assert_array_equal(world.state, plain.state[:, :OWN_STATE])
    np.testing.assert_array_equal(world.labels, plain.state[:, OWN_STATE : OWN_STATE + 6])
    np.testing.assert_array_equal(world.goal, plain.goal)
    assert world.spec.observation_dim == OWN_STATE
    assert world.spec.images_for_target
    assert goal_is_for_target(TASK)
    assert TASK not in names()  # a view of another task


def test_its_demonstrations_have_pixels_and_labels(view: MetaWorldView, tmp_path: Path) -> None:
    data = collect_parallel(TASK, 3, 0, action_noise=0.0, workers=1).trajectories
    assert data.image_features.dtype == np.uint8
    assert data.image_features.shape == (len(data.actions), 3 * SIDE * 2 * SIDE)
    assert data.labels.shape == (len(data.actions), 6)
    data.save(tmp_path / "demos.safetensors")
    read = Trajectories.load(tmp_path / "demos.safetensors")
    for name in ("image_features", "labels"):
        np.testing.assert_array_equal(getattr(read, name), getattr(data, name))
        assert getattr(read, name).dtype == getattr(data, name).dtype
    robots = seen_by_robots(read, TASK)
    assert robots.image_features.shape[1] == robots.labels.shape[1] == robots.goals.shape[1] == 0
    np.testing.assert_array_equal(read.episodes([0]).labels, read.labels[: read.ends[0]])
