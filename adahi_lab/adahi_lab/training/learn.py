# SPDX-License-Identifier: Apache-2.0
"""A draft learns from the target's corrections, with a limit on forgetting.

After E2CL (Wang et al., "E2CL: Exploration-based Error Correction Learning for Embodied Agents", arXiv
2409.03256): an agent explores, a teacher corrects it, and it learns from demonstrations and corrections
    together. The result is interpolated between old and new weights, as far as the limit allows.
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.figures import Figures
from adahi_lab.training.fitting import M, Run, digest_of
from adahi_lab.training.policy_corrections import PERSON_WEIGHT, Corrections
from adahi_lab.training.recipes import F
from adahi_lab.training.staging import STATES, StagedFolder
from adahi_lab.training.tokenizer import ActionTokenizer
from adahi_lab.training.vqbet_files import save_with_export
from adahi_lab.training.vqbet_finetuning import Actions, fine_tune, log_likelihood, mean_loss
from adahi_lab.training.vqbet_training import CodeFitConfig, Demonstrated
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

SHARES = (1.0, 0.5, 0.25, 0.125)  # of the way to the learned weights


def interpolated(module: M, other: M, share: float) -> M:
    """Return a module with weights interpolated from one module to another."""
    between = copy.deepcopy(other)
    theirs = other.state_dict()
    between.load_state_dict(
        {name: torch.lerp(value, theirs[name], share) for name, value in module.state_dict().items()}
    )
    return between


DRAFT = "draft"
NOTHING = "there is nothing to learn from"
FORGETS = "it would forget more than is allowed"
HELD_OUT = 10  # one of so many demonstrations measures forgetting


@dataclass(frozen=True)
class LearningConfig:
    """How to learn from corrections.

    Attributes:
        rehearsal: share of the loss from old demonstrations, 0 to 1; at 1 nothing new is learned.
        steps: optimizer steps of an update; the draft's recipe has the other settings.
        worse: largest share by which the loss on held-out demonstrations may exceed its lowest value so far.
            A larger update is applied half, a quarter or an eighth of the way, or not at all, see
            `learned_within`. Infinite for no limit.
        person_weight: how often a person's action counts, compared with a reply.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    rehearsal: float = 0.5
    steps: int = 300
    worse: float = 0.02
    person_weight: int = PERSON_WEIGHT

    def __post_init__(self) -> None:
        if not 0.0 <= self.rehearsal <= 1.0:
            raise ValueError(f"rehearsal: {self.rehearsal}, must be 0 to 1")
        if self.steps < 1:
            raise ValueError(f"steps: {self.steps}, must be at least 1")
        if not self.worse >= 0.0:
            raise ValueError(f"worse: {self.worse}, must not be negative")

    def fit(self, recipe: F) -> F:
        """Return the fit's settings, with the loss of the first training's recipe."""
        return replace(recipe, steps=self.steps, average=0.0)


class Lessons:
    """A draft's demonstrations: nine of ten to rehearse, the tenth to measure forgetting.

    Args:
        data: demonstrations, as the draft sees them.
        tokenizer: frozen.
        window_length: H.
        fit: of the draft's recipe; defines the loss.

    Raises:
        ValueError: there is only one demonstration.
    """

    def __init__(
        self, data: Trajectories, tokenizer: ActionTokenizer, window_length: int, fit: CodeFitConfig
    ) -> None:
        if len(data) < 2:
            raise ValueError(f"demos: {len(data)}, must be at least 2: one is held out")
        numbers = np.arange(len(data))
        held_out = numbers % HELD_OUT == HELD_OUT - 1 if len(data) >= HELD_OUT else numbers == numbers[-1]
        self.tokenizer, self.config = tokenizer, fit
        self.rehearsed, self.held_out = (
            Demonstrated.from_data(data.episodes(numbers[rows].tolist()), tokenizer, window_length)
            for rows in (~held_out, held_out)
        )

    @property
    def digest(self) -> str:
        """Return the digest of the held-out demonstrations."""
        return digest_of(self.held_out.observations, self.held_out.goals, self.held_out.chunks)[:16]

    def forgotten(self, model: VQBeT) -> float:
        """Return the loss of a draft on the demonstrations held out."""
        return mean_loss(model, self.tokenizer, self.held_out, self.config)

    def actions(self, corrections: Corrections) -> Actions:
        """Return the training examples of corrections."""
        return Actions.from_windows(
            corrections.windows, corrections.goals, corrections.replied, self.tokenizer
        )


