# SPDX-License-Identifier: Apache-2.0
"""Training of a draft's self-correction by exploration, after E2CL; see `policies/self_correction.py`.

In teacher-guided exploration the target acts, and in teacher-free exploration the robot acts by its own,
corrected drafts. At every step the target gives feedback on the draft: whether it refuses it, and what it
does instead. Rounds alternate with training, so that later feedback is about what the corrected robot does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata
from torch import nn

from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.evaluation.loaded_policies import Policies, PolicyFiles
from adahi_lab.figures import Figures
from adahi_lab.history import History
from adahi_lab.papers.e2cl.self_correction import SelfCorrection, inputs_of
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import World, episodes, seen_by_target
from adahi_lab.training.fitting import FitConfig, Run, fit
from adahi_lab.training.rows import Rows
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations
from adahi_ros.policies.interface import Sampling
from adahi_ros.protocol.request import sent_codes

FIRST_EPISODE = 700_000  # of the lessons; lower numbers are for other parts
HIDDEN = 96
FIT = FitConfig(steps=3000, batch_size=256, learning_rate=2e-3)
HELD_OUT = 5  # one of so many episodes tests the network
CORRECTED_ABOVE = 0.5
BATCH = 50  # episodes side by side


@dataclass(frozen=True)
class Feedback(Rows):
    """The target's feedback on N drafts.

    Attributes:
        inputs: (N, F), see `inputs_of`.
        refused: (N,) bool, the target refused the draft's primary code.
        change: (N, A) in action scales, the target's action without the draft's.
        episode: (N,), its number.
    """

    inputs: np.ndarray
    refused: np.ndarray
    change: np.ndarray
    episode: np.ndarray


def seen_by_draft(observations: Observations, robots: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the windows (B, H, O) and goals (B, G) that a draft reads; G is 0 without a goal."""
    goals = observations.conditions.get(GOAL, np.zeros((robots, 0), np.float32))
    return observations.features[OBSERVATION], goals


def explored(
    task: str,
    policies: Policies,
    seed: int,
    numbers: Sequence[int],
    guided: bool,
    agent: SelfCorrection | None = None,
) -> Feedback:
    """Explore episodes, with the target's feedback at every step.

    Args:
        task: registry name.
        policies: draft and target, which share codes.
        seed: of all draws.
        numbers: of the episodes.
        guided: the target acts; else the robot.
        agent: corrects the robot's drafts; None before the first training.
    """
    draft, target, rule = policies.draft, policies.target, Speculative()
    world: World = make(task)
    ours_seen, theirs_seen = (History(each.signature, len(numbers)) for each in (draft, target))
    books = target.draws
    draws = EpisodeStreams(seed, f"feedback of {guided}", list(numbers), 3 * books)
    found: list[tuple[np.ndarray, ...]] = []
    for active in episodes(world, seed, numbers):
        uniforms, visible = draws.next(), seen_by_target(world)
        seen = ours_seen.push(visible)
        ours = draft.propose(seen, uniforms[:, :books], Sampling(sendable=True))
        theirs = target.propose(theirs_seen.push(visible), uniforms[:, books : 2 * books])
        assert ours.distribution is not None
        assert ours.distribution.counts is not None
        sent = Proposal(ours.actions, sent_codes(ours.distribution.codes, ours.distribution.counts))
        accept = np.stack([uniforms[:, 2 * books :], uniforms[:, books : 2 * books]], axis=-1)
        verdict = rule.verify(sent, theirs, accept)
        windows, goals = seen_by_draft(seen, len(active))
        drafted, replied = (actions[:, 0] / draft.action_scale for actions in (ours.actions, verdict.actions))
        rows = inputs_of(windows, goals, drafted), ~verdict.accepted[:, 0], replied - drafted
        found.append(tuple(each[active] for each in (*rows, np.asarray(numbers))))
        acted = replied if guided else drafted
        if agent is not None and not guided:
            refused, corrected = agent.judge(windows, goals, drafted)
            acted = np.where((refused > CORRECTED_ABOVE)[:, None], corrected, drafted)
        world.step((acted * draft.action_scale).astype(np.float32))
    return Feedback(*(np.concatenate(column) for column in zip(*found, strict=True)))


