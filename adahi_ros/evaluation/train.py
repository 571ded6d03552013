"""`adahi train`: follow a recipe from demonstrations to checkpoints."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress

from adahi_ros.evaluation.staging import STATES, StagedFolder
from adahi_ros.networks.fitting import Run
from adahi_ros.networks.recipe import DemonstrationRecipe, F, ModelRecipe
from adahi_ros.policy.vqbet.checkpoint import (
    load_checkpoint,
    load_decoder,
    load_tokenizer,
    save_policy,
    save_tokenizer,
)
from adahi_ros.policy.vqbet.onnx_export import export
from adahi_ros.policy.vqbet.recipe import Recipe
from adahi_ros.policy.vqbet.tokenizer import TokenizerConfig
from adahi_ros.policy.vqbet.training import train_policy, train_tokenizer
from adahi_ros.tasks import make
from adahi_ros.tasks.demonstrations import collect_parallel
from adahi_ros.trajectories import Trajectories

THREADS = 1  # for networks this small, sharing out the work costs more than the work
LAST_LOSSES = 100  # the reported loss is their mean


@dataclass(frozen=True)
class Trained:
    """What became of a recipe.

    Attributes:
        figures: of each model, as `adahi train --json` writes them.
        losses: of every step, by model.
    """

    figures: dict[str, Any]
    losses: dict[str, list[float]]


class _Workshop:
    """Runs one training after the other, each with a bar and a state to resume from."""

    def __init__(self, folder: Path, command: str, bar: Progress) -> None:
        self._folder = folder
        self.command = command
        self.losses: dict[str, list[float]] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self._bar = bar

    def run(self, name: str, recipe: ModelRecipe[F]) -> tuple[Run, float]:
        job = self._bar.add_task(name, total=recipe.fit.steps, note="")

        def on_step(step: int, loss: float) -> None:
            self._bar.update(job, completed=step, note=f"loss {loss:.4g}")

        return Run(recipe.seed, self._state(name), on_step=on_step), time.monotonic()

    def demonstrations(self, task: str, recipe: DemonstrationRecipe, workers: int) -> Trajectories:
        """Record what the recipe asks for, or read what a stopped run has recorded."""
        asked = [make(task).spec.name, *(str(value) for value in asdict(recipe).values())]
        path = self._state("-".join(["demonstrations", *asked]))
        if path.is_file():
            return Trajectories.load(path)
        job = self._bar.add_task("demonstrations", total=recipe.episodes, note="")
        recorded = collect_parallel(
            task,
            recipe.episodes,
            recipe.seed,
            recipe.action_noise,
            workers,
            lambda done, episodes: self._bar.update(job, completed=done),
        )
        recorded.trajectories.save(path)
        return recorded.trajectories

    def _state(self, name: str) -> Path:
        return self._folder / STATES.replace("*", name)

    def finished(
        self, name: str, recipe: ModelRecipe[F], losses: list[float], parameters: int, started: float
    ) -> dict[str, Any]:
        last = losses[-LAST_LOSSES:]
        self.losses[name] = losses
        self.models[name] = {
            "parameters": parameters,
            "loss": sum(last) / len(last),
            "seconds": round(time.monotonic() - started, 1),
        }
        return {
            "command": self.command,
            "seed": recipe.seed,
            "steps": recipe.fit.steps,
            "loss": self.models[name]["loss"],
        }


def train_recipe(
    task: str,
    recipe: Recipe,
    out: Path,
    command: str,
    bar: Progress,
    data: Trajectories | None = None,
    only: list[str] | None = None,
    seed: int | None = None,
    workers: int = 1,
) -> Trained:
    """Train a tokenizer and the policies on it into a folder, which changes only once all is done.

    Args:
        task: registry name; with data, it may be any that the data is of.
        recipe: what to make.
        out: folder to write; until it is, a stopped run's states are in a folder beside it.
        command: noted in the checkpoints.
        bar: shows the progress.
        data: demonstrations; None records them as the recipe says.
        only: policies to train on the tokenizer that is there; None trains everything.
        seed: replaces every model's seed.
        workers: processes that record demonstrations; a network is trained in one.

    Raises:
        ValueError: a policy that the recipe does not know, demonstrations of another task, or no folder.
        OSError: the folder cannot be written.
    """
    wanted = list(recipe.policies) if only is None else only
    unknown = [name for name in wanted if name not in recipe.policies]
    if unknown:
        raise ValueError(f"only: {unknown[0]!r}, must be of {', '.join(recipe.policies)}")
    staged = StagedFolder(out)
    tokenizer = None if only is None else load_tokenizer(out)
    if data is None:
        make(task)  # raises before anything is written
    elif task != data.task and make(task).spec.name != data.task:
        raise ValueError(f"demos: of task {data.task!r}, must be of {make(task).spec.name!r}")
    torch.set_num_threads(THREADS)
    staged.begin()
    out = staged.folder
    if tokenizer is not None:
        for suffix in ("json", "safetensors"):
            shutil.copy2(staged.out / f"tokenizer.{suffix}", out)
    shop = _Workshop(out, command, bar)
    if data is None:
        data = shop.demonstrations(task, recipe.demonstrations, workers)

    def seeded(model: ModelRecipe[F]) -> ModelRecipe[F]:
        return model if seed is None else replace(model, seed=seed)

    if tokenizer is None:
        model = seeded(recipe.tokenizer)
        run, started = shop.run("tokenizer", model)
        config = TokenizerConfig(action_dim=data.actions.shape[1], **model.size)
        tokenizer, losses = train_tokenizer(data, config, model.fit, run)
        count = sum(weight.numel() for weight in tokenizer.parameters())
        save_tokenizer(out, tokenizer, shop.finished("tokenizer", model, losses, count, started))
    fingerprint = load_decoder(out).fingerprint
    for name in wanted:
        of_policy = seeded(recipe.policies[name])
        run, started = shop.run(name, of_policy)
        policy, losses = train_policy(
            data, tokenizer, recipe.window_length, of_policy.size, of_policy.fit, run
        )
        note = shop.finished(name, of_policy, losses, policy.parameters_count, started)
        save_policy(out, name, policy, note)
        export(load_checkpoint(out / name), out / f"{name}.onnx")
    staged.finish()
    return Trained({"task": data.task, "fingerprint": fingerprint, "models": shop.models}, shop.losses)
