# SPDX-License-Identifier: Apache-2.0
"""`adahi train policy`: follow a recipe from demonstrations to checkpoints."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.progress import Progress, TaskID
from torch import nn

from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import collect_parallel, seen_by_robots
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.flow_training import train_flow
from adahi_lab.training.intent_training import train_intent
from adahi_lab.training.own_states import with_own_states
from adahi_lab.training.recipes import (
    TARGET,
    TOKENS,
    VQBET,
    CorrectorRecipe,
    DemonstrationRecipe,
    F,
    IntentRecipe,
    ModelRecipe,
    NetworkRecipe,
    Recipe,
    TokenRecipe,
)
from adahi_lab.training.staging import STATES, StagedFolder
from adahi_lab.training.token_training import codec_of, train_tokens
from adahi_lab.training.train_corrector import train_in_simulation
from adahi_lab.training.vqbet_training import train_policy, train_tokenizer
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.flow.flow_torch import save_flow
from adahi_ros.policies.intent.intent_checkpoint import SUFFIX
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.tokens.token_checkpoint import load_codec, save_codec
from adahi_ros.policies.tokens.token_torch import save_tokens
from adahi_ros.policies.vqbet.tokenizer import ActionTokenizer
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder, load_tokenizer, save_tokenizer
from adahi_ros.policies.vqbet.vqbet_export import save_with_export
from adahi_ros.policies.vqbet.vqbet_sizes import TokenizerConfig

PIECE_EPISODES = 200  # a stopped run keeps whole pieces; a multiple of `BATCH_EPISODES`
THREADS = 1  # for such small networks, more threads are slower
LAST_LOSSES = 100  # the reported loss is their mean


TOKENIZER = "tokenizer"

N = TypeVar("N", bound=nn.Module)
P = TypeVar("P", bound=NetworkRecipe[Any])
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


@dataclass(frozen=True)
class Trained:
    """The result of a recipe.

    Attributes:
        figures: of each model, as `adahi train policy --json` writes them.
        losses: of every step, by model.
    """

    figures: dict[str, Any]
    losses: dict[str, list[float]]


class _Workshop:
    """Runs one training after the other, each with a bar and a state to resume from."""

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
    stages: Stages | None = None,
) -> Trained:
    """Train policies, and the tokenizer of those with codes, into a folder.

    The folder changes only at the end.

    Args:
        task: registry name; with data, any task of the data.
        recipe: what to make.
        out: folder to write; a stopped run's states are in a folder beside it.
        command: noted in the checkpoints.
        bar: shows the progress.
        data: demonstrations; None records them as the recipe says, where something needs them.
        only: policies to train on the existing tokenizer; None trains everything.
        seed: replaces every model's seed.
        workers: processes that record demonstrations; a network is trained in one.
        stages: of each training, to evaluate policies on their way; None for none.

    Raises:
        ValueError: a policy that the recipe does not know, demonstrations of another task, or no folder.
        OSError: the folder cannot be written.
    """
    there_are = [*recipe.policies, *recipe.taught]
    unknown = [name for name in only or () if name not in there_are]
    if unknown:
        raise ValueError(f"only: {unknown[0]!r}, must be of {', '.join(there_are)}")
    wanted = [name for name in recipe.policies if only is None or name in only]
    taught = {name: how for name, how in recipe.taught.items() if only is None or name in only}
    staged = StagedFolder(out)
    codes = any(recipe.policies[name].kind == VQBET for name in wanted)
    speaks = recipe.tokens if any(recipe.policies[name].kind == TOKENS for name in wanted) else None
    tokenizer = load_tokenizer(out) if codes and only is not None else None
    if speaks is not None and only is not None:
        load_codec(out)  # raises before anything is written
    if data is None:
        make(task)  # raises before anything is written
    elif task != data.task and make(task).spec.name != data.task:
        raise ValueError(f"demos: of task {data.task!r}, must be of {make(task).spec.name!r}")
    torch.set_num_threads(THREADS)
    staged.begin()
    out = staged.folder
    if only is not None and (codes or speaks is not None):
        for suffix in ("json", "safetensors"):
            shutil.copy2(staged.out / f"tokenizer.{suffix}", out)
    shop = _Workshop(out, command, bar, stages)

    @cache
    def demonstrations() -> Trajectories:  # recorded where they are needed: intents need none
        return shop.demonstrations(task, recipe.demonstrations, workers) if data is None else data

    def for_robots() -> Trajectories:
        return seen_by_robots(demonstrations(), task)

    def seeded(model: P) -> P:
        return model if seed is None else replace(model, seed=seed)

    if codes and tokenizer is None:
        assert recipe.tokenizer is not None
        tokenizer = _train_tokenizer(shop, demonstrations(), seeded(recipe.tokenizer))
    if speaks is not None and only is None:
        save_codec(out, codec_of(demonstrations(), speaks))
    for name in wanted:
        recorded = demonstrations() if name == TARGET else for_robots()
        model = seeded(recipe.policies[name])
        if name == TARGET and recipe.own_states is not None:
            how_often = recipe.own_states
            on_episodes = shop.count("own states", how_often.rounds * how_often.episodes)
            parts = recorded, recipe.window_length, model, how_often
            recorded = with_own_states(task, *parts, shop.state, workers, on_episodes)
        _train_policy(shop, name, recorded, tokenizer, recipe.window_length, model)
    for name, how in taught.items():
        where = out if TARGET in wanted else staged.out
        target = load_policy(where / TARGET, "onnxruntime")
        shown = None if isinstance(how, IntentRecipe) else for_robots()
        _train_pupil(shop, out, name, task, target, shown, seeded(how))
    trained_on = make(task).spec.name if data is None else data.task
    figures: dict[str, Any] = {"task": trained_on, "models": shop.models}
    if codes:
        figures["fingerprint"] = load_decoder(out).fingerprint
    staged.finish()
    return Trained(figures, shop.losses)


def _train_tokenizer(shop: _Workshop, data: Trajectories, model: NetworkRecipe[FitConfig]) -> ActionTokenizer:
    config = TokenizerConfig(action_dim=data.actions.shape[1], **model.size)
    return shop.make(
        TOKENIZER, model, lambda run: train_tokenizer(data, config, model.fit, run), save_tokenizer
    )


def _train_policy(
    shop: _Workshop,
    name: str,
    data: Trajectories,
    tokenizer: ActionTokenizer | None,
    window_length: int,
    model: ModelRecipe[Any],
) -> None:
    """Train a policy of the recipe's kind."""

    def train(run: Run) -> tuple[Any, list[float]]:
        how = window_length, model.size, model.fit, run
        if model.kind == TOKENS:
            return train_tokens(data, load_codec(shop.folder), *how)
        if model.kind != VQBET:
            return train_flow(data, *how)
        assert tokenizer is not None
        return train_policy(data, tokenizer, *how)

    def write(folder: Path, policy: Any, note: dict[str, object]) -> None:
        if model.kind == VQBET:
            save_with_export(folder, name, policy, note)
        elif isinstance(model, TokenRecipe):
            save_tokens(folder, name, policy, note, model.half)
        else:
            save_flow(folder, name, policy, note)
            export(load_flow(folder / name), folder / f"{name}.onnx")

    shop.make(name, model, train, write)


def _train_pupil(
    shop: _Workshop,
    out: Path,
    name: str,
    task: str,
    target: Policy,
    data: Trajectories | None,
    recipe: CorrectorRecipe | IntentRecipe,
) -> None:
    rates = len(recipe.asking_rates) if isinstance(recipe, CorrectorRecipe) else 1
    episodes = recipe.rounds * rates * recipe.episodes
    on_episodes = shop.count("rollouts", episodes)
    run = shop.run(name, recipe)

    def note(losses: list[float], parameters: int) -> dict[str, object]:
        return shop.finished(name, recipe, losses, parameters)

    def write(folder: Path) -> None:
        for path in (*out.glob(f"{name}.*"), *out.glob(f"{name}{SUFFIX}.*")):
            if not path.match(STATES):
                shutil.copy2(path, folder)

    def on_round(rounds: int) -> None:
        if shop.stages is not None:
            shop.stages.on_stage(name, rounds, write)

    if isinstance(recipe, IntentRecipe):
        train_intent(task, target, recipe, out, run, note, name, on_episodes, on_round)
    else:
        assert data is not None
        train_in_simulation(task, target, data, recipe, out, run, note, on_episodes, name, on_round)
