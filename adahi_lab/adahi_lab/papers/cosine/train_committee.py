# SPDX-License-Identifier: Apache-2.0
"""`adahi lab committee`: several drafts instead of one, each specialised in some demonstrations.

Demonstrations are assigned by the target's goal (`goal`) or by the drafts (`fit`). With `fit`, drafts
start from random shares. Over some rounds each demonstration goes to the draft that gives its actions the
highest likelihood (expectation maximisation with hard assignments). Random differences separate the
drafts: one that saw the first of two behaviours more often makes the second less likely, so the other
draft gets it.

Each trains for a number of steps in proportion to its data. All together see as many examples as a single
draft of the same recipe.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import yaml

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.cosine.committee import CommitteeRules
from adahi_lab.training.fitting import Run
from adahi_lab.training.recipes import TARGET, ModelRecipe
from adahi_lab.training.staging import StagedFolder
from adahi_lab.training.step_dataset import action_chunks, step_goals, window_indices
from adahi_lab.training.tokenizer import ActionTokenizer
from adahi_lab.training.vqbet_files import save_with_export
from adahi_lab.training.vqbet_training import CodeFitConfig, train_policy
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.policies.vqbet.vqbet_network import VQBeT

DRAFT = "draft"
SMALLEST = 2  # demonstrations of a member
ROUNDS = 6
ROUND_STEPS = 400  # of a member, in a round of assignment
MEANS_ROUNDS = 50
Say = Callable[[str], None]


@dataclass(frozen=True)
class Lessons:
    """The members' training data and settings.

    Attributes:
        data: demonstrations, as the target would see them.
        visible: the same, as a draft sees them.
        tokenizer: frozen.
        window_length: H.
        model: of each member.
    """

    data: Trajectories
    visible: Trajectories
    tokenizer: ActionTokenizer
    window_length: int
    model: ModelRecipe[CodeFitConfig]

    def train(self, who: np.ndarray, member: int, fit: CodeFitConfig) -> tuple[VQBeT, list[float]]:
        """Train a member on its demonstrations; who (E,) has the member of each."""
        own = self.visible.episodes(np.flatnonzero(who == member).tolist())
        run = Run(self.model.seed + member)
        return train_policy(own, self.tokenizer, self.window_length, self.model.size, fit, run)

    def share(self, who: np.ndarray, member: int) -> float:
        """Return a member's share of all steps."""
        lengths = np.diff(self.data.ends, prepend=0)
        return float(lengths[who == member].sum() / lengths.sum())

    def log_likelihood(self, network: VQBeT) -> np.ndarray:
        """Return the log-likelihood of each demonstration's actions, (E,), mean over its steps."""
        seen = self.visible
        windows = torch.from_numpy(seen.inputs)[torch.from_numpy(window_indices(seen, self.window_length))]
        codes = self.tokenizer.encode(
            torch.from_numpy(action_chunks(seen, self.tokenizer.config.chunk_length))
        )
        with torch.no_grad():
            logits, _ = network(windows, torch.from_numpy(step_goals(seen)))
            each = torch.log_softmax(logits, -1).gather(-1, codes[..., None])[..., 0].sum(-1).numpy()
        return np.array([each[start:end].mean() for start, end in seen.spans()])


def by_goal(goals: np.ndarray, members: int) -> np.ndarray:
    """Return the member of each demonstration, (E,), by its goal (E, G): those with near goals share one.

    Raises:
        ValueError: there are no goals, or fewer than members.
    """
    goals = goals.astype(np.float64)
    if goals.shape[1] == 0 or len(np.unique(goals, axis=0)) < members:
        raise ValueError(f"split: goal, must be fit: the demonstrations have fewer than {members} goals")
    middles = goals[:1]
    for _ in range(1, members):  # the next is the furthest from the others
        furthest = _distances(goals, middles).min(axis=1).argmax()
        middles = np.concatenate([middles, goals[furthest : furthest + 1]])
    for _ in range(MEANS_ROUNDS):
        who = _distances(goals, middles).argmin(axis=1)
        middles = np.stack([goals[who == member].mean(axis=0) for member in np.unique(who)])
    return who


def by_fit(
    lessons: Lessons, members: int, say: Say, rounds: int = ROUNDS, steps: int = ROUND_STEPS
) -> np.ndarray:
    """Return the member of each demonstration, (E,), by the drafts' likelihood; see the module."""
    count = len(lessons.data)
    order = step_uniforms(lessons.model.seed, "committee/split", 0, 0, count).argsort()
    who = np.empty(count, dtype=np.int64)
    who[order] = np.arange(count) % members
    for number in range(rounds):
        fit = replace(lessons.model.fit, steps=steps)
        networks = [lessons.train(who, member, fit)[0] for member in range(members)]
        likelihood = np.stack([lessons.log_likelihood(network) for network in networks], axis=1)
        chosen = likelihood.argmax(axis=1)
        for member in range(members):  # every member keeps some lessons
            if (chosen == member).sum() < SMALLEST:
                chosen[likelihood[:, member].argsort()[-SMALLEST:]] = member
        moved = (chosen != who).mean()
        who = chosen
        say(
            f"round {number + 1}: {moved:.0%} of the demonstrations moved, log-likelihood "
            f"{likelihood.max(axis=1).mean():.3f}, alone {likelihood.mean():.3f}"
        )
    return who


def train_committee(
    out: Path, lessons: Lessons, who: np.ndarray, beside: Path, rules: CommitteeRules, command: str, say: Say
) -> None:
    """Train members; write them and their index into a folder with tokenizer and target.

    Args:
        out: folder to write.
        lessons: see there.
        who: (E,), the member of each demonstration.
        beside: folder of tokenizer and target, which are copied.
        rules: of their cooperation.
        command: noted in the checkpoints.
        say: called with the progress.
    """
    staged = StagedFolder(out)
    staged.begin()
    for path in sorted([*beside.glob("tokenizer.*"), *beside.glob(f"{TARGET}.*")]):
        shutil.copy2(path, staged.folder)
    members = []
    for member in range(int(who.max()) + 1):
        name = f"{DRAFT}_{member}"
        share = lessons.share(who, member)
        fit = replace(lessons.model.fit, steps=max(1, round(lessons.model.fit.steps * share)))
        network, losses = lessons.train(who, member, fit)
        made = {
            "command": command,
            "seed": lessons.model.seed + member,
            "steps": fit.steps,
            "loss": losses[-1],
        }
        save_with_export(staged.folder, name, network, made)
        members.append(name)
        count = int((who == member).sum())
        say(f"{name}: {network.parameters_count:,} weights, {count} demonstrations, {fit.steps} steps")
    described = {"kind": "committee", "members": members, **asdict(rules)}
    (staged.folder / f"{DRAFT}.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
    staged.finish()


def _distances(points: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """Return squared distances (P, M) of points (P, D) from middles (M, D)."""
    return ((points[:, None] - middles) ** 2).sum(axis=-1)
