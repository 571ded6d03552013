# SPDX-License-Identifier: Apache-2.0
"""How far planned and corrected actions are from the target's newest ones, by the age of the plan.

    .venv/bin/python benchmarks/corrector_ages.py [TASK] [--every 8] [--from-age 0] [--episodes N]

A robot executes corrected plans, with a new one every so many steps. With `--from-age` it executes younger
plans unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.core.observation_buffer import History, ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.loaded_policies import PLANS
from adahi_ros.lab.evaluation.metrics import wilson_interval
from adahi_ros.lab.evaluation.rollout import for_target
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.proposers.plan import plan_view


def errors_by_age(
    task: str, folder: Path, every: int, from_age: int, seed: int, episodes: range
) -> tuple[np.ndarray, np.ndarray]:
    """Run episodes.

    Args:
        task: what `make` takes.
        folder: of a target that plans, without noise, and its corrector.
        every: steps between requests.
        from_age: of a plan, where its correction begins to be executed.
        seed: of the world's draws.
        episodes: their numbers.

    Returns:
        Root mean squares in action scales, (every, 2): of planned and corrected actions; success (E,) bool.
    """
    target, world, count = load_policy(folder / "target", "onnxruntime"), make(task), len(episodes)
    corrector = Corrector(load_corrector(folder / "corrector"))
    scale, horizon = corrector.scales.action_scale, target.signature.horizon
    world.reset(seed, episodes)
    history, plan = History(target.signature, count), Plan(count, target.signature.action_dim)
    memory, draws = ObservationBuffer(2 * horizon), np.zeros((count, target.draws))
    squares, seen = np.zeros((every, 2)), np.zeros(every)
    step = 0
    while not world.done.all():
        active, observed = ~world.done, {OBSERVATION: world.observation, GOAL: world.goal}
        memory.keep(step, observed)
        plan.forget_before(step)
        fresh = target.propose(history.push({**observed, **for_target(world)}), draws).actions
        age = step % every
        if age == 0:
            plan.splice(fresh, step, step, np.ones(count, dtype=bool))
        view = plan_view(memory, plan, step, world.goal[:, : len(corrector.scales.goal_mean)], horizon)
        planned, corrected = view.ahead[:, 0], corrector.correct(view).actions
        for column, actions in enumerate((planned, corrected)):
            squares[age, column] += (((actions - fresh[:, 0]) / scale)[active] ** 2).mean(axis=1).sum()
        seen[age] += active.sum()
        executed = planned if age < from_age else corrected
        world.step(np.clip(executed, world.spec.action_low, world.spec.action_high))
        step += 1
    return np.sqrt(squares / seen[:, None]), np.asarray(world.success).copy()


def main(
    task: Annotated[str, typer.Argument(help="A world with a target that plans.")] = "libero_goal",
    every: Annotated[int, typer.Option(min=1, help="Steps between requests.")] = 8,
    from_age: Annotated[int, typer.Option(min=0, help="Younger plans are executed unchanged.")] = 0,
    episodes: Annotated[int, typer.Option(min=1, help="How many.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Of the world's draws.")] = 31,
    checkpoints: Annotated[Path | None, typer.Option(help="Folder of target and corrector.")] = None,
) -> None:
    """Print the errors by age, and the success."""
    folder = checkpoints or asset(f"checkpoints/{task}") / PLANS
    errors, success = errors_by_age(task, folder, every, from_age, seed, evaluation_episodes(episodes))
    low, high = wilson_interval(int(success.sum()), episodes)
    title = f"{task}, {episodes} episodes, plans of {every}, corrected from age {from_age} on"
    caption = (
        "root mean square of the difference from the target's newest action, in action scales; success "
        f"{success.mean():.2f} ({low:.2f}-{high:.2f})"
    )
    table = narrow_table(title, ["age"], ["planned", "corrected"], caption)
    for age, (planned, corrected) in enumerate(errors.tolist()):
        table.add_row(str(age), number(planned), number(corrected))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
