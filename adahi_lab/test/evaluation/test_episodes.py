from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.evaluation.episodes import HELD_OUT_SEED_OFFSET, calibration_episodes, evaluation_episodes
from adahi_lab.tasks import make, names
from adahi_lab.tasks.camera import CameraTask
from adahi_lab.tasks.task_interface import Task
from adahi_lab.training.recipes import load_recipe
from adahi_ros.core.assets import asset

SEEDS = 3
EPISODES = 10


def starts(task: Task, seed: int, episodes: range) -> set[bytes]:
    if isinstance(task, CameraTask):  # starts as what it looks at does, and takes its time to
        task = task.watched
    task.reset(seed, episodes)
    return {row.tobytes() for row in np.concatenate([task.observation, task.goal], axis=1)}


@pytest.mark.parametrize("name", names())
def test_nothing_is_measured_where_a_demonstration_starts(name: str) -> None:
    recipe, task = load_recipe(asset(f"config/recipes/{name}.yaml")).demonstrations, make(name)
    seen = starts(task, recipe.seed, range(recipe.episodes))
    assert len(seen) == recipe.episodes
    for seed in range(recipe.seed, recipe.seed + SEEDS):
        calibrated = starts(task, seed, calibration_episodes(EPISODES))
        evaluated = starts(task, seed, evaluation_episodes(EPISODES))
        held_out = starts(task, HELD_OUT_SEED_OFFSET + seed, range(EPISODES))
        together = calibrated | evaluated | held_out
        assert len(together) == 3 * EPISODES  # nor does one start like another
        assert seen.isdisjoint(together)
