# SPDX-License-Identifier: Apache-2.0
"""Compares a corrector trained only on recordings with that of simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.calibration.target_plans import plan_recorded
from adahi_ros.lab.evaluation.episodes import lesson_episodes
from adahi_ros.lab.evaluation.loaded_policies import Bench
from adahi_ros.lab.methods.actors import target_of
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.tasks import goal_is_for_target, make
from adahi_ros.lab.training.fitting import Run
from adahi_ros.lab.training.policy_corrections import recorded_episodes
from adahi_ros.lab.training.recipes import CORRECTOR, CorrectorRecipe
from adahi_ros.lab.training.recorded_rollouts import FIRST_EPISODE
from adahi_ros.lab.training.train_corrector import train_on_recordings
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector

STEPS = 8  # from one request to the next, of the recorded uncorrected plans


def recording_of(bench: Bench, seed: int, episodes: int) -> Trajectories:
    """Return episodes of uncorrected plans, as from a robot without a corrector."""
    numbers = lesson_episodes(episodes, FIRST_EPISODE)
    return recorded_episodes(bench, METHODS[f"plan_{STEPS}"], seed, numbers)[0]


def compare_correctors(
    task: str,
    bench: Bench,
    recipe: CorrectorRecipe,
    folder: Path,
    periods: Sequence[int],
    recorded: int,
    episodes: Sequence[int],
    seed: int,
    on_done: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Train a corrector only on recordings; return its results and those of the simulation's corrector.

    Args:
        task: what `make` takes.
        bench: its policies, with a corrector.
        recipe: of the corrector.
        folder: gets the checkpoint `corrector`.
        periods: steps from one request to the next to compare at, each at most the target's horizon.
        recorded: episodes to record.
        episodes: numbers of those to compare on.
        seed: of all draws.
        on_done: called with the name of each finished part.

    Returns:
        `recorded_episodes`, and by method `corrector_K` the success rates `of_recordings` and
        `of_simulation`.
    """
    target = target_of(bench.policies, CORRECTOR)
    data = recording_of(bench, seed, recorded)
    on_done("recorded")
    with_goal = not goal_is_for_target(task)
    planned = plan_recorded(target, data, recipe.samples, recipe.seed)
    train_on_recordings(planned, recipe, folder, Run(recipe.seed), {}, with_goal=with_goal)
    on_done("trained")
    of_recordings = replace(
        bench, policies=replace(bench.policies, corrector=Corrector(load_corrector(folder / CORRECTOR)))
    )
    found: dict[str, Any] = {"recorded_episodes": recorded, "methods": {}}
    for steps in periods:
        rates = {}
        for name, each in (("of_recordings", of_recordings), ("of_simulation", bench)):
            world = make(task)
            METHODS[f"corrector_{steps}"].run(each, world, seed, episodes)
            rates[name] = float(world.success.mean())
        found["methods"][f"{CORRECTOR}_{steps}"] = rates
        on_done(f"{CORRECTOR}_{steps}")
    return found
