# SPDX-License-Identifier: Apache-2.0
"""Training of intents: an encoder of the target's replies and the network that acts by them, together.

By DAgger (Ross et al., 2011), as for the corrector, against the first action of a fresh plan, with requests
at any earlier step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adahi_lab.calibration.target_plans import Planned
from adahi_lab.evaluation.disturbances import DisturbedWorld
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.tasks import make
from adahi_lab.training.corrector_loss import corrector_loss, weights_count
from adahi_lab.training.fitting import Course, Note, Run, digest_of, fit, seeded
from adahi_lab.training.goal_network import train_on_goal
from adahi_lab.training.intent_data import Act, IntentExamples, drawn_requests, lesson, newest_requests
from adahi_lab.training.recipes import GOAL_ONCE, IntentRecipe
from adahi_lab.training.saved_weights import save_weights
from adahi_lab.training.step_dataset import Moments, step_goals
from adahi_lab.training.train_corrector import root_mean_square, split
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.intent.intent import Intent, IntentEncoder
from adahi_ros.policies.intent.intent_checkpoint import (
    ACTIONS,
    SUFFIX,
    EncoderCheckpoint,
    EncoderConfig,
    IntentCheckpoint,
    IntentConfig,
    encoder_path,
    load_encoder_checkpoint,
    load_intent_checkpoint,
)
from adahi_ros.policies.intent.intent_features import (
    LARGEST,
    RepliesView,
    acting_features,
    reply_features,
)
from adahi_ros.policies.intent.intent_torch import EncoderNetwork
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.onnx_export import export

SAMPLE = 4096  # replies from which the units of the features are taken


class IntentNetworks(nn.Module):
    """Both networks, as they are trained together.

    Args:
        encoder: makes intents.
        acting: acts by them.
    """

    def __init__(self, encoder: EncoderNetwork, acting: CorrectorNetwork) -> None:
        super().__init__()
        self.encoder = encoder
        self.acting = acting

    def forward(self, replies: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (B, A) in action scales and log variances (B,).

        Args:
            replies: (B, F), the encoder's input.
            observed: (B, 2 O), the acting network's input but the intent.
        """
        graded = self.encoder.graded(replies)
        intent = graded + (graded.round() - graded).detach()
        action, log_variance = self.acting(torch.cat([observed, intent / LARGEST], dim=1))
        return action, log_variance


