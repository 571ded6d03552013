# SPDX-License-Identifier: Apache-2.0
"""Training of the acceptance rule `semantic`: the effect of keeping a mismatch on the world.

At steps of simulated hybrid inference where speculative sampling rejects, the world is forked three times.
One fork continues with the replacement, one with the draft, one with another draw of the target. Then the
target acts alone in all three, with the same draws. A mismatch matters if keeping it leads further away than
the target's own randomness usually does. The paper's abstract does not define its head's training data.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.stats import mannwhitneyu

from adahi_ros.acceptance.semantic import SemanticHead, signs
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.proposal import Proposal, sample
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.plans import distance
from adahi_ros.lab.evaluation.episodes import lesson_episodes
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.rollout import World, for_target
from adahi_ros.lab.history import History
from adahi_ros.lab.parallel import Job, run_jobs
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training.reservoir import Rows
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.protocol.request import sent_codes

FIRST_EPISODE = 600_000  # of the lessons; lower numbers are for correctors and gates
AHEAD = 8  # steps after which worlds are compared
EVERY = 8  # steps from one fork to the next
USUAL = 0.9  # a mismatch matters if it leads further than this share of the target's redraws
HELD_OUT = 0.2  # share of the episodes, the last ones
RIDGE = 30.0
BATCH = 25  # episodes side by side


@dataclass(frozen=True)
class Mismatches(Rows):
    """The data of M mismatches.

    Attributes:
        episode: (M,), its number.
        signs: (M, F), see `signs`.
        apart: (M,) in action scales, the distance of the draft from its replacement.
        kept: (M,), the distance of the worlds with the draft and with the replacement, in standard
            deviations of the observation, root mean square.
        redrawn: (M,), the same with the target's second draw.
    """

    episode: np.ndarray
    signs: np.ndarray
    apart: np.ndarray
    kept: np.ndarray
    redrawn: np.ndarray

    def matters(self, beyond: float) -> np.ndarray:
        """Return which mismatches led further than a distance, (M,) bool."""
        return self.kept > beyond


def forked(world: World) -> World:
    """Return an independent copy of a world; parts without state are shared."""
    fork = copy.copy(world)
    for name, value in vars(world).items():
        if isinstance(value, np.ndarray | EpisodeStreams):
            setattr(fork, name, copy.deepcopy(value))
        elif isinstance(value, list):
            setattr(fork, name, list(value))
    return fork


def _led_to(
    world: World, action: np.ndarray, target: Policy, seen: History, draws: EpisodeStreams, ahead: int
) -> np.ndarray:
    """Return the observation (E, O) of a fork after an action and some steps of the target."""
    world, seen, draws = forked(world), copy.deepcopy(seen), copy.deepcopy(draws)
    world.step(action)
    for _ in range(ahead - 1):
        observations = seen.push(_visible(world))
        uniforms = draws.next()[:, : target.draws]
        world.step(target.propose(observations, uniforms).actions[:, 0])
    return np.asarray(world.observation, dtype=np.float64)


def _visible(world: World) -> dict[str, np.ndarray]:
    return {OBSERVATION: world.observation, GOAL: world.goal, **for_target(world)}


def mismatches_of(
    task: str, files: PolicyFiles, temperature: float, seed: int, episodes: Sequence[int]
) -> tuple[Mismatches, np.ndarray]:
    """Return mismatches of episodes with unscaled differences of observations, and all observations.

    The returned `kept` and `redrawn` are (M, O); the observations are (S, O).
    """
    policies = files.load()
    draft, target, rule = policies.draft, policies.target, Speculative()
    world = make(task)
    world.reset(seed, list(episodes))
    draft_seen, seen = History(draft.signature, len(episodes)), History(target.signature, len(episodes))
    books = target.draws
    draws = EpisodeStreams(seed, "semantic", list(episodes), 4 * books)
    found: list[tuple[np.ndarray, ...]] = []
    observed = []
    step = 0
    while not world.done.all():
        active, visible, uniforms = ~world.done, _visible(world), draws.next()
        observed.append(np.asarray(world.observation, np.float64)[active])
        ours = draft.propose(
            draft_seen.push(visible), uniforms[:, :books], Sampling(temperature, sendable=True)
        )
        observations = seen.push(visible)
        theirs = target.propose(observations, uniforms[:, books : 2 * books])
        assert ours.distribution is not None
        assert theirs.distribution is not None
        assert ours.distribution.counts is not None
        sent = Proposal(ours.actions, sent_codes(ours.distribution.codes, ours.distribution.counts))
        accept = np.stack([uniforms[:, 2 * books : 3 * books], uniforms[:, books : 2 * books]], axis=-1)
        verdict = rule.verify(sent, theirs, accept)
        rows = active & ~verdict.accepted.all(axis=1)
        if step % EVERY == 0 and rows.any():
            kept = theirs.distribution.actions_of(ours.distribution.codes)
            codes = sample(theirs.distribution.probabilities, uniforms[:, 3 * books :])
            read = signs(ours.distribution, theirs.distribution, kept, verdict.actions)
            choices = (verdict.actions, kept, theirs.distribution.actions_of(codes))
            ends = [_led_to(world, actions[:, 0], target, seen, draws, AHEAD)[rows] for actions in choices]
            numbers = np.asarray(episodes)[rows]
            apart = distance(kept[:, 0] / target.action_scale, verdict.actions[:, 0] / target.action_scale)
            found.append((numbers, read[rows], apart[rows], ends[1] - ends[0], ends[2] - ends[0]))
        world.step(verdict.actions[:, 0])
        step += 1
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return Mismatches(*columns), np.concatenate(observed)


def lessons(
    task: str, files: PolicyFiles, temperature: float, seed: int, episodes: int, workers: int
) -> Mismatches:
    """Return the mismatches of so many episodes; no evaluation uses their numbers.

    Raises:
        ValueError: draft and target share no codes.
    """
    if not files.load().share_codes:
        raise ValueError(f"{files.folder}: draft and target share no codes, must for the rule semantic")
    numbers = lesson_episodes(episodes, FIRST_EPISODE)
    parts = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
    jobs: list[Job[tuple[Mismatches, np.ndarray]]] = [
        (mismatches_of, (task, files, temperature, seed, part)) for part in parts
    ]
    results = run_jobs(jobs, workers)
    scale = np.concatenate([observed for _, observed in results]).std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    joined = Mismatches.joined([part for part, _ in results])
    led = {name: np.sqrt(((getattr(joined, name) / scale) ** 2).mean(axis=1)) for name in ("kept", "redrawn")}
    return replace(joined, **led)


def train_semantic_head(data: Mismatches) -> tuple[SemanticHead, dict[str, float]]:
    """Fit a head to all except the last episodes; return it, and its figures on those.

    Raises:
        ValueError: all mismatches, or none, matter.
    """
    numbers = np.unique(data.episode)
    later = np.isin(data.episode, numbers[int(len(numbers) * (1.0 - HELD_OUT)) :])
    fitted, test = data.rows(~later), data.rows(later)
    beyond = float(np.quantile(data.redrawn, USUAL))
    labels = fitted.matters(beyond)
    if labels.all() or not labels.any():
        raise ValueError(f"episodes: {len(numbers)}, must be more: all mismatches are of one kind")
    mean, scale = fitted.signs.mean(axis=0), fitted.signs.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    untrained = SemanticHead(mean, scale, np.zeros(len(mean)), np.zeros(1))
    weights = _logistic(untrained.standardised(fitted.signs), labels)
    head = SemanticHead(mean, scale, weights[:-1], weights[-1:])
    truth, risk = test.matters(beyond), head.risk(test.signs)
    return head, {
        "mismatches": len(data.episode),
        "matter": round(float(data.matters(beyond).mean()), 4),
        "beyond": round(beyond, 4),
        "held_out": len(truth),
        "area": round(ranked_right(risk, truth), 4),
        "area_of_distance": round(ranked_right(test.apart, truth), 4),
        "expected": round(float(risk.mean()), 4),
        "measured": round(float(truth.mean()), 4),
    }


def ranked_right(score: np.ndarray, truth: np.ndarray) -> float:
    """Return the area under ROC; NaN if all are of one kind."""
    if truth.all() or not truth.any():
        return float("nan")
    return float(mannwhitneyu(score[truth], score[~truth]).statistic / (truth.sum() * (~truth).sum()))


def _logistic(inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return weights and bias (F + 1,) of a logistic regression with a ridge on the weights."""
    columns = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    ridge = np.append(np.full(inputs.shape[1], RIDGE), 0.0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logits = columns @ weights
        wrong = 1.0 / (1.0 + np.exp(-logits)) - labels
        value = np.logaddexp(0.0, logits).sum() - logits[labels].sum() + 0.5 * (ridge * weights**2).sum()
        return float(value), columns.T @ wrong + ridge * weights

    found = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B")
    fitted: np.ndarray = found.x
    return fitted
