# SPDX-License-Identifier: Apache-2.0
"""One network that reads the plan and the intent, beside one that reads the intent alone.

    benchmarks/plan_and_intent.py ball_instructed --episodes 600 --seed 4242

One network could correct the plan until it ends, and then act on the intent. Is that enough? Both networks
here learn from lessons of their own (DAgger), by the shipped recipe of the task's intent, and differ only in
their input. A corrector alone is `adahi evaluate TASK --methods corrector+age@7`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Annotated

import numpy as np
import torch
import typer
from rich.table import Table
from torch import Tensor

from adahi_ros.cli.terminal import console
from adahi_ros.core.assets import asset
from adahi_ros.core.observation_buffer import History
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.lab.evaluation.episodes import evaluation_episodes, lesson_episodes
from adahi_ros.lab.evaluation.rollout import for_target
from adahi_ros.lab.tasks import make
from adahi_ros.lab.training.fitting import Run, fit
from adahi_ros.lab.training.intent_data import (
    NEVER,
    IntentExamples,
    drawn_requests,
    lesson,
    newest_requests,
)
from adahi_ros.lab.training.intent_training import IntentNetworks
from adahi_ros.lab.training.recipes import INTENT, IntentRecipe, load_recipe
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector_features import AHEAD
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork, corrector_loss, weights_count
from adahi_ros.policies.intent.intent import extra_of
from adahi_ros.policies.intent.intent_checkpoint import EncoderConfig
from adahi_ros.policies.intent.intent_features import RepliesView, acting_features, reply_features
from adahi_ros.policies.intent.intent_torch import EncoderNetwork
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.step_dataset import Moments

Act = Callable[[np.ndarray, np.ndarray, RepliesView, np.ndarray], np.ndarray]
"""From the newest observation, the one before, the newest reply and the step (B,) to actions."""


def plan_features(view: RepliesView, step: np.ndarray) -> np.ndarray:
    """Return what a corrector reads of a plan, (B, F); zeros after the plan's end."""
    plan, age = view.plan[:, 0], step - view.requested_at[:, 0]
    rows, horizon = np.arange(len(plan)), plan.shape[1]
    ahead = [plan[rows, np.minimum(age + each, horizon - 1)] for each in AHEAD]
    rest = np.arange(horizon) >= age[:, None]
    left = rest.sum(axis=1, keepdims=True)
    mean = (plan * rest[..., None]).sum(axis=1) / np.maximum(left, 1)
    return np.concatenate([*ahead, plan[:, -1], mean, left / horizon], axis=1) * (left > 0)


def inputs(
    observation: np.ndarray, previous: np.ndarray, view: RepliesView, step: np.ndarray, both: bool
) -> np.ndarray:
    """Return the acting network's input without the intent, float32."""
    seen = acting_features(observation, previous, np.zeros((len(observation), 0)))
    parts = [seen, plan_features(view, step)] if both else [seen]
    return np.concatenate(parts, axis=1).astype(np.float32)


