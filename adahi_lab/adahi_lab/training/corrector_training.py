# SPDX-License-Identifier: Apache-2.0
"""Training of a corrector on examples, and its files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.corrector_loss import corrector_loss, weights_count
from adahi_lab.training.fitting import FitConfig, Run, digest_of, fit, seeded
from adahi_lab.training.saved_weights import save_weights
from adahi_lab.training.step_dataset import Moments
from adahi_ros.policies.corrector.corrector_checkpoint import (
    CorrectorCheckpoint,
    CorrectorConfig,
    load_corrector,
)
from adahi_ros.policies.corrector.corrector_features import FeatureScales
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.networks.onnx_export import export

SMALLEST_CHANGE = 1e-3  # of an observation's scale, so that nearly constant entries do not dominate


def scales_of(data: Trajectories, with_goal: bool) -> FeatureScales:
    """Return the units of demonstrations; without goals for a robot that gets none."""
    observation, action = Moments.measure(data.observations), Moments.measure(data.actions)
    goal = Moments.measure(data.goals[:, : data.goals.shape[1] if with_goal else 0])
    within = np.ones(len(data.observations) - 1, dtype=bool)
    within[data.ends[:-1] - 1] = False  # no change across episodes
    change = np.diff(data.observations, axis=0)[within].std(axis=0) + SMALLEST_CHANGE * observation.scale
    return FeatureScales(
        observation.mean,
        observation.scale,
        change.astype(np.float32),
        goal.mean,
        goal.scale,
        action.mean,
        action.scale,
    )


def train_corrector(
    features: np.ndarray,
    wanted: np.ndarray,
    hidden: int,
    fit_config: FitConfig,
    run: Run,
    beta: float = 0.0,
    from_mean: bool = False,
) -> tuple[CorrectorNetwork, list[float]]:
    """Train a corrector; return it and its losses.

    Args:
        features: (N, F) float32.
        wanted: (N, A) float32, corrections in action scales.
        hidden: see `CorrectorConfig`.
        fit_config: how long and how fast.
        run: seed, saved state and progress.
        beta: see `corrector_loss`.
        from_mean: start at the mean of `wanted`, which is not near zero.
    """
    read, wanted_of = torch.from_numpy(features), torch.from_numpy(wanted)
    moments = Moments.measure(features)
    units = torch.from_numpy(moments.mean), torch.from_numpy(moments.scale)
    network = seeded(run.seed, lambda: CorrectorNetwork(wanted.shape[1], hidden, *units))
    if from_mean:
        with torch.no_grad():
            network.layers[-1].get_parameter("bias")[:-1] = wanted_of.mean(dim=0)

    def loss_of(batch: Tensor) -> Tensor:
        correction, log_variance = network(read[batch])
        return corrector_loss(correction, log_variance, wanted_of[batch], beta)

    recipe = {"hidden": hidden, "beta": beta, "data": digest_of(read, wanted_of)}
    return network, fit(network, loss_of, len(read), fit_config, run, recipe)


def running(network: CorrectorNetwork) -> RunNetwork:
    """Return a network for a `Corrector` that is not saved yet."""

    @torch.inference_mode()
    def run(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        correction, log_variance = network(torch.from_numpy(features))
        return correction.numpy(), log_variance.numpy()

    return run


def save_corrector(
    directory: Path,
    name: str,
    network: CorrectorNetwork,
    config: CorrectorConfig,
    scales: FeatureScales,
    action_range: tuple[np.ndarray, np.ndarray],
    training: dict[str, Any],
) -> None:
    """Write a trained corrector without its ONNX file."""
    arrays = {**vars(scales), "action_low": action_range[0], "action_high": action_range[1]}
    numbers = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in arrays.items()}
    save_weights(
        directory,
        name,
        {**network.state_dict(), **numbers},
        kind=CorrectorCheckpoint.kind,
        parameters=weights_count(network),
        config=asdict(config),
        training=training,
    )


def save_with_export(directory: Path, name: str, *trained: Any) -> CorrectorCheckpoint:
    """Write a trained corrector as `save_corrector` does, and its ONNX file; return it as read back."""
    save_corrector(directory, name, *trained)
    checkpoint = load_corrector(directory / name)
    export(checkpoint, directory / f"{name}.onnx")
    return checkpoint
