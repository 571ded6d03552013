# SPDX-License-Identifier: Apache-2.0
"""Training of the gate `learned`: the harm of steps without a request, with random requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from scipy.stats import spearmanr
from torch import nn

from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.learned import HarmModel, Signs, standardised
from adahi_ros.gates.plans import distance
from adahi_ros.lab.calibration.recorded_world import RecordedWorld
from adahi_ros.lab.calibration.target_plans import fresh_plans
from adahi_ros.lab.evaluation.episodes import lesson_episodes
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.rollout import rollout
from adahi_ros.lab.figures import Figures
from adahi_ros.lab.history import History
from adahi_ros.lab.methods.actors import actor_of, target_of
from adahi_ros.lab.parallel import Job, run_jobs
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training.corrector_data import agreeing
from adahi_ros.lab.training.fitting import FitConfig, Run, fit
from adahi_ros.lab.training.reservoir import Rows
from adahi_ros.policies.interface import Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

FIRST_EPISODE = 500_000  # of the lessons; lower numbers are for correctors
RATES = (0.05, 0.12, 0.3)  # of requests, so that plans have every age
SAMPLES = 4  # fresh plans of a step
HIDDEN = 16
FIT = FitConfig(steps=2000, batch_size=256, learning_rate=3e-3)
FOLDS = 5  # of the episodes: one to fit the curve, one to test, the rest for the network
BINS = 20


@dataclass(frozen=True)
class Lessons(Rows):
    """N steps without a request, or where it was optional.

    Attributes:
        signs: (N, F), see `Signs`.
        harm: (N,) in action scales, the distance of the intended action from a fresh plan's.
        episode: (N,), the number of each step's episode.
    """

    signs: np.ndarray
    harm: np.ndarray
    episode: np.ndarray


class NotingGate(Gate):
    """Requests at random, and records gates' inputs and fresh plans.

    Args:
        target: makes the plans.
        action_scale: (A,).
        seed: of the plans' draws.
        episodes: their numbers.
    """

    blind = True

    def __init__(self, target: Policy, action_scale: np.ndarray, seed: int, episodes: Sequence[int]) -> None:
        self._target = target
        self._scale = action_scale
        self._signs = Signs()
        self._history = History(target.signature, len(episodes))
        self._draws = EpisodeStreams(seed, "harm", episodes, SAMPLES * target.draws)
        self.signs: list[np.ndarray] = []
        self.harm: list[np.ndarray] = []

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; the harm of robots without a plan is NaN."""
        course, robots = context.course, len(context.uniforms)
        assert course is not None
        draws = self._draws.next().reshape(robots, SAMPLES, -1)
        plans = fresh_plans(self._target, self._history.push(context.observed), draws) / self._scale
        steps = min(plans.shape[2], course.ahead.shape[1])
        left, ones = np.clip(course.left, 1, steps), np.ones(len(self._scale))
        fresh = agreeing(plans[:, :, :steps], course.ahead[:, :steps], left, ones)
        harm = distance(course.intended, fresh)
        self.signs.append(self._signs.read(context))
        self.harm.append(np.where(course.left > 0, harm, np.nan))
        return context.uniforms


def lesson(
    where: str | Trajectories,
    files: PolicyFiles,
    proposer: str,
    seed: int,
    rate: float,
    episodes: Sequence[int],
) -> Lessons:
    """Run episodes of a task, or recorded ones, with a request rate; return every step with a plan."""
    policies, world = files.load(), make(where) if isinstance(where, str) else RecordedWorld(where)
    target, actor = target_of(policies, proposer), actor_of(policies, proposer)
    noting = NotingGate(target, actor.action_scale, seed, episodes)
    controller = Controller(actor, ControllerConfig(ThresholdedGate("noting", 1.0 - rate, noting)), proposer)
    log = rollout(world, controller, TargetVerifier(target, "replace"), seed, episodes)
    signs, harm = np.stack(noting.signs), np.stack(noting.harm)
    known = log.active & np.isfinite(harm)
    numbers = np.broadcast_to(np.asarray(episodes), known.shape)
    return Lessons(signs[known], harm[known], numbers[known])


