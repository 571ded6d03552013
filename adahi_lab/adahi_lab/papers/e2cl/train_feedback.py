# SPDX-License-Identifier: Apache-2.0
"""Training of an agent by exploration, as in E2CL (arXiv 2409.03256); see `agent.py`.

The agent first learns to plan from demonstrations. In teacher-guided exploration the target acts, in
teacher-free exploration the agent. At every step the target gives feedback on the agent's plan, and its own
action is the correction. Then one network learns planning, feedback and corrections together. Planning is
learned from demonstrations alone, unless the replies are to be plans, too, as in DAgger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.figures import Figures
from adahi_lab.history import History
from adahi_lab.papers.e2cl.agent import FURTHEST, WORDS, Agent, feedback, seen_in, slots, wrong
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import World, episodes, seen_by_target
from adahi_lab.training.fitting import FitConfig, Run, fit, seeded
from adahi_lab.training.rows import Rows
from adahi_lab.training.step_dataset import step_goals, window_indices
from adahi_ros.core.randomness import EpisodeStreams

FIRST_EPISODE = 700_000  # of the lessons; lower numbers are for other parts
HIDDEN = 96
FIT = FitConfig(steps=2000, batch_size=256, learning_rate=2e-3)
HELD_OUT = 5  # one of so many episodes tests the agent
DRAWN = 2**20  # a batch draws numbers below it, for examples of every kind


@dataclass(frozen=True)
class Lessons(Rows):
    """N steps with an action, and the right one.

    Attributes:
        seen: (N, S), see `seen_in`.
        action: (N, A) in action scales; 0 where there is none yet.
        change: (N, A), from it to the right action.
        episode: (N,), its number.
    """

    seen: np.ndarray
    action: np.ndarray
    change: np.ndarray
    episode: np.ndarray

    def without_action(self) -> Lessons:
        """Return them without an action yet."""
        return replace(self, action=np.zeros_like(self.action), change=self.action + self.change)


def demonstrated(data: Trajectories, history: int, action_scale: np.ndarray) -> Lessons:
    """Return the steps of demonstrations, without an action yet."""
    windows = data.observations[window_indices(data, history)].reshape(len(data.observations), -1)
    seen, actions = np.concatenate([windows, step_goals(data)], axis=1), data.actions / action_scale
    numbers = np.repeat(np.arange(len(data)), np.diff(data.ends, prepend=0))
    return Lessons(seen, np.zeros_like(actions), actions, numbers)


def explored(
    task: str, policies: Policies, seed: int, numbers: Sequence[int], guided: bool, agent: Agent
) -> Lessons:
    """Explore episodes; return the agent's plans at every step, and the changes that the target gives.

    Args:
        task: registry name.
        policies: draft, which sees what the agent sees, and target.
        seed: of all draws.
        numbers: of the episodes.
        guided: the target acts; else the agent.
        agent: as it is now.
    """
    draft, target = policies.draft, policies.target
    world: World = make(task)
    ours, theirs = (History(each.signature, len(numbers)) for each in (draft, target))
    draws = EpisodeStreams(seed, f"feedback of {guided}", list(numbers), target.draws)
    found: list[tuple[np.ndarray, ...]] = []
    for active in episodes(world, seed, numbers):
        visible = seen_by_target(world)
        seen = seen_in(ours.push(visible))
        right = target.propose(theirs.push(visible), draws.next()).actions[:, 0] / draft.action_scale
        planned = agent.plan(seen)
        rows = seen, planned, right - planned, np.asarray(numbers)
        found.append(tuple(each[active] for each in rows))
        world.step(((right if guided else planned) * draft.action_scale).astype(np.float32))
    return Lessons(*(np.concatenate(column) for column in zip(*found, strict=True)))


def fitted(plans: Lessons, lessons: Lessons, action_scale: np.ndarray, seed: int) -> Agent:
    """Return an agent that plans and, after exploration, foresees feedback and corrects by it.

    Args:
        plans: to learn planning from.
        lessons: to learn feedback and corrections from; none before exploration.
        action_scale: (A,) of their actions.
        seed: of weights and batches.
    """
    everything = np.concatenate([plans.seen, lessons.seen])
    mean, spread = everything.mean(axis=0), everything.std(axis=0)
    spread, size = np.where(spread > 1e-6, spread, 1.0), plans.action.shape[1]

    def examples(data: Lessons, right: np.ndarray, *slot: Any) -> tuple[torch.Tensor, torch.Tensor]:
        seen = np.clip((data.seen - mean) / spread, -FURTHEST, FURTHEST)
        read = np.concatenate([seen, *slots(data.action, *slot)], axis=1)
        return torch.from_numpy(read).float(), torch.from_numpy(right)

    words = feedback(lessons.change)
    errors = lessons.rows(wrong(words))
    kinds = [
        examples(plans, plans.change.astype(np.float32), None, False),
        examples(lessons, words),
        examples(errors, errors.change.astype(np.float32), words[wrong(words)]),
    ]

    def layers() -> nn.Sequential:
        first, last = nn.Linear(kinds[0][0].shape[1], HIDDEN), nn.Linear(HIDDEN, size * (1 + WORDS))
        return nn.Sequential(first, nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), last)

    network = seeded(seed, layers)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        loss = torch.zeros(())
        for read, right in (kind for kind in kinds if len(kind[0])):
            rows = batch % len(read)
            changes, words = torch.split(network(read[rows]), [size, size * WORDS], dim=1)
            if right.is_floating_point():
                loss = loss + nn.functional.mse_loss(changes, right[rows])
            else:
                loss = loss + nn.functional.cross_entropy(words.reshape(-1, WORDS), right[rows].ravel())
        return loss

    fit(network, loss_of, DRAWN, FIT, Run(seed))
    return Agent(mean, spread, action_scale, *(part.detach().numpy() for part in network.parameters()))


def quality(agent: Agent, data: Lessons) -> Figures:
    """Return the shares of an agent's actions in other episodes that are errors, and how it judges plans."""
    right, planned = data.action + data.change, agent.plan(data.seen)
    called = wrong(agent.foresee(data.seen, planned)[0])
    acted = [planned, *(agent.act(data.seen, 1, judged)[0] for judged in (False, True))]
    errors, *after = (wrong(feedback(right - actions)) for actions in acted)
    shares = {"errors": errors, "foreseen": called[errors], "false_alarms": called[~errors]}
    shares |= {"errors_corrected": after[0], "errors_judged": after[1]}
    return {name: round(float(each.mean()), 4) if len(each) else None for name, each in shares.items()}


