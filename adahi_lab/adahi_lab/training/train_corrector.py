# SPDX-License-Identifier: Apache-2.0
"""Training of a corrector: in simulation, in rounds of its own rollouts, or on recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from adahi_lab.calibration.target_plans import Planned
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.tasks import make
from adahi_lab.training.corrector_data import Examples, Teacher, recorded_examples
from adahi_lab.training.corrector_loss import weights_count
from adahi_lab.training.corrector_training import (
    running,
    save_with_export,
    scales_of,
    train_corrector,
)
from adahi_lab.training.fitting import Course, Run
from adahi_lab.training.recipes import CORRECTOR, DISTILLED, CorrectorRecipe
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig
from adahi_ros.policies.corrector.corrector_features import FeatureScales, PlanView, features
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.interface import Policy

HELD_OUT = 0.2  # of recorded episodes
MOST_SHIFTS, CALIBRATED = 50, 0.01  # of the expected error, until it is within this share of the error
DRAFT = "draft"


def train_in_simulation(
    task: str,
    target: Policy,
    data: Trajectories,
    recipe: CorrectorRecipe,
    course: Course,
) -> list[float]:
    """Train a corrector of a target's plans; return the losses of the last round.

    Or a policy with the target's average action and no plans (DAgger, as for the corrector): the same network
    without the plan's features.

    Args:
        task: what `make` takes.
        target: makes the plans.
        data: demonstrations, for the units of its inputs; without goals for a robot that gets none.
        recipe: settings of the training.
        course: its checkpoint is `CORRECTOR`, or `DISTILLED` for that policy.
    """
    scales, planless = scales_of(data, with_goal=True), course.name == DISTILLED
    config = _config(recipe, scales, 1 if planless else target.signature.horizon)
    acted = data.actions.min(axis=0), data.actions.max(axis=0)
    teacher = Teacher(target, scales, recipe.samples, hides_plan=planless)
    lessons: list[Examples] = []
    corrector: Corrector | None = None
    losses: list[float] = []
    for run, note in course.rounds(recipe.rounds):
        for rate in recipe.asking_rates:
            before = len(lessons) * recipe.episodes
            lesson = teacher.lesson(
                make(task),
                recipe.seed,
                lesson_episodes(recipe.episodes, before),
                rate,
                None if corrector is None else corrector.correct,
                recipe.noise if corrector is None else 0.0,
            )
            lessons.append(lesson)
            course.on_episodes(before + recipe.episodes)
        examples = Examples.joined(lessons)
        network, losses = train_corrector(
            examples.features, examples.wanted, config.hidden, recipe.fit, run, recipe.beta
        )
        notes = note(losses, weights_count(network))
        trained = network, config, scales, acted, notes
        corrector = Corrector(save_with_export(course.folder, course.name, *trained))
    return losses


@dataclass(frozen=True)
class TrainedOnRecordings:
    """The result of a training on recordings.

    Attributes:
        losses: of every step.
        figures: counts, and root mean squares on the episodes held out, in action scales.
    """

    losses: list[float]
    figures: dict[str, Any]


def check_held_out(held_out: float) -> None:
    """Check the share of held-out episodes.

    Raises:
        ValueError: it holds out nothing or everything.
    """
    if not 0.0 < held_out < 1.0:
        raise ValueError(f"held_out: {held_out}, must be above 0 and below 1")


def check_plans(target: Policy) -> None:
    """Check that a target makes plans.

    Raises:
        ValueError: it makes single actions.
    """
    horizon = target.signature.horizon
    if horizon < 2:
        raise ValueError(f"target.horizon: {horizon}, must be at least 2: there is no plan to correct")


def train_on_recordings(
    planned: Planned,
    recipe: CorrectorRecipe,
    folder: Path,
    run: Run,
    note: dict[str, Any],
    held_out: float = HELD_OUT,
    with_goal: bool = True,
    name: str = CORRECTOR,
    person_weight: int = 1,
) -> TrainedOnRecordings:
    """Train a corrector of a target's plans into a folder, on recorded episodes only.

    Or a draft: a policy for the robot that predicts the first action of the target's plan. It learns from a
    robot's observations, not from the states it reaches itself (behaviour cloning). It is good enough while a
    robot waits for a plan, but not for longer. Its errors are those of its action, compared with the mean
    action's.

    Args:
        planned: a robot's observations and actions, and the target's plans there; units are the robot's,
            except for actions.
        recipe: settings of the training; those of rollouts are ignored.
        folder: gets the checkpoint of that name.
        run: of the fit; its seed is of all draws.
        note: the checkpoint's notes on its training, except the figures.
        held_out: share of the episodes, drawn at random, for the measured errors; at least one.
        with_goal: whether it reads the goal; else only the target does.
        name: `CORRECTOR`, or `DRAFT` for that policy.
        person_weight: how often a step counts in the fit that a person drove.

    Raises:
        ValueError: too little data; names the value and the minimum.
    """
    learnt, unseen = split(planned.data, run.seed, held_out)
    scales = replace(scales_of(planned.data, with_goal), action_scale=planned.action_scale)
    drafts = name == DRAFT
    examples, tests = (
        first_actions(planned, numbers, scales, weight)
        if drafts
        else recorded_examples(planned, numbers, scales, run.seed, weight)
        for numbers, weight in ((learnt, person_weight), (unseen, 1))
    )
    config = _config(recipe, scales, 1 if drafts else planned.horizon)
    network, losses = train_corrector(
        *(examples.features, examples.wanted, config.hidden, recipe.fit, run, recipe.beta), from_mean=drafts
    )
    if drafts:
        without = {"mean_error": root_mean_square(tests.wanted - examples.wanted.mean(axis=0))}
    else:
        without = {"plan_error": root_mean_square(tests.wanted)}
    figures = {
        "episodes": len(learnt) + len(unseen),
        "examples": len(examples.features) + len(tests.features),
        "held_out": {
            "episodes": len(unseen),
            "examples": len(tests.features),
            **without,
            **expect_as_held_out(network, tests),
        },
    }
    training = {**note, "seed": run.seed, "parameters": weights_count(network), **figures}
    save_with_export(folder, name, network, config, scales, planned.action_range, training)
    return TrainedOnRecordings(losses, figures)


def expect_as_held_out(network: CorrectorNetwork, tests: Examples) -> dict[str, float]:
    """Calibrate a network's expected error on examples of held-out episodes.

    On its training data a network underestimates errors. One factor scales the expected error to be right in
    the mean square (variance scaling of Levi et al., "Evaluating and Calibrating Uncertainty Prediction in
    Regression Tasks", Sensors 2022). The order of examples is unchanged.

    Returns:
        `error`, root mean square on these examples; `learnt_to_expect`, the expected error before
        calibration; and `expected_error`, after it.
    """
    correction, log_variance = running(network)(tests.features)
    error = root_mean_square(tests.wanted - correction)
    now = expected = root_mean_square(np.exp(0.5 * log_variance))
    for _ in range(MOST_SHIFTS if error > 0.0 else 0):  # one, unless the network's output was at its bounds
        with torch.no_grad():
            network.layers[-1].get_parameter("bias")[-1] += 2.0 * math.log(error / now)
        now = root_mean_square(np.exp(0.5 * running(network)(tests.features)[1]))
        if abs(now - error) <= CALIBRATED * error:
            break
    return {"error": error, "learnt_to_expect": expected, "expected_error": now}


def first_actions(
    planned: Planned, numbers: Sequence[int], scales: FeatureScales, weight: int = 1
) -> Examples:
    """Return an example of every step of some episodes: the mean first action of its plans.

    A step that a person drove counts `weight` times.
    """
    parts: list[Examples] = []
    spans = list(planned.data.spans())
    for number in numbers:
        rows = np.arange(*spans[number])
        observation, plans = planned.data.observations[rows], planned.plans[rows]
        goal = np.repeat(planned.data.goals[[number], : len(scales.goal_mean)], len(rows), axis=0)
        nothing = np.zeros(len(rows), dtype=np.int64)
        previous = observation[np.maximum(np.arange(len(rows)) - 1, 0)]
        view = PlanView(observation, previous, observation, goal, plans[:, 0, :1], nothing, nothing)
        wanted = (plans[:, :, 0].mean(axis=1) / scales.action_scale).astype(np.float32)
        made = Examples(features(view.without_plan(), scales), wanted)
        parts.append(made.rows(planned.weighted(rows, weight)))
    return Examples.joined(parts)


def split(data: Trajectories, seed: int, held_out: float) -> tuple[list[int], list[int]]:
    """Return the numbers of the training and of the held-out episodes."""
    check_held_out(held_out)
    long_enough = np.flatnonzero(np.diff(data.ends, prepend=0) > 1)
    if len(long_enough) < 2:
        raise ValueError(
            f"episodes: {len(long_enough)} of two steps or more, must be at least 2: one is held out"
        )
    drawn = [step_uniforms(seed, "held_out", number, 0, 1)[0] for number in long_enough.tolist()]
    order = long_enough[np.argsort(drawn)]
    count = min(max(1, round(held_out * len(order))), len(order) - 1)
    return sorted(order[count:].tolist()), sorted(order[:count].tolist())


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def _config(recipe: CorrectorRecipe, scales: FeatureScales, horizon: int) -> CorrectorConfig:
    return CorrectorConfig(
        observation_dim=len(scales.observation_mean),
        goal_dim=len(scales.goal_mean),
        action_dim=len(scales.action_mean),
        horizon=horizon,
        **recipe.size,
    )
