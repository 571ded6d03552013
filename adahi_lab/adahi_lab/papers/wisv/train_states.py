# SPDX-License-Identifier: Apache-2.0
"""Training of the rule `hidden_states`: which tokens may be kept, and how that depends on the channel.

A kept token matters if it leads the world further away than a share of the target's own draws do, or if
it is further from the target's likeliest token than that share of them: what a gripper does shows late in the
world. On a worse channel this share is larger: see `tolerated`. Lessons have no channel, so every batch draws
one for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import mannwhitneyu
from torch import nn

from adahi_lab.figures import Figures
from adahi_lab.papers.wisv.hidden_states import CHANNEL, FURTHEST, STEPS, StateHead, channel_inputs
from adahi_lab.papers.wisv.state_lessons import StateLessons
from adahi_lab.training.fitting import FitConfig, Run, fit

HELD_OUT = 5  # one of so many episodes tests the head
WIDTH = 48
FIT = FitConfig(steps=1500, batch_size=256, learning_rate=2e-3, weight_decay=0.3)
DROPPED = 0.2  # share of the hidden layer, in training
UNKNOWN = 0.3  # share of the examples without a channel
LEAST_SHARE, MOST_SHARE = 0.75, 0.99  # of the target's draws, at no delay and at an endless one
HALF_MS = 40.0  # delay of a round in the middle between both
USUAL_MS = 30.0  # where the channel is unknown
TRIPS_MS, LOSSES = (1.0, 400.0), (0.0, 0.3)  # of the drawn channels


@dataclass(frozen=True)
class Beyond:
    """The distances of worlds that the target's own draws lead to.

    Attributes:
        redrawn: sorted.
    """

    redrawn: np.ndarray

    def at(self, share: np.ndarray) -> np.ndarray:
        """Return the distance that a share of the draws stay below."""
        found: np.ndarray = np.quantile(self.redrawn, share)
        return found


def delay_ms(channel: np.ndarray) -> np.ndarray:
    """Return how long a round takes on channels (M, 2) until it succeeds; `USUAL_MS` where unknown."""
    known = ~np.isnan(channel).any(axis=1)
    taken = channel[:, 0] / (1.0 - np.minimum(channel[:, 1], 0.9))
    return np.where(known, taken, USUAL_MS)


def tolerated(channel: np.ndarray) -> np.ndarray:
    """Return the share (M,) of the target's draws that a kept token may lead as far as."""
    late = delay_ms(channel)
    share: np.ndarray = LEAST_SHARE + (MOST_SHARE - LEAST_SHARE) * late / (late + HALF_MS)
    return share


def drawn_channels(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return channels (M, 2), of which a share of `UNKNOWN` is NaN."""
    least_ms, most_ms = np.log(TRIPS_MS).tolist()
    trip, loss = np.exp(rng.uniform(least_ms, most_ms, count)), rng.uniform(*LOSSES, count)
    channel = np.stack([trip, loss], axis=1)
    channel[rng.random(count) < UNKNOWN] = np.nan
    return channel


def inputs_of(data: StateLessons) -> np.ndarray:
    """Return what a head reads, (M, F)."""
    return np.concatenate([data.target_state, data.draft_state / STEPS], axis=1).astype(np.float64)


def matters(data: StateLessons, beyond: Beyond, channel: np.ndarray) -> np.ndarray:
    """Return which lessons (M,) matter on channels (M, 2)."""
    share = tolerated(channel)
    found: np.ndarray = (data.kept > beyond.at(share)) | (data.nearer > share)
    return found


def fitted(data: StateLessons, seed: int) -> StateHead:
    """Return a head trained on lessons."""
    states, beyond = inputs_of(data), Beyond(np.sort(data.redrawn))
    mean, scale = states.mean(axis=0), states.std(axis=0)
    scale = np.where(scale > 1e-6, scale, 1.0)
    read = torch.from_numpy(np.clip((states - mean) / scale, -FURTHEST, FURTHEST)).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, last = nn.Linear(read.shape[1] + CHANNEL, WIDTH), nn.Linear(WIDTH, 1)
        network = nn.Sequential(first, nn.ReLU(), nn.Dropout(DROPPED), last)
    rng = np.random.default_rng(seed)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        rows = batch.numpy()
        channel = drawn_channels(len(rows), rng)
        labels = torch.from_numpy(matters(data.rows(rows), beyond, channel)).float()
        known = torch.from_numpy(channel_inputs(channel)).float()
        output = network(torch.cat([read[batch], known], dim=1))[:, 0]
        return nn.functional.binary_cross_entropy_with_logits(output, labels)

    fit(network, loss_of, len(read), FIT, Run(seed))
    network.eval()
    weights = [part.detach().numpy().astype(np.float64) for part in network.parameters()]
    sizes = {"target_size": data.target_state.shape[1], "draft_size": data.draft_state.shape[1]}
    return StateHead(mean, scale, weights[0], weights[1], weights[2], weights[3], **sizes)


def held_out(data: StateLessons) -> np.ndarray:
    """Return which lessons (M,) test a head."""
    chosen: np.ndarray = data.episode % HELD_OUT == 0
    return chosen


def ranked_right(score: np.ndarray, truth: np.ndarray) -> float:
    """Return the area under ROC; NaN if all are of one kind."""
    if truth.all() or not truth.any():
        return float("nan")
    return float(mannwhitneyu(score[truth], score[~truth]).statistic / (truth.sum() * (~truth).sum()))


def quality(head: StateHead, data: StateLessons, beyond: Beyond) -> Figures:
    """Return how well a head ranks other lessons, without a channel and on a slow one."""
    found: dict[str, float] = {"lessons": len(data)}
    for name, channel in (("", [np.nan] * 2), ("_fast", [2.0, 0.0]), ("_slow", [200.0, 0.1])):
        channels = np.tile(np.array([channel]), (len(data), 1))
        truth = matters(data, beyond, channels)
        risk = head.risk(inputs_of(data), channels)
        found |= {
            f"matter{name}": round(float(truth.mean()), 4),
            f"area{name}": round(ranked_right(risk, truth), 4),
            f"kept{name}": round(float((risk < 0.5).mean()), 4),
            f"kept_wrongly{name}": round(float((truth & (risk < 0.5)).mean()), 4),
        }
    return found


def train_states(data: StateLessons, seed: int) -> tuple[StateHead, Figures]:
    """Fit a head to all except the held-out episodes; return it, and its figures on those.

    Raises:
        ValueError: there are too few lessons.
    """
    test = held_out(data)
    if test.sum() < 2 or (~test).sum() < FIT.batch_size:
        raise ValueError(f"episodes: {len(np.unique(data.episode))}, must be more: {len(data)} lessons")
    head = fitted(data.rows(~test), seed)
    return head, quality(head, data.rows(test), Beyond(np.sort(data.redrawn[~test])))