def train_feedback(
    task: str, known: Policies, data: Trajectories, seed: int, rounds: Sequence[tuple[int, int]], dagger: bool
) -> tuple[Agent, Figures]:
    """Train an agent to plan, then explore and train in rounds; return the last one, and figures.

    Args:
        task: registry name.
        known: draft and target.
        data: demonstrations, as the draft sees them.
        seed: of everything.
        rounds: how many episodes the target acts in, and the agent; without rounds, the agent only plans.
        dagger: the target's replies are learned as plans, too.

    Raises:
        ValueError: a round has too few episodes.
    """
    if any(sum(counts) < HELD_OUT for counts in rounds):
        raise ValueError(f"guided, free: {rounds[0]}, must be {HELD_OUT} episodes at least")
    scale = known.draft.action_scale
    plans = demonstrated(data, known.draft.signature.history, scale)
    found: list[Lessons] = [plans.rows(np.zeros(len(plans), bool))]
    figures: Figures = {}
    agent = fitted(plans, found[0], scale, seed)
    numbers = iter(lesson_episodes(sum(map(sum, rounds)), FIRST_EPISODE))
    for counts in rounds:
        for count, guided in zip(counts, (True, False), strict=True):
            if part := list(islice(numbers, count)):
                found.append(explored(task, known, seed, part, guided, agent))
        lessons = Lessons.joined(found)
        test = lessons.episode % HELD_OUT == 0
        learned = lessons.rows(~test)
        replies = [learned.without_action()] if dagger else []
        agent = fitted(Lessons.joined([plans, *replies]), learned, scale, seed)
        figures = quality(agent, lessons.rows(test))
    return agent, figures
