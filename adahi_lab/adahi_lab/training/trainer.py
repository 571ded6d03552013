# SPDX-License-Identifier: Apache-2.0
"""The trainer of policies.

Each kind of network brings data and a loss, as a function from a run to the network and its losses, and an
export. The loop, `fit`, the bar, the saved state and the evaluations on the way are the same for all.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import Progress, TaskID
from torch import nn

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.training.fitting import Course, Run
from adahi_lab.training.recipes import CorrectorRecipe, DemonstrationRecipe, F, IntentRecipe, NetworkRecipe
from adahi_lab.training.staging import STATES
from adahi_ros.policies.intent.intent_checkpoint import SUFFIX

PIECE_EPISODES = 200  # a stopped run keeps whole pieces; a multiple of `BATCH_EPISODES`
LAST_LOSSES = 100  # the reported loss is their mean
TOKENIZER = "tokenizer"

N = TypeVar("N", bound=nn.Module)
Write = Callable[[Path], object]


@dataclass(frozen=True)
class Stages:
    """How a training is evaluated on its way.

    Attributes:
        count: parts of about equal length of each training of a policy; after each its state is saved.
        on_stage: called before that with the model's name, the parts done, and a function that writes the
            policy as it is then into a folder (with a tokenizer if it has codes). For students in simulation
            the parts are rounds. An exception from it ends the training.
    """

    count: int
    on_stage: Callable[[str, int, Write], None]


class Trainer:
    """Trains one network after the other into a folder, each with a bar and a state to resume from.

    Args:
        folder: of checkpoints and states.
        command: noted in the checkpoints.
        bar: shows the progress.
        stages: of each training, to evaluate policies on their way; None for none.
    """

    def __init__(self, folder: Path, command: str, bar: Progress, stages: Stages | None) -> None:
        self.folder = folder
        self.stages = stages
        self.command = command
        self.losses: dict[str, list[float]] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self._bar = bar

    def run(self, name: str, recipe: NetworkRecipe[F]) -> Run:
        """Return a run with a bar, and a state to resume from."""
        job = self._bar.add_task(name, total=recipe.fit.steps, note="")

        def on_step(step: int, loss: float) -> None:
            self._bar.update(job, completed=step, note=f"loss {loss:.4g}")

        self._started = time.monotonic()
        return Run(recipe.seed, self.state(name), on_step=on_step)

    def make(
        self,
        name: str,
        recipe: NetworkRecipe[F],
        train: Callable[[Run], tuple[N, list[float]]],
        write: Callable[[Path, N, dict[str, object]], object],
    ) -> N:
        """Train a network and write it; return it.

        Args:
            name: of the model.
            recipe: of it.
            train: trains it.
            write: takes a folder, the network, and the checkpoint's notes on its training.
        """
        run = self.run(name, recipe)
        network, losses = train(self._staged(name, run, recipe.fit.steps, write))
        count = sum(weight.numel() for weight in network.parameters())
        write(self.folder, network, self.finished(name, recipe, losses, count))
        return network

    def _staged(
        self, name: str, run: Run, steps: int, write: Callable[[Path, N, dict[str, object]], object]
    ) -> Run:
        """Return a run of so many steps, with evaluations if stages are given."""
        stages = self.stages
        if stages is None or name == TOKENIZER:
            return run
        every = math.ceil(steps / stages.count)

        def on_save(done: int, module: Any) -> None:
            note = {"command": self.command, "seed": run.seed, "steps": done}
            stages.on_stage(name, math.ceil(done / every), lambda folder: write(folder, module, note))

        return replace(run, save_every=every, on_save=on_save)

    def course(self, name: str, recipe: CorrectorRecipe | IntentRecipe) -> Course:
        """Return the course of a student with a bar for its rollouts, and one for its last fit."""
        rates = len(recipe.asking_rates) if isinstance(recipe, CorrectorRecipe) else 1
        on_episodes = self.count("rollouts", recipe.rounds * rates * recipe.episodes)

        def write(folder: Path) -> None:
            for path in (*self.folder.glob(f"{name}.*"), *self.folder.glob(f"{name}{SUFFIX}.*")):
                if not path.match(STATES):
                    shutil.copy2(path, folder)

        def on_round(rounds: int) -> None:
            if self.stages is not None:
                self.stages.on_stage(name, rounds, write)

        note = partial(self.finished, name, recipe)
        return Course(self.folder, name, self.run(name, recipe), note, on_episodes, on_round)

    def count(self, name: str, total: int) -> Callable[[int], None]:
        """Show the progress."""
        job = self._bar.add_task(name, total=total, note="")
        return lambda done: self._bar.update(job, completed=done)

    def demonstrations(self, task: str, recipe: DemonstrationRecipe, workers: int) -> Trajectories:
        """Record the recipe's demonstrations, or go on where a stopped run left off."""
        parts = [make(task).spec.name, *(str(value) for value in asdict(recipe).values())]
        path = self.state("-".join(["demonstrations", *parts]))
        if path.is_file():
            return Trajectories.load(path)
        job = self._bar.add_task("demonstrations", total=recipe.episodes, note="")
        pieces = []
        for first in range(0, recipe.episodes, PIECE_EPISODES):
            count = min(PIECE_EPISODES, recipe.episodes - first)
            piece = self.state("-".join(["demonstrations", *parts, f"from-{first}"]))
            if not piece.is_file():
                on_batch = partial(_advance, self._bar, job, first)
                how = count, recipe.seed, recipe.action_noise, workers, on_batch, recipe.rests, first
                collect_parallel(task, *how).trajectories.save(piece)
            pieces.append(Trajectories.load(piece))
            self._bar.update(job, completed=first + count)
        data = Trajectories.joined(pieces)
        data.save(path)
        for piece in self.folder.glob(STATES.replace("*", "-".join(["demonstrations", *parts, "from-*"]))):
            piece.unlink()
        return data

    def state(self, name: str) -> Path:
        """Return where a stopped run keeps a part of this name."""
        return self.folder / STATES.replace("*", name)

    def finished(
        self, name: str, recipe: NetworkRecipe[F], losses: list[float], parameters: int
    ) -> dict[str, object]:
        """Record the last training; return its notes for the checkpoint."""
        last = losses[-LAST_LOSSES:]
        self.losses[name] = losses
        self.models[name] = {
            "parameters": parameters,
            "loss": sum(last) / len(last),
            "seconds": round(time.monotonic() - self._started, 1),
        }
        return {
            "command": self.command,
            "seed": recipe.seed,
            "steps": recipe.fit.steps,
            "loss": self.models[name]["loss"],
        }


def _advance(bar: Progress, job: TaskID, first: int, done: int, _: int) -> None:
    """Show how many episodes are recorded."""
    bar.update(job, completed=first + done)
