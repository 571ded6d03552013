"""Episodes of a random walk, and an index of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval_index import make_index, save_index

EPISODES, STEPS = 12, 20


def recorded(seed: int = 0, goals: int = 1) -> Trajectories:
    """Walk about; what is done is a smooth function of where, but in the upper half, a toss-up there."""
    draw = np.random.default_rng(seed)
    observations = draw.uniform(-1.0, 1.0, size=(EPISODES, STEPS, 3)).astype(np.float32)
    actions = observations[..., :2] * np.array([1.0, 10.0], np.float32)
    sign = draw.choice([-1.0, 1.0], size=(EPISODES, 1, 1))
    actions = np.where(observations[..., :1] > 0.0, sign * np.array([3.0, 30.0], np.float32), actions)
    ends = STEPS * np.arange(1, EPISODES + 1)
    goal = draw.normal(size=(EPISODES, goals)).astype(np.float32)
    return Trajectories(
        "walk", observations.reshape(-1, 3), actions.reshape(-1, 2).astype(np.float32), goal, ends
    )


def saved(folder: Path, data: Trajectories, most_bytes: int = 2**20) -> Path:
    index = make_index(data, 1, most_bytes)
    sizes = {"observation_dim": 3, "goal_dim": data.goals.shape[1]}
    save_index(folder, "retrieval", index, sizes, {})
    return folder / "retrieval"
