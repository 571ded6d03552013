"""Training of a corrector in simulation, round after round of its own rollouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.evaluation.corrector_data import Examples, Teacher
from adahi_ros.evaluation.episodes import lesson_episodes
from adahi_ros.networks.fitting import Run
from adahi_ros.policy.corrector.checkpoint import load_corrector
from adahi_ros.policy.corrector.corrector import Corrector
from adahi_ros.policy.corrector.network import CorrectorConfig, weights_count
from adahi_ros.policy.corrector.training import export, save_corrector, scales_of, train_corrector
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.recipe import CORRECTOR, CorrectorRecipe
from adahi_ros.tasks import make
from adahi_ros.trajectories import Trajectories


def train_in_simulation(
    task: str,
    target: Policy,
    data: Trajectories,
    recipe: CorrectorRecipe,
    folder: Path,
    run: Run,
    note: Callable[[list[float], int], dict[str, Any]],
    on_episodes: Callable[[int], None] = lambda episodes: None,
) -> list[float]:
    """Train a corrector of a target's plans into a folder; return the losses of the last round.

    Args:
        task: what `make` takes.
        target: whose plans it corrects.
        data: demonstrations, for the units of what it reads.
        recipe: how.
        folder: gets the checkpoint `corrector`.
        run: of the last fit.
        note: returns what the checkpoint is to say of its training, from losses and number of weights.
        on_episodes: called with the number of episodes rolled out so far.
    """
    scales = scales_of(data, with_goal=True)
    signature = target.signature
    config = CorrectorConfig(
        observation_dim=signature.observation_dim,
        goal_dim=signature.goal_dim,
        action_dim=signature.action_dim,
        horizon=signature.horizon,
        **recipe.size,
    )
    low, high = data.actions.min(axis=0), data.actions.max(axis=0)
    teacher = Teacher(target, scales, recipe.samples)
    lessons: list[Examples] = []
    corrector: Corrector | None = None
    losses: list[float] = []
    for round_number in range(recipe.rounds):
        for rate in recipe.asking_rates:
            before = len(lessons) * recipe.episodes
            lesson = teacher.lesson(
                make(task),
                recipe.seed,
                lesson_episodes(recipe.episodes, before),
                rate,
                None if corrector is None else corrector.correct,
                recipe.noise if corrector is None else 0.0,
            )
            lessons.append(lesson)
            on_episodes(before + recipe.episodes)
        examples = Examples.joined(lessons)
        last = round_number == recipe.rounds - 1
        fitting = run if last else replace(run, state=None, on_step=lambda step, loss: None)
        network, losses = train_corrector(
            examples.features, examples.wanted, config.hidden, recipe.fit, fitting
        )
        training = note(losses, weights_count(network)) if last else {}
        action_range = (np.ascontiguousarray(low), np.ascontiguousarray(high))
        save_corrector(folder, CORRECTOR, network, config, scales, action_range, training)
        checkpoint = load_corrector(folder / CORRECTOR)
        export(checkpoint, folder / f"{CORRECTOR}.onnx")
        corrector = Corrector(checkpoint)
    return losses
