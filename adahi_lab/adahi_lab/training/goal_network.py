# SPDX-License-Identifier: Apache-2.0
"""Training of a policy for a robot that is given the goal: the baseline of intents without any server.

It learns in the lessons of an intent, by the same number of steps. Its network is the one that acts by
intents, with the goal in their place and without their encoder. Its checkpoint is that of a distilled policy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_lab.training.corrector_loss import weights_count
from adahi_lab.training.corrector_training import SMALLEST_CHANGE, save_with_export, train_corrector
from adahi_lab.training.fitting import Note, Run
from adahi_lab.training.intent_data import Act, IntentExamples
from adahi_lab.training.recipes import IntentRecipe
from adahi_lab.training.step_dataset import Moments
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig
from adahi_ros.policies.corrector.corrector_features import FeatureScales, PlanView, features
from adahi_ros.policies.intent.intent_features import RepliesView


def train_on_goal(
    examples: IntentExamples, recipe: IntentRecipe, folder: Path, run: Run, note: Note, name: str
) -> tuple[Act, list[float]]:
    """Train the policy on examples, and write it; return how it acts, and the losses.

    Args:
        examples: of an intent, in which the goal alone is for the target only.
        recipe: settings of the training.
        folder: of the checkpoint.
        run: of the fit.
        note: the checkpoint's notes on its training.
        name: of the checkpoint.
    """
    before = np.arange(len(examples)) - (examples.step > 0)
    observed, previous = examples.observation, examples.observation[before]
    reads, acts, goals = map(Moments.measure, (observed, examples.plan[:, 0], examples.extra))
    change = (observed - previous).std(axis=0) + SMALLEST_CHANGE * reads.scale
    scales = FeatureScales(
        *(reads.mean, reads.scale, change.astype(np.float32)),
        *(goals.mean, goals.scale, acts.mean, acts.scale),
    )
    action_dim = examples.plan.shape[2]

    def view(observation: np.ndarray, before: np.ndarray, goal: np.ndarray) -> PlanView:
        nothing = np.zeros(len(goal), dtype=np.int64)
        plan = np.zeros((len(goal), 1, action_dim), dtype=np.float32)
        return PlanView(observation, before, observation, goal, plan, nothing, nothing).without_plan()

    read = features(view(observed, previous, examples.extra), scales)
    wanted = (examples.plan[:, 0] / acts.scale).astype(np.float32)
    network, losses = train_corrector(
        read, wanted, recipe.hidden, recipe.fit, run, recipe.beta, from_mean=True
    )
    sizes = CorrectorConfig(observed.shape[1], examples.extra.shape[1], action_dim, 1, recipe.hidden)
    acted = examples.plan.min(axis=(0, 1)), examples.plan.max(axis=(0, 1))
    trained = network, sizes, scales, acted, note(losses, weights_count(network))
    policy = Corrector(save_with_export(folder, name, *trained))

    def act(observation: np.ndarray, before: np.ndarray, replies: RepliesView) -> np.ndarray:
        return policy.correct(view(observation, before, replies.extra)).actions

    return act, losses