@dataclass(frozen=True)
class Update:
    """The result of a draft's learning.

    Attributes:
        model: as it is now.
        losses: of every step; empty where nothing was learned.
        figures: as they are written.
    """

    model: VQBeT
    losses: list[float]
    figures: Figures


def learned_within(
    model: M,
    learned: M | None,
    loss_of: Callable[[M], float],
    worse: float,
    best: float | None = None,
) -> tuple[M, Figures]:
    """Interpolate from a network towards its trained copy as far as a loss allows; return it and figures.

    It tries the whole way, a half, a quarter and an eighth. Intermediate weights keep more of the first
    network (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).

    Args:
        model: before; is not changed, and is returned where no share is allowed.
        learned: after training; None where there is nothing to learn from.
        loss_of: returns the loss of a network on held-out data.
        worse: see `LearningConfig`.
        best: the lowest such loss of earlier networks; None without one.
    """
    before = loss_of(model)
    best = before if best is None else min(best, before)
    bound = best * (1.0 + worse)
    now, share, whole, after = model, 0.0, before, before
    for each in SHARES:
        if learned is None:
            break
        between = learned if each == 1.0 else interpolated(model, learned, each)
        loss = loss_of(between)
        whole = loss if each == 1.0 else whole
        if loss <= bound:
            now, share, after = between, each, loss
            break
    held_out = {
        "best": min(best, after),
        "before": before,
        "bound": bound if math.isfinite(bound) else None,
        "learned": whole,
        "after": after,
    }
    why = NOTHING if learned is None else "" if share else FORGETS
    return now, {"held_out": held_out, "share": share, "why": why}


def update(
    model: VQBeT,
    lessons: Lessons,
    corrections: Corrections,
    config: LearningConfig,
    run: Run,
    best: float | None = None,
) -> Update:
    """Let a draft learn from corrections, with a limit on forgetting.

    Args:
        model: the draft; is not changed.
        lessons: of its earlier training.
        corrections: to learn; without any, nothing changes.
        config: how.
        run: seed, saved state and progress.
        best: the lowest loss of earlier drafts on held-out data; None without one.
    """
    figures: dict[str, object] = {
        "corrections": len(corrections),
        "acceptance": corrections.acceptance,
        "person": int(corrections.person.sum()),
        "left_out": dict(corrections.left_out),
    }
    if not len(corrections):
        _, nothing = learned_within(model, None, lessons.forgotten, config.worse, best)
        return Update(model, [], {**figures, **nothing})
    taught = lessons.actions(corrections.weighted(config.person_weight))
    fit, rehearsed = config.fit(lessons.config), lessons.rehearsed
    learned, losses = fine_tune(model, lessons.tokenizer, rehearsed, taught, fit, config.rehearsal, run)
    now, taken = learned_within(model, learned, lessons.forgotten, config.worse, best)
    figures["log_likelihood"] = {
        "before": log_likelihood(model, taught),
        "after": log_likelihood(now, taught),
    }
    return Update(now, losses, {**figures, **taken})


def learn_from(
    begin: Path,
    out: Path,
    lessons: Lessons,
    corrections: Corrections,
    config: LearningConfig,
    command: str,
    run: Run,
) -> Update:
    """Let the draft of a folder learn from corrections; write it and all other files to another folder.

    That folder changes only at the end. Repeated commands measure forgetting against the best of all earlier
    drafts, which the checkpoint records.

    Args:
        begin: folder of tokenizer, draft and target.
        out: folder to write; may be the same.
        lessons: of the draft's earlier training.
        corrections: to learn.
        config: how.
        command: noted in the checkpoint.
        run: seed and progress; this function sets the file of its state.

    Raises:
        ValueError: parts do not match; names them.
    """
    staged = StagedFolder(out)
    checkpoint = load_checkpoint(begin / DRAFT)
    staged.begin()
    copy_policies(begin, staged.folder)
    before = checkpoint.training.get("corrections", {})
    known = before.get("demonstrations") == lessons.digest
    learned = update(
        load_network(checkpoint),
        lessons,
        corrections,
        config,
        replace(run, state=staged.folder / STATES.replace("*", DRAFT)),
        before.get("held_out", {}).get("best") if known else None,
    )
    if learned.figures["share"]:
        training = {**learned.figures, "command": command, "seed": run.seed, "demonstrations": lessons.digest}
        save_with_export(
            staged.folder, DRAFT, learned.model, {**checkpoint.training, "corrections": training}
        )
    staged.finish()
    return learned


def copy_policies(begin: Path, folder: Path) -> None:
    """Copy a folder of policies into another, without states of trainings."""
    for path in begin.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
        elif not path.match(STATES):
            shutil.copy2(path, folder)
