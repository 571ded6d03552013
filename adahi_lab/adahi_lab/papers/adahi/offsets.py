# SPDX-License-Identifier: Apache-2.0
"""Training of a draft with offsets for the codes of the target, so that the robot can decode replies.

In the paper (section III-B1) a reply has the codes that the target keeps or resamples, and the device decodes
them. VQ-BeT adds an offset to a decoded code, and a small draft's offset head knows it badly. So the draft
gets an offset network of its own (`VQBeTConfig.offset_hidden`), distilled from the target's offset head: by
the L1 distance at codes that are drawn from the target, on the demonstrations' windows and, where these are
not enough, on those of hybrid inference. The rest of the draft stays as it is: it draws the same codes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from rich.progress import Progress
from torch import Tensor

from adahi_lab.evaluation.loaded_policies import DRAFT_CODES
from adahi_lab.figures import Figures
from adahi_lab.training.fitting import FitConfig, Run, digest_of, fit, seeded
from adahi_lab.training.learn import DRAFT, Lessons
from adahi_lab.training.recipes import TARGET, NetworkRecipe
from adahi_lab.training.trainer import Trainer
from adahi_lab.training.vqbet_files import save_with_export
from adahi_lab.training.vqbet_training import Demonstrated
from adahi_ros.acceptance.interface import codes_differ
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

DRAWN = 4  # combinations of codes for each window of a batch
FIT = FitConfig(steps=4000, batch_size=256, learning_rate=2e-3)
OFFSETS = "offset_head."


def with_offset_network(draft: VQBeT, hidden: int, seed: int) -> VQBeT:
    """Return a draft with the same codes, and an untrained offset network of its own; only that is trained.

    Args:
        draft: is not changed.
        hidden: units of each of its two layers.
        seed: of its weights.
    """
    sizes = replace(draft.config, offset_hidden=hidden)
    made = seeded(seed, lambda: VQBeT(sizes, draft.moments, draft.action_scale))
    kept = {name: each for name, each in draft.state_dict().items() if not name.startswith(OFFSETS)}
    made.load_state_dict({**made.state_dict(), **kept})
    for name, weight in made.named_parameters():
        weight.requires_grad_(name.startswith(OFFSETS))
    return made


def offset_distance(network: VQBeT, target: VQBeT, windows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean distance of offsets from the target's at codes drawn from it, and without offsets.

    Args:
        network: with the offsets to compare.
        target: draws the codes.
        windows: (B, H, O).
        goals: (B, G).

    Returns:
        Both in action scales.
    """
    with torch.no_grad():
        logits, theirs = target(windows, goals)
        codes = torch.distributions.Categorical(logits=logits).sample((DRAWN,))
    ours = network(windows, goals)[1]
    rows, books = torch.arange(len(windows))[None, :, None], torch.arange(codes.shape[2])[None, None]
    wanted, found = (each[rows, books, codes].sum(dim=2) / target.action_scale for each in (theirs, ours))
    return (found - wanted).abs().mean(), wanted.abs().mean()


def train_offsets(
    folder: Path, lessons: Lessons, hidden: int, steps: int, seed: int, command: str, bar: Progress
) -> Figures:
    """Write the draft `DRAFT_CODES` of a folder of policies; return figures of the demonstrations held out.

    Args:
        folder: of draft, target and tokenizer; gets the new draft.
        lessons: demonstrations.
        hidden: units of each layer of the offset network.
        steps: of the training.
        seed: of weights and batches.
        command: noted in the checkpoint.
        bar: shows the progress.

    Raises:
        ValueError: draft and target have different codes, or read different windows.
    """
    read = [load_checkpoint(folder / name) for name in (DRAFT, TARGET)]
    fault = codes_differ(read[0].signature, read[1].signature)
    for size in ("observation_dim", "goal_dim", "window_length"):
        ours, theirs = (getattr(each.sizes, size) for each in read)
        if ours != theirs:
            fault = fault or f"{size}: the draft's is {ours}, the target's {theirs}; must be the same"
    if fault is not None:
        raise ValueError(f"{folder}: {fault}")
    draft, target = (load_network(each).eval() for each in read)
    network, shown = with_offset_network(draft, hidden, seed), lessons.rehearsed

    def distances(seen: Demonstrated, batch: Tensor) -> tuple[Tensor, Tensor]:
        return offset_distance(network, target, seen.observations[seen.rows[batch]], seen.goals[batch])

    def train(run: Run) -> tuple[VQBeT, list[float]]:
        loss = partial(distances, shown)
        return network, fit(network, lambda batch: loss(batch)[0], len(shown), how.fit, run, made_by)

    def write(path: Path, trained: VQBeT, note: dict[str, object]) -> None:
        save_with_export(path, DRAFT_CODES, trained, note)

    how = NetworkRecipe(seed, {"offset_hidden": hidden}, replace(FIT, steps=steps))
    weights = digest_of(*(each for policy in (draft, target) for each in policy.state_dict().values()))
    made_by = {"hidden": hidden, "policies": weights, "data": digest_of(shown.observations, shown.goals)}
    trainer = Trainer(folder, command, bar, None)
    trainer.make(DRAFT_CODES, how, train, write)
    trainer.state(DRAFT_CODES).unlink(missing_ok=True)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        found, without = distances(lessons.held_out, torch.arange(len(lessons.held_out)))
    return {
        "distance": round(found.item(), 4),
        "without": round(without.item(), 4),
        "parameters": network.parameters_count,
        "trained": sum(each.numel() for each in network.offset_head.parameters()),
    }
