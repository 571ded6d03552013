# SPDX-License-Identifier: Apache-2.0
"""`adahi train policy`: follow a recipe from demonstrations to checkpoints."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.progress import Progress

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.tokens.token_checkpoint import load_codec, save_codec
from adahi_lab.papers.tokens.token_torch import save_tokens
from adahi_lab.papers.tokens.token_training import codec_of, train_tokens
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import seen_by_robots
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.flow_files import save_flow
from adahi_lab.training.flow_training import train_flow
from adahi_lab.training.intent_training import train_intent
from adahi_lab.training.own_states import with_own_states
from adahi_lab.training.recipes import (
    TARGET,
    TOKENS,
    UNSEARCHED_FLOW,
    VQBET,
    IntentRecipe,
    ModelRecipe,
    NetworkRecipe,
    Recipe,
    TokenRecipe,
)
from adahi_lab.training.searched_flow import MADE, as_read
from adahi_lab.training.staging import StagedFolder
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_lab.training.train_corrector import train_in_simulation
from adahi_lab.training.trainer import TOKENIZER, Stages, Trainer
from adahi_lab.training.vqbet_files import load_tokenizer, save_tokenizer, save_with_export
from adahi_lab.training.vqbet_training import train_policy, train_tokenizer
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.networks.onnx_export import export
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder

THREADS = 1  # for such small networks, more threads are slower
P = TypeVar("P", bound=NetworkRecipe[Any])


@dataclass(frozen=True)
class Trained:
    """The result of a recipe.

    Attributes:
        figures: of each model, as `adahi train policy --json` writes them.
        losses: of every step, by model.
    """

    figures: dict[str, Any]
    losses: dict[str, list[float]]


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
    trainer = Trainer(out, command, bar, stages)

    @cache
    def demonstrations() -> Trajectories:  # recorded where they are needed: intents need none
        return trainer.demonstrations(task, recipe.demonstrations, workers) if data is None else data

    def for_robots() -> Trajectories:
        return seen_by_robots(demonstrations(), task)

    def seeded(model: P) -> P:
        return model if seed is None else replace(model, seed=seed)

    if codes and tokenizer is None:
        assert recipe.tokenizer is not None
        tokenizer = _train_tokenizer(trainer, demonstrations(), seeded(recipe.tokenizer))
    if speaks is not None and only is None:
        save_codec(out, codec_of(demonstrations(), speaks))
    for name in wanted:
        model = seeded(recipe.policies[name])
        labelled = name == TARGET or model.kind == UNSEARCHED_FLOW
        recorded = demonstrations() if labelled else for_robots()
        if name == TARGET and recipe.own_states is not None:
            how_often = recipe.own_states
            on_episodes = trainer.count("own states", how_often.rounds * how_often.episodes)
            parts = recorded, recipe.window_length, model, how_often
            recorded = with_own_states(task, *parts, trainer.state, workers, on_episodes)
        _train_policy(trainer, name, recorded, tokenizer, recipe.window_length, model)
    for name, how in taught.items():
        where = out if TARGET in wanted else staged.out
        target = load_policy(where / TARGET, "onnxruntime")
        how = seeded(how)
        if isinstance(how, IntentRecipe):
            train_intent(task, target, how, trainer.course(name, how))
        else:
            train_in_simulation(task, target, for_robots(), how, trainer.course(name, how))
    of_task = make(task).spec.name if data is None else data.task
    figures: dict[str, Any] = {"task": of_task, "models": trainer.models}
    if codes:
        figures["fingerprint"] = load_decoder(out).fingerprint
    staged.finish()
    return Trained(figures, trainer.losses)


def _train_tokenizer(
    trainer: Trainer, data: Trajectories, model: NetworkRecipe[FitConfig]
) -> ActionTokenizer:
    config = TokenizerConfig(action_dim=data.actions.shape[1], **model.size)
    return trainer.make(
        TOKENIZER, model, lambda run: train_tokenizer(data, config, model.fit, run), save_tokenizer
    )


def _train_policy(
    trainer: Trainer,
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
            return train_tokens(data, load_codec(trainer.folder), *how)
        if model.kind != VQBET:
            return train_flow(as_read(data, model.kind), *how)
        assert tokenizer is not None
        return train_policy(data, tokenizer, *how)

    def write(folder: Path, policy: Any, note: dict[str, object]) -> None:
        if model.kind == VQBET:
            save_with_export(folder, name, policy, note)
        elif isinstance(model, TokenRecipe):
            save_tokens(folder, name, policy, note, model.half)
        else:
            save_flow(folder, name, policy, note, model.kind)
            export(load_flow(folder / name, MADE[model.kind]), folder / f"{name}.onnx")

    trainer.make(name, model, train, write)
