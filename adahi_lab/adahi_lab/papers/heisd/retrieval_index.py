# SPDX-License-Identifier: Apache-2.0
"""`adahi lab index`: an index of demonstrations with an estimate of its errors.

The error of a retrieved plan is measured by leave-one-out over episodes, in action scales, over its first
actions.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from scipy.optimize import nnls
from scipy.stats import spearmanr

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval import COMPARED, KIND, LARGEST, Index
from adahi_ros.core.checkpoint_files import FORMAT
from adahi_ros.core.written_files import replacing

LEAST_EPISODES = 8  # more than the queried neighbours
MEASURED = 2000  # steps of the measurement
BATCH = 250  # of these at once
FLAT = 1e-6  # standard deviation below which an entry is ignored


def make_index(
    data: Trajectories, seed: int, neighbours: int, most_bytes: int
) -> tuple[Index, dict[str, float]]:
    """Return an index of episodes, and figures of it.

    Args:
        data: demonstrations, as the robot sees them; without goals for a robot that gets none.
        seed: of the choice of episodes, where not all fit, and of the measured steps.
        neighbours: K.
        most_bytes: limit for all steps; whole episodes are left out.

    Raises:
        ValueError: too few episodes exist or fit.
    """
    draw = np.random.default_rng([seed, 0])
    data = _fitting(data, draw, most_bytes)
    ends = data.ends
    episode = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    seen = np.concatenate([data.observations, data.goals[episode]], axis=1)
    deviation = seen.std(axis=0)
    scale = np.where(deviation > FLAT, deviation, 1.0).astype(np.float32)
    mean = seen.mean(axis=0).astype(np.float32)
    moved = data.actions.std(axis=0)
    index = Index(
        mean=mean,
        scale=scale,
        keys=((seen - mean) / scale).astype(np.float32),
        actions=data.actions,
        last=(ends - 1)[episode].astype(np.int64),
        action_scale=np.where(moved > FLAT, moved, 1.0).astype(np.float32),
        error=np.zeros(2),
    )
    chosen = np.sort(draw.permutation(len(seen))[:MEASURED])
    doubt, squared = _left_out(index, chosen, neighbours)
    error, _ = nnls(doubt, squared)
    index = replace(index, error=error)
    expected = np.sqrt(doubt @ error)
    return index, {
        "episodes": len(ends),
        "steps": len(seen),
        "error": float(np.sqrt(squared.mean())),
        "error_of_mean": float(np.sqrt(np.square(_centred(index, chosen)).mean())),
        "rank_correlation_of_doubt": float(spearmanr(expected, squared).statistic),
    }


def save_index(
    folder: Path, name: str, index: Index, sizes: dict[str, int], training: dict[str, Any]
) -> None:
    """Write `NAME.safetensors` and `NAME.json`.

    Args:
        folder: must exist.
        name: of the files.
        index: of demonstrations.
        sizes: observation_dim, goal_dim, horizon and neighbours.
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


def _left_out(index: Index, chosen: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Return doubt (N, 2) and mean square error (N,) of plans retrieved for rows of other episodes."""
    doubts, errors = [], []
    for start in range(0, len(chosen), BATCH):
        rows = chosen[start : start + BATCH]
        found, apart = index.nearest(index.keys[rows], neighbours, index.last[rows])
        wrong = (index.plans(found[:, 0], COMPARED) - index.plans(rows, COMPARED)) / index.action_scale
        doubts.append(index.doubt(found, apart))
        errors.append(np.square(wrong).mean(axis=(1, 2)))
    return np.concatenate(doubts).astype(np.float64), np.concatenate(errors).astype(np.float64)


def _centred(index: Index, chosen: np.ndarray) -> np.ndarray:
    plans: np.ndarray = (index.plans(chosen, COMPARED) - index.actions.mean(axis=0)) / index.action_scale
    return plans