@dataclass(frozen=True)
class _Data:
    """All examples, and where their episodes begin."""

    examples: IntentExamples
    sizes: EncoderConfig
    reads_extra: bool

    def view(self, rows: np.ndarray, uniforms: np.ndarray) -> RepliesView:
        """Return the replies before some rows (B,), to requests drawn by (B, 3)."""
        data, step = self.examples, self.examples.step[rows]
        at = newest_requests(step, *drawn_requests(uniforms), self.sizes.replies)
        requested = (rows - step)[:, None] + np.maximum(at, 0)
        extra = data.extra[requested[:, 0]] if self.reads_extra else data.extra[requested[:, 0], :0]
        return RepliesView(data.exact[requested], data.plan[requested], at, extra)

    def observed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the observations of some rows, and those one step before."""
        before = rows - (self.examples.step[rows] > 0)
        return self.examples.observation[rows], self.examples.observation[before]


def train_networks(
    data: _Data, recipe: IntentRecipe, actions: Moments, fitting: Run
) -> tuple[IntentNetworks, list[float]]:
    """Train both networks on examples; return them and the losses.

    Args:
        data: examples.
        recipe: settings of the training.
        actions: of the target's actions.
        fitting: seed, saved state and progress.
    """
    sizes, examples = data.sizes, data.examples
    count = len(examples)
    drawn = np.random.default_rng(recipe.seed).integers(0, count, SAMPLE)
    uniforms = np.random.default_rng(recipe.seed + 1).random((SAMPLE, 3))
    read = Moments.measure(reply_features(data.view(drawn, uniforms), sizes))
    acted = Moments.measure(acting_features(*data.observed(drawn), np.zeros((SAMPLE, sizes.size))))
    action_dim = examples.plan.shape[2]
    reads, acts = ((torch.from_numpy(each.mean), torch.from_numpy(each.scale)) for each in (read, acted))
    networks = seeded(
        fitting.seed,
        lambda: IntentNetworks(
            EncoderNetwork(sizes, *reads), CorrectorNetwork(action_dim, recipe.hidden, *acts)
        ),
    )
    wanted = torch.from_numpy(((examples.plan[:, 0] - actions.mean) / actions.scale).astype(np.float32))

    def loss_of(batch: Tensor) -> Tensor:
        rows = batch.numpy()
        view = data.view(rows, torch.rand(len(rows), 3, dtype=torch.float64).numpy())
        replies = torch.from_numpy(reply_features(view, sizes))
        observed = acting_features(*data.observed(rows), np.empty((len(rows), 0)))
        action, log_variance = networks(replies, torch.from_numpy(observed))
        return corrector_loss(action, log_variance, wanted[batch], recipe.beta)

    tensors = map(torch.from_numpy, (examples.step, examples.observation, examples.extra, examples.plan))
    made_of = {"recipe": asdict(recipe), "data": digest_of(*tensors)}
    return networks, fit(networks, loss_of, count, recipe.fit, fitting, made_of)


def save_intent(
    folder: Path,
    name: str,
    networks: IntentNetworks,
    sizes: EncoderConfig,
    hidden: int,
    actions: dict[str, np.ndarray],
    training: dict[str, Any],
) -> Intent:
    """Write both networks with their ONNX files; return the acting one as read back.

    Args:
        folder: of the checkpoints `name` and `name_encoder`.
        name: of the acting network.
        networks: trained.
        sizes: of the encoder.
        hidden: units of the acting network.
        actions: mean, scale and range of the target's actions, see `IntentCheckpoint`.
        training: the checkpoint's notes on its training.
    """
    encoder, acting = networks.encoder, networks.acting

    def write(name: str, tensors: Mapping[str, Tensor], network: nn.Module, kind: str, config: Any) -> None:
        count = weights_count(network)
        how = {"kind": kind, "parameters": count, "config": asdict(config), "training": training}
        save_weights(folder, name, tensors, **how)

    write(name + SUFFIX, encoder.state_dict(), encoder, EncoderCheckpoint.kind, sizes)
    read = load_encoder_checkpoint(encoder_path(folder / name))
    export(read, folder / f"{name}{SUFFIX}.onnx")
    shape = sizes.observation_dim, sizes.action_dim, sizes.horizon, sizes.size
    config = IntentConfig(*shape, read.digest(), hidden)
    arrays = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in actions.items()}
    write(name, {**acting.state_dict(), **arrays}, acting, IntentCheckpoint.kind, config)
    checkpoint = load_intent_checkpoint(folder / name)
    export(checkpoint, folder / f"{name}.onnx")
    return Intent(checkpoint, IntentEncoder(read))


def train_intent(task: str, target: Policy, recipe: IntentRecipe, course: Course) -> list[float]:
    """Train an encoder and the network that acts by its intents; return the last losses.

    Or a network that reads the goal instead, by the same lessons: see `goal_network.py`.

    Args:
        task: what `make` takes.
        target: makes the plans.
        recipe: settings of the training.
        course: its checkpoint is that of the acting network, or `GOAL_ONCE`.

    Raises:
        ValueError: there is nothing to read of what only the target reads, or the task has no place in metres
            for the recipe's noise.
    """
    signature = target.signature
    if course.name == GOAL_ONCE and (signature.image_dim or not signature.goal_dim):
        raise ValueError(f"{GOAL_ONCE}: must be left out, it is for a target that reads a goal and no image")
    worlds: Any = [DisturbedWorld(make(task), 0.0, noise_m) for noise_m in (0.0, recipe.sensor_noise_m)]
    lessons: list[IntentExamples] = []
    act: Act | None = None
    losses: list[float] = []
    for run, note in course.rounds(recipe.rounds):
        before = len(lessons) * recipe.episodes
        noise = recipe.noise if act is None else 0.0
        how = lesson_episodes(recipe.episodes, before), act, recipe.replies, noise, recipe.rests
        lessons.append(lesson(worlds[len(lessons) % 2], target, recipe.seed, *how))
        course.on_episodes(before + recipe.episodes)
        examples = IntentExamples.joined(lessons)
        made_of = examples, recipe, course.folder, run, note, course.name
        if course.name == GOAL_ONCE:
            act, losses = train_on_goal(*made_of)
        else:
            intent, losses = _trained(*made_of)
            act = _acting(intent, recipe.reads_extra)
    return losses


def train_intent_on_recordings(
    planned: Planned,
    recipe: IntentRecipe,
    folder: Path,
    run: Run,
    note: Mapping[str, Any],
    held_out: float,
    name: str,
) -> dict[str, Any]:
    """Train as `train_intent`, on recorded episodes only; return figures.

    Args:
        planned: a robot's observations, and the target's plans there.
        recipe: settings of the training; those of rollouts are ignored.
        folder: see `train_intent`.
        run: of the fit.
        note: the checkpoint's notes on its training.
        held_out: share of the episodes, drawn at random, for the measured error.
        name: see `train_intent`.

    Returns:
        Counts, and the root mean square error in action scales on the episodes held out, of the network and
        of the mean action.
    """
    learnt, unseen = split(planned.data, run.seed, held_out)
    examples, tests = (recorded_examples(planned, numbers) for numbers in (learnt, unseen))
    intent, _ = _trained(examples, recipe, folder, run, lambda losses, count: dict(note), name)
    read = _Data(tests, _sizes_of(intent), recipe.reads_extra)
    rows = np.arange(len(tests))
    view = read.view(rows, np.random.default_rng(run.seed).random((len(rows), 3)))
    wanted, act = tests.plan[:, 0], _acting(intent, recipe.reads_extra)
    return {
        "episodes": len(learnt) + len(unseen),
        "examples": len(examples) + len(tests),
        "held_out": {
            "episodes": len(unseen),
            "examples": len(tests),
            "mean_error": root_mean_square((wanted - examples.plan[:, 0].mean(axis=0)) / intent.action_scale),
            "error": root_mean_square((wanted - act(*read.observed(rows), view)) / intent.action_scale),
        },
    }


def _sizes_of(intent: Intent) -> EncoderConfig:
    """Return the sizes of an intent's encoder."""
    assert intent.encoder is not None
    return intent.encoder.sizes


