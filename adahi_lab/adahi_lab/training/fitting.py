# SPDX-License-Identifier: Apache-2.0
"""Training of a network: one loop for all of them.

Every step draws its own batch from (seed, step), so a stopped and resumed run ends with the same weights as
an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.step_dataset import Moments
from adahi_ros.core.files import parse_json
from adahi_ros.core.schema import Schema
from adahi_ros.core.written_files import replacing
from adahi_ros.policies.networks.transformer import InputMoments

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class FitConfig(Schema):
    """How long and how fast to train.

    Attributes:
        steps: optimizer steps.
        batch_size: examples per step.
        learning_rate: AdamW's, after a linear warm-up over `warmup` steps, then a cosine to zero.
        weight_decay: AdamW's.
        average: decay of an exponential moving average of the weights, with which training ends; 0 for none.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    steps: int
    batch_size: int = 512
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warmup: int = 50
    average: float = 0.0

    def __post_init__(self) -> None:
        for name, smallest in (("steps", 1), ("batch_size", 2), ("warmup", 0)):
            if getattr(self, name) < smallest:
                raise ValueError(f"fit.{name}: {getattr(self, name)}, must be at least {smallest}")
        for name in ("learning_rate", "weight_decay"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"fit.{name}: {getattr(self, name)}, must be finite and not negative")
        if not 0.0 <= self.average < 1.0:
            raise ValueError(f"fit.average: {self.average}, must be at least 0 and below 1")

    def rate_at(self, step: int) -> float:
        """Return the learning rate of one step."""
        warm = min(1.0, (step + 1) / (self.warmup + 1))
        return self.learning_rate * warm * 0.5 * (1 + float(np.cos(np.pi * step / self.steps)))


@dataclass(frozen=True)
class Run:
    """A training run's saved state and progress callbacks.

    Attributes:
        seed: of weights and batches.
        state: file to save to and resume from; None keeps nothing.
        save_every: steps between saves.
        on_step: called with (steps done, loss).
        on_save: called before each save with (steps done, the module as it would be if training ended then).
    """

    seed: int
    state: Path | None = None
    save_every: int = 500
    on_step: Callable[[int, float], None] = lambda step, loss: None
    on_save: Callable[[int, nn.Module], None] = lambda step, module: None


def _average_of(module: nn.Module, decay: float) -> AveragedModel:
    """Return an exponential moving average of weights, with faster decay at the start.

    The decay of step t is at most (1 + t) / (10 + t), as in TensorFlow's `ExponentialMovingAverage`.
    Otherwise the initial weights would dominate a short training.
    """

    def following(average: Tensor, weight: Tensor, averaged: Tensor | int) -> Tensor:
        step = int(averaged)
        return average.lerp(weight, 1.0 - min(decay, (1 + step) / (10 + step)))

    return AveragedModel(module, avg_fn=following)


