# SPDX-License-Identifier: Apache-2.0
"""`adahi lab index`: an index of demonstrations."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval import KIND, LARGEST, Index
from adahi_ros.core.checkpoint_files import FORMAT
from adahi_ros.core.written_files import replacing

LEAST_EPISODES = 8  # more than HeiSD's candidates
FLAT = 1e-6  # standard deviation below which an entry is ignored


def make_index(data: Trajectories, seed: int, most_bytes: int) -> Index:
    """Return an index of episodes.

    Args:
        data: demonstrations, as the robot sees them; without goals for a robot that gets none.
        seed: of the choice of episodes, where not all fit.
        most_bytes: limit for all steps; whole episodes are left out.

    Raises:
        ValueError: too few episodes exist or fit.
    """
    data = _fitting(data, np.random.default_rng([seed, 0]), most_bytes)
    ends = data.ends
    episode = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    seen = np.concatenate([data.observations, data.goals[episode]], axis=1)
    deviation = seen.std(axis=0)
    scale = np.where(deviation > FLAT, deviation, 1.0).astype(np.float32)
    mean = seen.mean(axis=0).astype(np.float32)
    moved = data.actions.std(axis=0)
    return Index(
        mean=mean,
        scale=scale,
        keys=((seen - mean) / scale).astype(np.float32),
        actions=data.actions,
        last=(ends - 1)[episode].astype(np.int64),
        action_scale=np.where(moved > FLAT, moved, 1.0).astype(np.float32),
    )


def save_index(
    folder: Path, name: str, index: Index, sizes: dict[str, int], training: dict[str, Any]
) -> None:
    """Write `NAME.safetensors` and `NAME.json`.

    Args:
        folder: must exist.
        name: of the files.
        index: of demonstrations.
        sizes: observation_dim and goal_dim.
        training: how it was made.
    """
    config = {**sizes, "action_dim": index.actions.shape[1], "steps": len(index.actions)}
    with replacing(folder / f"{name}.safetensors") as partial:
        names = (each.name for each in fields(index))
        save_file({name: np.ascontiguousarray(getattr(index, name)) for name in names}, partial)
    meta = {"format": FORMAT, "kind": KIND, "config": config, "training": training}
    with replacing(folder / f"{name}.json") as partial:
        partial.write_text(json.dumps(meta, indent=2) + "\n")


def _fitting(data: Trajectories, draw: np.random.Generator, most_bytes: int) -> Trajectories:
    width = data.observations.shape[1] + data.goals.shape[1] + data.actions.shape[1]
    most = min(most_bytes // (4 * width + 8), LARGEST)  # with the end of its episode
    lengths = np.diff(data.ends, prepend=0)
    order = draw.permutation(len(lengths))
    kept = np.sort(order[np.cumsum(lengths[order]) <= most])
    if len(kept) < LEAST_EPISODES:
        raise ValueError(f"episodes: {len(kept)} of {len(lengths)} fit, must be at least {LEAST_EPISODES}")
    return data.episodes(kept.tolist())
