"""Several drafts are trained on what each is best at: told by nobody, or by what the target is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.cosine.committee import Committee, CommitteeRules
from adahi_lab.papers.cosine.train_committee import Lessons, by_fit, by_goal, train_committee
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.recipes import ModelRecipe
from adahi_lab.training.tokenizer import TokenizerConfig
from adahi_lab.training.vqbet_files import save_tokenizer
from adahi_lab.training.vqbet_training import CodeFitConfig, train_tokenizer
from adahi_ros.policies.backends import load_policy

EPISODES, STEPS = 24, 6
MODE = np.arange(EPISODES) % 2  # where an observation says nothing, half go up and half go down


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    observations = random.normal(size=(EPISODES * STEPS, 2)).astype(np.float32)
    way = np.repeat(np.where(MODE == 0, 1.0, -1.0), STEPS)
    actions = (way[:, None] + 0.05 * random.normal(size=(len(way), 1))).astype(np.float32)
    goals = np.stack([np.where(MODE == 0, 1.0, -1.0), 0.1 * random.normal(size=EPISODES)], axis=1)
    ends = np.arange(1, EPISODES + 1) * STEPS
    data = Trajectories("updown", observations, actions, goals.astype(np.float32), ends)
    size = TokenizerConfig(1, chunk_length=1, codebooks=1, codebook_size=4, latent_dim=4, hidden=8)
    tokenizer, _ = train_tokenizer(data, size, FitConfig(150, 64, 3e-3), Run(0))
    model = ModelRecipe(
        3,
        {"width": 4, "layers": 1, "heads": 1, "head_hidden": 8},
        CodeFitConfig(160, batch_size=32, learning_rate=1e-2),
    )
    return Lessons(data, data.without_goals(), tokenizer, 1, model)


def parted(who: np.ndarray) -> bool:
    return len({(mode, member) for mode, member in zip(MODE.tolist(), who.tolist(), strict=True)}) == 2


def test_drafts_part_what_looks_alike_and_no_one_named(lessons: Lessons) -> None:
    who = by_fit(lessons, 2, lambda line: None, rounds=3, steps=40)
    assert parted(who)


def test_demonstrations_of_like_goals_go_together(lessons: Lessons) -> None:
    assert parted(by_goal(lessons.data.goals, 2))
    assert set(by_goal(lessons.data.goals, 1)) == {0}
    without_goals = Lessons(lessons.visible, lessons.visible, lessons.tokenizer, 1, lessons.model)
    with pytest.raises(ValueError, match="split: goal, must be fit: the demonstrations have fewer than 2"):
        by_goal(without_goals.data.goals, 2)


def test_what_is_written_is_a_draft_of_them_all(lessons: Lessons, tmp_path: Path) -> None:
    beside, out = tmp_path / "beside", tmp_path / "out"
    reported: list[str] = []
    beside.mkdir()
    save_tokenizer(beside, lessons.tokenizer, {})
    rules = CommitteeRules(fusion="product", memory=0.9)
    train_committee(out, lessons, MODE, beside, rules, "a test", reported.append)
    made = load_policy(out / "draft", "onnxruntime")
    assert isinstance(made, Committee)
    assert made.rules == rules
    assert [line.split(", ")[2] for line in reported] == ["80 steps", "80 steps"]
    up, down = (
        member.propose(made.signature.nothing(), np.full((1, made.draws), 0.5)).actions[0, 0, 0]
        for member in made.members
    )
    assert up > 0.0
    assert down < 0.0
