# SPDX-License-Identifier: Apache-2.0
"""What an expert would do in a target's own states (DAgger; Ross et al., AISTATS 2011).

Noise on an expert's actions shows states beside its path. A target's errors are not noise: they add up, and
lead to other states. So the target acts, and the expert is asked at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.history import History
from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.demonstrations import in_batches
from adahi_lab.tasks.episodes import episodes, seen_by_target
from adahi_lab.training.fitting import Run
from adahi_lab.training.flow_files import save_flow
from adahi_lab.training.flow_training import train_flow
from adahi_lab.training.recipes import TARGET, ModelRecipe, OwnStatesRecipe
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.networks.onnx_export import export

FIRST = 500_000  # added to the numbers of lessons, so that none is one of a student's


def with_own_states(
    task: str,
    data: Trajectories,
    window_length: int,
    model: ModelRecipe[Any],
    recipe: OwnStatesRecipe,
    state: Callable[[str], Path],
    workers: int = 1,
    on_episodes: Callable[[int], None] = lambda episodes: None,
) -> Trajectories:
    """Return demonstrations, and the expert's actions in states of targets that were trained on the way.

    Args:
        task: see `own_states`.
        data: demonstrations.
        window_length: of the target.
        model: recipe of the target.
        recipe: rounds.
        state: where a stopped run keeps a part, by its name.
        workers: processes.
        on_episodes: called with the number of episodes that are done.
    """
    about = repr((asdict(model), window_length, asdict(recipe))).encode()
    digest = blake2b(about + data.actions.tobytes(), digest_size=8).hexdigest()
    for number in range(recipe.rounds):
        path = state(f"own-states-{digest}-{number}")
        before = number * recipe.episodes
        if not path.is_file():
            with TemporaryDirectory() as folder:
                fit = replace(model.fit, steps=recipe.steps)
                target, _ = train_flow(data, window_length, model.size, fit, Run(model.seed))
                early = Path(folder) / TARGET
                save_flow(early.parent, early.name, target, {})
                export(load_flow(early), early.with_suffix(".onnx"))
                seen = own_states(task, early, recipe.episodes, model.seed, before, workers)
            seen.save(path)
        data = Trajectories.joined([data, Trajectories.load(path)])
        on_episodes(before + recipe.episodes)
    return data


def own_states(
    task: str, target: Path, episodes: int, seed: int, before: int = 0, workers: int = 1
) -> Trajectories:
    """Run a target, the first action of a fresh plan at every step; return the expert's actions there.

    Args:
        task: what `make` and `make_expert` take; without images.
        target: its checkpoint.
        episodes: how many to run; failed ones are kept.
        seed: of episodes and plans.
        before: episodes of earlier rounds.
        workers: processes.

    Raises:
        ValueError: no such task, or its target reads images.
    """
    if make(task).spec.images_for_target:
        raise ValueError(f"own_states: {task}, must be left out for a target with images")
    first = FIRST + lesson_episodes(1, before)[0]
    return Trajectories.joined(in_batches(_run, (task, target, seed), episodes, workers, None, first))


def _run(name: str, target: Path, seed: int, numbers: Sequence[int]) -> Trajectories:
    task, expert, policy = make(name), make_expert(name), load_policy(target, "onnxruntime")
    draws = EpisodeStreams(seed, "own_states", numbers, policy.draws)
    history = History(policy.signature, len(numbers))
    rows: list[tuple[np.ndarray, ...]] = []
    for active in episodes(task, seed, numbers, expert):
        rows.append((active, task.observation, expert.act(task).astype(np.float32)))
        task.step(policy.propose(history.push(seen_by_target(task)), draws.next()).actions[:, 0])
    active, seen, wanted = (np.stack(column, axis=1) for column in zip(*rows, strict=True))
    goals, ends = task.goal.astype(np.float32), np.cumsum(active.sum(axis=1))
    return Trajectories(task.spec.name, seen[active], wanted[active], goals, ends)