def trained(data: IntentExamples, recipe: IntentRecipe, both: bool, seed: int) -> tuple[Act, int]:
    """Train an encoder and the network that acts; return how it acts, and its number of weights."""
    shape = data.observation.shape[1], data.plan.shape[2], data.plan.shape[1], data.extra.shape[1]
    sizes = EncoderConfig(*shape, recipe.replies, **recipe.size)
    actions = Moments.of(data.plan[:, 0])

    def batch_of(rows: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = data.step[rows]
        at = newest_requests(step, *drawn_requests(uniforms), sizes.replies)
        requested = (rows - step)[:, None] + np.maximum(at, 0)
        view = RepliesView(data.observation[requested], data.plan[requested], at, data.extra[requested[:, 0]])
        previous = data.observation[rows - (step > 0)]
        return reply_features(view, sizes), inputs(data.observation[rows], previous, view, step, both)

    draw = np.random.default_rng(seed)
    read, acted = map(Moments.of, batch_of(draw.integers(0, len(data), 4096), draw.random((4096, 3))))
    none = Moments(np.zeros(sizes.size, np.float32), np.ones(sizes.size, np.float32))
    torch.manual_seed(seed)
    networks = IntentNetworks(
        EncoderNetwork(sizes, torch.from_numpy(read.mean), torch.from_numpy(read.scale)),
        CorrectorNetwork(
            shape[1],
            recipe.hidden,
            *(torch.from_numpy(np.append(*each)) for each in zip(_of(acted), _of(none), strict=True)),
        ),
    )
    wanted = torch.from_numpy((data.plan[:, 0] - actions.mean) / actions.scale)

    def loss_of(batch: Tensor) -> Tensor:
        drawn = torch.rand(len(batch), 3, dtype=torch.float64).numpy()
        action, log_variance = networks(*map(torch.from_numpy, batch_of(batch.numpy(), drawn)))
        return corrector_loss(action, log_variance, wanted[batch], recipe.beta)

    fit(networks, loss_of, len(data), recipe.fit, Run(seed), {})
    networks.eval()

    @torch.no_grad()
    def act(observation: np.ndarray, previous: np.ndarray, view: RepliesView, step: np.ndarray) -> np.ndarray:
        read = reply_features(view, sizes), inputs(observation, previous, view, step, both)
        action, _ = networks(*map(torch.from_numpy, read))
        found: np.ndarray = actions.mean + action.numpy() * actions.scale
        return found

    return act, weights_count(networks.acting)


def _of(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    return moments.mean, moments.scale


def taught(task: str, target: Policy, recipe: IntentRecipe, both: bool, seed: int) -> tuple[Act, int]:
    """Train in rounds of rollouts, as `train_intent`."""
    lessons: list[IntentExamples] = []
    act: Act | None = None
    weights = 0
    for number in range(recipe.rounds):
        numbers = lesson_episodes(recipe.episodes, number * recipe.episodes)
        acts = None if act is None else _by_step(act)
        noise = recipe.noise if act is None else 0.0
        lessons.append(lesson(make(task), target, seed, numbers, acts, recipe.replies, noise, recipe.rests))
        act, weights = trained(IntentExamples.joined(lessons), recipe, both, seed)
    assert act is not None
    return act, weights


def _by_step(act: Act) -> Callable[[np.ndarray, np.ndarray, RepliesView], np.ndarray]:
    steps = count()
    return lambda observation, previous, view: act(
        observation, previous, view, np.full(len(observation), next(steps))
    )


def success(task: str, target: Policy, act: Act, numbers: Sequence[int], seed: int, period: int) -> float:
    """Return the share of episodes that succeed with a request every `period` steps, the first at step 0."""
    world = make(task)
    world.reset(seed, numbers)
    draws = EpisodeStreams(seed, "teacher", numbers, target.draws)
    history, robots = History(target.signature, len(numbers)), len(numbers)
    previous, view = world.observation.copy(), None
    for step in count():
        if world.done.all():
            break
        drawn, now = draws.next(), world.observation.copy()
        seen = history.push({OBSERVATION: now, GOAL: world.goal, **for_target(world)})
        if view is None or step % period == 0:
            plan = target.propose(seen, drawn).actions[:, None]
            view = RepliesView(now[:, None], plan, np.full((robots, 1), step), extra_of(seen))
        world.step(act(now, previous, view, np.full(robots, step)))
        previous = now
    return float(world.success.mean())


def measure(
    task: Annotated[str, typer.Argument(help="A task with an intent, such as 'ball_instructed'.")],
    episodes: Annotated[int, typer.Option(min=1, help="Evaluation episodes.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Of the evaluation.")] = 4242,
    training_seed: Annotated[int, typer.Option(min=0, help="Of the trainings.")] = 5,
    lessons: Annotated[int | None, typer.Option(min=1, help="Episodes a round; else the recipe's.")] = None,
) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    recipe = load_recipe(asset(f"config/recipes/{task}-plans.yaml")).taught[INTENT]
    assert isinstance(recipe, IntentRecipe)
    recipe = recipe if lessons is None else replace(recipe, episodes=lessons)
    target = load_policy(asset(f"checkpoints/{task}/plans") / "target", "onnxruntime")
    numbers = evaluation_episodes(episodes)
    periods = {"one request": NEVER, "every 60 steps": 60, "every 8 steps": 8}
    table = Table("the network reads", "weights", *periods, title=f"{task}, {episodes} episodes, seed {seed}")
    for both, name in ((False, "the intent"), (True, "the plan and the intent")):
        act, weights = taught(task, target, recipe, both, training_seed)
        found = [success(task, target, act, numbers, seed, period) for period in periods.values()]
        table.add_row(name, f"{weights:,}", *(f"{each:.3f}" for each in found))
    console.print(table)


if __name__ == "__main__":
    typer.run(measure)