def fitted(data: Feedback, seed: int) -> SelfCorrection:
    """Return a network trained on feedback.

    Raises:
        ValueError: the target refused no draft, or all.
    """
    if data.refused.all() or not data.refused.any():
        raise ValueError(
            f"episodes: {data.refused.sum()} of {len(data.refused)} drafts refused, must be some"
        )
    mean, spread = data.inputs.mean(axis=0), data.inputs.std(axis=0)
    spread = np.where(spread > 1e-6, spread, 1.0)
    read = torch.from_numpy((data.inputs - mean) / spread).float().clamp(-5.0, 5.0)
    refused, change = torch.from_numpy(data.refused).float(), torch.from_numpy(data.change).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(read.shape[1], HIDDEN), nn.Linear(HIDDEN, HIDDEN)]
        layers.append(nn.Linear(HIDDEN, 1 + change.shape[1]))
    network = nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        output, wrong = network(read[batch]), refused[batch]
        feedback = nn.functional.binary_cross_entropy_with_logits(output[:, 0], wrong)
        error = ((output[:, 1:] - change[batch]) ** 2).mean(dim=1)
        return feedback + (error * wrong).sum() / wrong.sum().clamp(min=1.0)

    fit(network, loss_of, len(read), FIT, Run(seed))
    weights = [part.detach().numpy() for layer in layers for part in (layer.weight, layer.bias)]
    return SelfCorrection(mean.astype(np.float32), spread.astype(np.float32), *weights)


def quality(network: SelfCorrection, data: Feedback, action_dim: int) -> Figures:
    """Return how well a network predicts feedback, and how near its corrections come, on other episodes."""
    drafted = data.inputs[:, -action_dim:]
    empty = np.zeros((len(drafted), 0), np.float32)
    refused, corrected = network.judge(data.inputs[:, :-action_dim], empty, drafted)
    wrong = data.refused
    pairs = int(wrong.sum()) * int((~wrong).sum())
    ranks = rankdata(refused)[wrong].sum() - wrong.sum() * (wrong.sum() + 1) / 2
    left = (corrected - drafted - data.change)[wrong]
    return {
        "steps": len(wrong),
        "refused": round(float(wrong.mean()), 4),
        "area": round(float(ranks / pairs), 4) if pairs else None,
        "distance": round(float(np.sqrt((data.change[wrong] ** 2).mean())), 4),
        "distance_left": round(float(np.sqrt((left**2).mean())), 4),
    }


def train_feedback(
    task: str, files: PolicyFiles, seed: int, guided: int, free: int, rounds: int
) -> tuple[SelfCorrection, Figures]:
    """Explore and train in rounds; return the network of the last round, and figures.

    Args:
        task: registry name.
        files: draft and target.
        seed: of everything.
        guided: episodes of each round in which the target acts.
        free: episodes of each round in which the robot acts.
        rounds: how many.

    Raises:
        ValueError: draft and target share no codes, or there are no episodes.
    """
    policies = files.load()
    if not policies.share_codes:
        raise ValueError(f"{files.folder}: draft and target share no codes, must for their feedback")
    if guided + free < HELD_OUT:
        raise ValueError(f"guided, free: {guided} and {free}, must be {HELD_OUT} episodes at least")
    numbers = iter(lesson_episodes(rounds * (guided + free), FIRST_EPISODE))
    data: list[Feedback] = []
    network: SelfCorrection | None = None
    for number in range(rounds):
        for count, led in ((guided, True), (free, False)):
            episodes = [next(numbers) for _ in range(count)]
            for start in range(0, count, BATCH):
                part = episodes[start : start + BATCH]
                data.append(explored(task, policies, seed, part, led, network))
        everything = Feedback.joined(data)
        test = everything.episode % HELD_OUT == 0
        network = fitted(everything.rows(~test), seed + number)
    assert network is not None
    found = quality(network, everything.rows(test), policies.draft.signature.action_dim)
    return network, {"replies": len(everything), **found}
