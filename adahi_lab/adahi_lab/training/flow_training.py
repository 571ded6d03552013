# SPDX-License-Identifier: Apache-2.0
"""Training of a flow policy: the velocity from noise to demonstrated plan, at every step of every window.

With one step and without noise a flow is a regression: it makes the mean plan. It is trained as such, which
takes fewer steps, and is right where an expert always does the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import FitConfig, Run, digest_of, fit, input_moments, seeded, sizes_of
from adahi_lab.training.step_dataset import Moments, action_chunks, step_goals, window_indices
from adahi_ros.core.schema import within
from adahi_ros.policies.flow.flow_checkpoint import FlowConfig
from adahi_ros.policies.flow.flow_network import FlowNetwork


@dataclass(frozen=True)
class FlowFitConfig(FitConfig):
    """How long and how fast to train, and what counts.

    Attributes:
        discount: weight of an action's error, relative to the action before it. Less than 1 makes the first
            actions precise, which a robot that often requests executes.
    """

    discount: Annotated[float, within(0.01, 1.0)] = 1.0


def train_flow(
    data: Trajectories,
    window_length: int,
    size: dict[str, Any],
    fit_config: FlowFitConfig,
    run: Run,
) -> tuple[FlowNetwork, list[float]]:
    """Train a flow policy; return it and its losses.

    Args:
        data: demonstrations.
        window_length: H.
        size: other arguments of `FlowConfig`. A plan past an episode's end repeats its last action.
        fit_config: how long and how fast.
        run: seed, saved state and progress.
    """
    config = FlowConfig(
        **sizes_of(data, window_length),
        **size,
    )
    moments = input_moments(Moments.measure(data.inputs), Moments.measure(data.goals))
    action = Moments.measure(data.actions)
    arrays = (action.mean, action.scale, data.actions.min(axis=0), data.actions.max(axis=0))
    network = seeded(run.seed, lambda: FlowNetwork(config, moments, *map(torch.from_numpy, arrays)))
    observations = torch.from_numpy(data.inputs)
    goals = torch.from_numpy(step_goals(data))
    rows = torch.from_numpy(window_indices(data, window_length))
    plans = network.scaled(torch.from_numpy(action_chunks(data, config.horizon)))

    weight = (fit_config.discount ** torch.arange(config.horizon)).repeat_interleave(data.actions.shape[1])
    weight = weight / weight.mean()
    regression = config.steps == 1 and config.noise == 0.0

    def loss_of(batch: Tensor) -> Tensor:
        steps = rows[batch]
        features = network.features(observations[steps], goals[batch])
        plan, noise = plans[steps], torch.randn(*steps.shape, plans.shape[-1])
        time = torch.rand(*steps.shape, 1)
        if regression:
            noise, time = torch.zeros_like(noise), torch.zeros_like(time)
        velocity = network.velocity(features, (1.0 - time) * noise + time * plan, time)
        error: Tensor = (weight * (velocity - (plan - noise)) ** 2).mean()
        return error

    recipe = {"policy": asdict(config), "data": digest_of(observations, goals, plans)}
    return network, fit(network, loss_of, len(rows), fit_config, run, recipe)
