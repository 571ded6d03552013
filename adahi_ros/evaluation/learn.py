"""A draft learns from the target's corrections, and is put back where it forgets.

After E2CL (Wang et al., "E2CL: Exploration-based Error Correction Learning for Embodied Agents", arXiv
2409.03256): an agent explores, a teacher corrects it, and it learns from demonstrations and corrections
together.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.evaluation.corrections import Corrections
from adahi_ros.evaluation.staging import STATES, StagedFolder
from adahi_ros.networks.fitting import Run, digest_of
from adahi_ros.policy.vqbet.checkpoint import load_checkpoint, save_policy
from adahi_ros.policy.vqbet.finetuning import Actions, Keeping, fine_tune, log_likelihood, mean_loss
from adahi_ros.policy.vqbet.network import VQBeT
from adahi_ros.policy.vqbet.onnx_export import export
from adahi_ros.policy.vqbet.tokenizer import ActionTokenizer
from adahi_ros.policy.vqbet.torch_backend import load_network
from adahi_ros.policy.vqbet.training import CodeFitConfig, Demonstrated
from adahi_ros.trajectories import Trajectories

DRAFT = "draft"
HELD_OUT = 10  # one of so many demonstrations tells what was forgotten


@dataclass(frozen=True)
class LearningConfig:
    """How to learn from corrections.

    Attributes:
        steps: optimizer steps of an update; all else of the fit is the draft's recipe's.
        rehearsal, pull: see `Keeping`.
        worse: an update stands only where the loss on demonstrations that it has not learned from is at most
            so much larger, as a share, than that of the draft that everything began with; infinite for no
            such guard.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    steps: int = 300
    rehearsal: float = 0.5
    pull: float = 0.0
    worse: float = 0.02

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps: {self.steps}, must be at least 1")
        if not self.worse >= 0.0:
            raise ValueError(f"worse: {self.worse}, must not be negative")
        _ = self.keeping

    @property
    def keeping(self) -> Keeping:
        """What keeps it from forgetting, but for the guard."""
        return Keeping(self.rehearsal, self.pull)

    def fit(self, recipe: CodeFitConfig) -> CodeFitConfig:
        """Return how to fit, with the loss of the draft's recipe."""
        return replace(recipe, steps=self.steps, average=0.0)


class Lessons:
    """What a draft had learned from: nine of ten demonstrations to rehearse, the tenth to look at.

    Args:
        data: demonstrations, as the draft sees them.
        tokenizer: frozen.
        window_length: H.
        fit: of the draft's recipe, whose loss is meant.

    Raises:
        ValueError: there is but one demonstration.
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
            Demonstrated.of(data.episodes(numbers[rows].tolist()), tokenizer, window_length)
            for rows in (~held_out, held_out)
        )

    @property
    def digest(self) -> str:
        """Name what is held out."""
        return digest_of(self.held_out.observations, self.held_out.goals, self.held_out.chunks)[:16]

    def forgotten(self, model: VQBeT) -> float:
        """Return the loss of a draft on the demonstrations held out."""
        return mean_loss(model, self.tokenizer, self.held_out, self.config)

    def actions(self, corrections: Corrections) -> Actions:
        """Return what there is to learn of corrections."""
        return Actions.of(corrections.windows, corrections.goals, corrections.replied, self.tokenizer)


@dataclass(frozen=True)
class Update:
    """What became of a draft that was to learn.

    Attributes:
        model: as it is now.
        losses: of every step; none where nothing was learned.
        figures: as they are written.
    """

    model: VQBeT
    losses: list[float]
    figures: dict[str, Any]


def update(
    model: VQBeT,
    lessons: Lessons,
    corrections: Corrections,
    config: LearningConfig,
    run: Run,
    began_with: float | None = None,
) -> Update:
    """Have a draft learn from corrections, and keep it as it was where it forgets too much.

    Args:
        model: the draft; stays as it is.
        lessons: what it had learned from.
        corrections: what it is to learn; of none, nothing changes.
        config: how.
        run: seed, saved state and progress.
        began_with: loss on what is held out, of the draft that everything began with; None for this one's.
    """
    before = lessons.forgotten(model)
    began_with = before if began_with is None else began_with
    figures: dict[str, Any] = {
        "corrections": len(corrections),
        "acceptance": corrections.acceptance,
        "left_out": dict(corrections.left_out),
        "began_with": began_with,
        "held_out": {"before": before},
    }
    if not len(corrections):
        return Update(model, [], {**figures, "stands": False, "why": "there is nothing to learn from"})
    taught = lessons.actions(corrections)
    fit = config.fit(lessons.config)
    learned, losses = fine_tune(model, lessons.tokenizer, lessons.rehearsed, taught, fit, config.keeping, run)
    after = lessons.forgotten(learned)
    bound = began_with * (1.0 + config.worse) if math.isfinite(config.worse) else math.inf
    stands = after <= bound
    figures["held_out"] |= {"after": after, "bound": bound if math.isfinite(bound) else None}
    figures["log_likelihood"] = {
        "before": log_likelihood(model, taught),
        "after": log_likelihood(learned, taught),
    }
    why = "" if stands else "it forgets more of the demonstrations than is allowed"
    return Update(learned if stands else model, losses, {**figures, "stands": stands, "why": why})


def learn_from(
    begin: Path,
    out: Path,
    lessons: Lessons,
    corrections: Corrections,
    config: LearningConfig,
    command: str,
    run: Run,
) -> Update:
    """Have the draft of a folder learn from corrections, into a folder that has all else, too.

    That folder changes only once all is done. A draft that learns again and again, by a command each, is held
    to what the first of them was: its checkpoint says so.

    Args:
        begin: folder of tokenizer, draft and target.
        out: folder to write; may be the same.
        lessons: what the draft had learned from.
        corrections: what it is to learn.
        config: how.
        command: noted in the checkpoint.
        run: seed and progress; where its state is kept is seen to here.

    Raises:
        ValueError: something does not fit; names it.
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
        before.get("began_with") if known else None,
    )
    if learned.figures["stands"]:
        told = {**learned.figures, "command": command, "seed": run.seed, "demonstrations": lessons.digest}
        write_draft(staged.folder, learned.model, {**checkpoint.training, "corrections": told})
    staged.finish()
    return learned


def copy_policies(begin: Path, folder: Path) -> None:
    """Copy what is in a folder of policies into another, but for states of trainings."""
    for path in begin.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
        elif not path.match(STATES):
            shutil.copy2(path, folder)


def write_draft(folder: Path, model: VQBeT, training: dict[str, Any]) -> None:
    """Write a draft and its export."""
    save_policy(folder, DRAFT, model, training)
    export(load_checkpoint(folder / DRAFT), folder / f"{DRAFT}.onnx")