@dataclass(frozen=True)
class _Trained:
    """Everything that changes from step to step.

    Attributes:
        module: what is trained.
        optimizer: of its weights.
        average: of its weights; None without one.
    """

    module: nn.Module
    optimizer: torch.optim.AdamW
    average: AveragedModel | None

    def parts(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield the modules to save, and the prefixes of their tensors' names."""
        yield "model.", self.module
        if self.average is not None:
            yield "average.", self.average


def _save_state(path: Path, trained: _Trained, recipe: dict, losses: list[float]) -> None:
    tensors = {
        f"{prefix}{name}": tensor.contiguous()
        for prefix, part in trained.parts()
        for name, tensor in part.state_dict().items()
    }
    for index, state in trained.optimizer.state_dict()["state"].items():
        for name, tensor in state.items():
            tensors[f"optimizer.{index}.{name}"] = tensor.contiguous()
    save_run(path, tensors, recipe, losses)


def save_run(path: Path, tensors: dict[str, Tensor], recipe: dict, done: list) -> None:
    """Save what a run needs to continue: tensors, its recipe, and its progress."""
    with replacing(path) as partial:
        save_file(tensors, partial, metadata={"adahi": json.dumps({"recipe": recipe, "done": done})})


def load_run(path: Path, recipe: dict) -> tuple[dict[str, Tensor], list]:
    """Return tensors and progress of a saved run.

    Raises:
        ValueError: the file is damaged, or from a run with another recipe.
    """
    try:
        with safe_open(path, framework="pt") as file:
            meta = parse_json((file.metadata() or {})["adahi"])
            made_by, done = meta["recipe"], list(meta["done"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a saved run ({error}); delete it to start again") from None
    if made_by != recipe:
        raise ValueError(f"{path}: from a run with other settings or data; delete it to start again")
    return tensors, done


def _load_state(path: Path, trained: _Trained, recipe: dict) -> list[float]:
    tensors, losses = load_run(path, recipe)
    for prefix, part in trained.parts():
        part.load_state_dict(
            {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        )
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, field = name.split(".")
            moments.setdefault(int(index), {})[field] = value
    trained.optimizer.load_state_dict({**trained.optimizer.state_dict(), "state": moments})
    return losses


def sizes_of(data: Trajectories, window_length: int) -> dict[str, int]:
    """Return the sizes of a policy's network that depend on its demonstrations."""
    return {
        "observation_dim": data.inputs.shape[1],
        "goal_dim": data.goals.shape[1],
        "action_dim": data.actions.shape[1],
        "window_length": window_length,
        "image_dim": data.image_features.shape[1],
    }


def seeded(seed: int, make: Callable[[], M]) -> M:
    """Return a module with weights drawn from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


Note = Callable[[list[float], int], dict[str, object]]
"""From the losses and the number of weights to the checkpoint's notes on its training."""


@dataclass(frozen=True)
class Course:
    """How a student of a target is trained in rounds of rollouts, each with a fit, into a folder.

    Attributes:
        folder: gets the checkpoint, after every round.
        name: of the checkpoint.
        run: of the last fit; only this one is shown and saved.
        note: of the last fit.
        on_episodes: called with the number of episodes rolled out so far.
        on_round: called with the number of rounds so far.
    """

    folder: Path
    name: str
    run: Run
    note: Note = lambda losses, parameters: {}
    on_episodes: Callable[[int], None] = lambda episodes: None
    on_round: Callable[[int], None] = lambda rounds: None

    def rounds(self, count: int) -> Iterator[tuple[Run, Note]]:
        """Yield the run and the notes of each of so many fits."""
        for number in range(1, count + 1):
            yield (self.run, self.note) if number == count else (Run(self.run.seed), lambda *fitted: {})
            self.on_round(number)


def digest_of(*tensors: Tensor) -> str:
    """Return the SHA-256 of tensors, to distinguish recipes' data."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def fit(
    module: nn.Module,
    loss_of: Callable[[Tensor], Tensor],
    examples: int,
    config: FitConfig,
    run: Run,
    recipe: dict | None = None,
) -> list[float]:
    """Train a module in place; return the loss of every step.

    Args:
        module: what to train.
        loss_of: from the indices (B,) of a batch to its loss.
        examples: how many to draw from.
        config: how long and how fast.
        run: seed, saved state and progress.
        recipe: further values that must match to resume a saved state.

    Raises:
        ValueError: the saved state is damaged, or of another run.
        RuntimeError: the loss is no longer finite.
    """
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    average = _average_of(module, config.average) if config.average else None
    trained = _Trained(module, optimizer, average)
    recipe = {"fit": asdict(config), "seed": run.seed, "examples": examples, **(recipe or {})}
    losses: list[float] = []
    if run.state is not None and run.state.is_file():
        losses = _load_state(run.state, trained, recipe)
    module.train()
    with torch.random.fork_rng(devices=[]):
        for step in range(len(losses), config.steps):
            torch.manual_seed(int(np.random.SeedSequence((run.seed, step)).generate_state(1)[0]))
            batch = torch.randint(examples, (config.batch_size,))
            for group in optimizer.param_groups:
                group["lr"] = config.rate_at(step)
            loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            if average is not None:
                average.update_parameters(module)
            losses.append(loss.item())
            if not np.isfinite(losses[-1]):
                raise RuntimeError(f"loss: {losses[-1]} at step {step}; lower fit.learning_rate")
            run.on_step(step + 1, losses[-1])
            if run.state is not None and ((step + 1) % run.save_every == 0 or step + 1 == config.steps):
                run.on_save(step + 1, module if average is None else average.module)
                _save_state(run.state, trained, recipe, losses)
    if average is not None:
        module.load_state_dict(average.module.state_dict())
    module.eval()
    return losses


def input_moments(observation: Moments, goal: Moments) -> InputMoments:
    """Return the moments of demonstrations, as a network has them."""
    arrays = (observation.mean, observation.scale, goal.mean, goal.scale)
    return InputMoments(*map(torch.from_numpy, arrays))