def recorded_examples(planned: Planned, numbers: Sequence[int]) -> IntentExamples:
    """Return an example of every step of some episodes, with the first of its plans."""
    data, spans = planned.data, list(planned.data.spans())
    goals = step_goals(data)
    parts = []
    for number in numbers:
        rows = np.arange(*spans[number])
        extra = np.concatenate([data.image_features[rows], goals[rows]], axis=1).astype(np.float32)
        seen = data.observations[rows]
        parts.append(IntentExamples(np.arange(len(rows)), seen, seen, extra, planned.plans[rows, 0]))
    return IntentExamples.joined(parts)


def _trained(
    examples: IntentExamples,
    recipe: IntentRecipe,
    folder: Path,
    run: Run,
    note: Note,
    name: str,
) -> tuple[Intent, list[float]]:
    extra_dim = examples.extra.shape[1]
    if recipe.reads_extra and not extra_dim:
        raise ValueError(f"{name}: the target reads nothing that the robot does not; train intent_of_plan")
    sizes = EncoderConfig(
        examples.observation.shape[1],
        *(examples.plan.shape[2], examples.plan.shape[1]),
        extra_dim if recipe.reads_extra else 0,
        recipe.replies,
        **recipe.size,
    )
    moments = Moments.measure(examples.plan[:, 0])
    low, high = examples.plan.min(axis=(0, 1)), examples.plan.max(axis=(0, 1))
    actions = dict(zip(ACTIONS, (moments.mean, moments.scale, low, high), strict=True))
    networks, losses = train_networks(_Data(examples, sizes, recipe.reads_extra), recipe, moments, run)
    training = note(losses, weights_count(networks))
    return save_intent(folder, name, networks, sizes, recipe.hidden, actions, training), losses


def _acting(intent: Intent, reads_extra: bool) -> Act:
    encoder = intent.encoder
    assert encoder is not None

    def act(observation: np.ndarray, previous: np.ndarray, view: RepliesView) -> np.ndarray:
        view = view if reads_extra else replace(view, extra=view.extra[:, :0])
        return intent.act(observation, previous, encoder.encode(view)).actions

    return act