def lessons(
    where: str | Trajectories,
    files: PolicyFiles,
    proposer: str,
    seed: int,
    episodes: int = 0,
    workers: int = 1,
) -> Lessons:
    """Collect the training data.

    In recorded episodes, proposals do not change the observations. They are the same at each of `RATES`, and
    each episode is either for the network, the curve or the test.

    Args:
        where: the task, what `make` takes; or a recording.
        files: of a target that plans, and of a corrector if the proposer needs one.
        proposer: plan or corrector.
        seed: of all draws.
        episodes: of the task, how many, at each of `RATES`.
        workers: processes.

    Raises:
        ValueError: there is no such target, or no corrector.
    """
    actor_of(files.load(), proposer)  # raises before any work if a policy is missing
    jobs: list[Job[Lessons]] = []
    for index, rate in enumerate(RATES):
        if isinstance(where, str):
            numbers = lesson_episodes(episodes, FIRST_EPISODE + index * episodes)
        else:
            numbers = range(len(where))
        jobs.append((lesson, (where, files, proposer, seed, rate, numbers)))
    return Lessons.joined(run_jobs(jobs, workers))


def train_harm_model(data: Lessons, seed: int) -> tuple[HarmModel, Lessons]:
    """Fit network and curve; return them and the test lessons.

    Raises:
        ValueError: too few lessons.
    """
    fold = data.episode % FOLDS
    curve, test, rest = data.rows(fold == 0), data.rows(fold == 1), data.rows(fold > 1)
    if min(len(part.harm) for part in (curve, test, rest)) < 2 * BINS:
        raise ValueError(f"episodes: {len(data.harm)} steps in all, must be more: of each fold {2 * BINS}")
    raw = fitted_network(rest, seed)
    predicted, measured = rising_curve(raw, curve)
    return replace(raw, predicted=predicted, measured=measured), test


def fitted_network(data: Lessons, seed: int) -> HarmModel:
    """Return a network that predicts the square root of harm, without a curve."""
    signs = data.signs.shape[1]
    mean, scale, silent = np.zeros(signs), np.ones(signs), np.ones(signs, dtype=bool)
    for index, values in enumerate(data.signs.T):
        finite = values[np.isfinite(values)]
        if len(finite) and np.ptp(finite) > 0.0:
            mean[index], scale[index], silent[index] = finite.mean(), finite.std(), False
    read = torch.from_numpy(standardised(data.signs, mean, scale)).float()
    wanted = torch.from_numpy(np.sqrt(data.harm)).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, last = nn.Linear(signs, HIDDEN), nn.Linear(HIDDEN, 1)
    with torch.no_grad():
        first.weight[:, torch.from_numpy(silent)] = 0.0  # constant inputs must have no effect later
    network = nn.Sequential(first, nn.Tanh(), last)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(network(read[batch])[:, 0], wanted[batch])

    fit(network, loss_of, len(read), FIT, Run(seed))
    weights = [each.detach().double().numpy() for each in (first.weight, first.bias, last.weight, last.bias)]
    no_curve = np.zeros(1)
    return HarmModel(mean, scale, weights[0], weights[1], weights[2], weights[3], no_curve, no_curve)


def rising_curve(model: HarmModel, data: Lessons) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions of a network and the mean harm measured there, both rising (isotonic regression)."""
    raw = model.raw(data.signs)
    groups = np.array_split(np.argsort(raw, kind="stable"), BINS)
    predicted = np.array([raw[group].mean() for group in groups])
    fitted = isotonic_regression(np.array([data.harm[group].mean() for group in groups]))
    starts = fitted.blocks[:-1]
    counts = np.diff(fitted.blocks)
    return np.add.reduceat(predicted, starts) / counts, fitted.x[starts]


def reliability(model: HarmModel, test: Lessons, bins: int = 10) -> Figures:
    """Return the reliability of a model's predictions: by bins of equal count, rising."""
    expected = model.harm(test.signs)
    groups = np.array_split(np.argsort(expected, kind="stable"), bins)
    return {
        "steps": len(test.harm),
        "rank_correlation": round(float(spearmanr(expected, test.harm).statistic), 4),
        "expected": [round(float(expected[group].mean()), 4) for group in groups],
        "measured": [round(float(test.harm[group].mean()), 4) for group in groups],
    }


def rank_correlations(test: Lessons, names: Sequence[str]) -> dict[str, float]:
    """Return Spearman's correlation of each varying sign with harm."""
    found: dict[str, float] = {}
    for name, values in zip(names, test.signs.T, strict=True):
        known = np.isfinite(values)
        if known.any() and np.ptp(values[known]) > 0.0:
            found[name] = round(float(spearmanr(values[known], test.harm[known]).statistic), 4)
    return found
