# SPDX-License-Identifier: Apache-2.0
"""Specialised drafts of tokens: the shipped draft, trained on with demonstrations of one kind of task.

The kinds are groups of near goals (`by_goal`). A draft does not read the goal, so a specialised one should be
right more often where the task is of its kind, and less often elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist
from torch import Tensor

from adahi_lab.papers.tokens.token_checkpoint import load_tokens
from adahi_lab.papers.tokens.token_network import TokenNetwork
from adahi_lab.papers.tokens.token_torch import load_network, save_tokens
from adahi_lab.tasks.demonstrations import collect_parallel, seen_by_robots
from adahi_lab.training.fitting import FitConfig, Run, fit
from adahi_lab.training.step_dataset import action_chunks, step_goals, window_indices

SEED, KINDS = 3, 2
DRAFT, GENERAL = "draft", "general"
MEANS_ROUNDS = 50
FIT = FitConfig(steps=600, batch_size=64, learning_rate=1e-3, average=0.99)


def train_drafters(
    task: str, folder: Path, out: Path, episodes: int, command: str, say: Callable[[str], None]
) -> None:
    """Write a draft for each kind of task, and the general one, into a folder with tokenizer and target.

    The general draft is trained on in the same way, with all demonstrations.

    Args:
        task: a key of the tasks.
        folder: of the shipped draft and its target.
        out: new folder.
        episodes: demonstrated.
        command: noted in the checkpoints.
        say: called with the progress.
    """
    out.mkdir(parents=True)
    for path in [*folder.glob("tokenizer.*"), *folder.glob("target.*")]:
        shutil.copy2(path, out)
    data = collect_parallel(task, episodes, SEED, action_noise=0.0).trajectories
    kinds = by_goal(data.goals, KINDS)
    visible, checkpoint = seen_by_robots(data, task), load_tokens(folder / DRAFT)
    codec, length = checkpoint.codec, checkpoint.sizes.window_length
    for name, which in {
        **{f"{DRAFT}_{kind}": (kinds == kind).nonzero()[0] for kind in range(KINDS)},
        GENERAL: range(len(kinds)),
    }.items():
        own = visible.episodes(list(map(int, which)))
        observations, goals = torch.from_numpy(own.inputs), torch.from_numpy(step_goals(own))
        rows = torch.from_numpy(window_indices(own, length))
        codes = torch.from_numpy(codec.encode(action_chunks(own, codec.chunk_length)))
        network = load_network(checkpoint).train().requires_grad_(True)
        loss = partial(_loss, network, observations, rows, goals, codes)
        losses = fit(network, loss, len(rows), FIT, Run(SEED), {"drafter": name})
        made = {"command": command, "seed": SEED, "steps": FIT.steps, "loss": losses[-1]}
        save_tokens(out, name, network.eval(), made)
        say(f"{name}: {len(which)} demonstrations, loss {losses[0]:.2f} to {losses[-1]:.2f}")


def _loss(
    network: TokenNetwork, observations: Tensor, rows: Tensor, goals: Tensor, codes: Tensor, batch: Tensor
) -> Tensor:
    logits, _ = network.logits(observations[rows[batch]], goals[batch], codes[batch])
    return F.cross_entropy(logits.flatten(0, 1), codes[batch].flatten())


def by_goal(goals: np.ndarray, kinds: int) -> np.ndarray:
    """Return the kind of each demonstration, (E,), by its goal (E, G): those with near goals share one.

    Raises:
        ValueError: there are no goals, or fewer than kinds.
    """
    goals = goals.astype(np.float64)
    if goals.shape[1] == 0 or len(np.unique(goals, axis=0)) < kinds:
        raise ValueError(f"task: its demonstrations have fewer goals than {kinds}, the kinds")
    middles = goals[:1]
    for _ in range(1, kinds):  # the next is the furthest from the others
        furthest = cdist(goals, middles).min(axis=1).argmax()
        middles = np.concatenate([middles, goals[furthest : furthest + 1]])
    _, found = kmeans2(goals, middles, MEANS_ROUNDS, minit="matrix")
    return np.asarray(found)
