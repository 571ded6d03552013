# SPDX-License-Identifier: Apache-2.0
"""How LeRobot scales numbers: told by its processors' files or, before LeRobot 0.4, among the weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.lerobot.lerobot_files import ACTION, CONFIG, mapping, read_config, read_tensors

EPSILON = 1e-8  # LeRobot's own, where a scale would be zero
RANGES = {"MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}
PLAIN_STEPS = ("rename_observations_processor", "to_batch_processor", "device_processor")


@dataclass(frozen=True)
class Scaling:
    """Where a feature's numbers lie: normalized = (value - shift) / scale + bias.

    Attributes:
        shift, scale: as the feature is shaped; scale positive.
        bias: what `shift` becomes.
        still: likewise, true for what never moved in the data: LeRobot scales it by nearly nothing.
    """

    shift: Tensor
    scale: Tensor
    bias: float
    still: Tensor


class Processor:
    """One of the two files with which LeRobot since 0.4 scales what goes into a policy, or comes out.

    Attributes:
        files: the file, and that with the numbers.
    """

    def __init__(self, path: Path, step_name: str) -> None:
        self.files = [path]
        self._path = path
        steps = read_config(path).get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise CheckpointError(f"{path}: steps: must be a list of mappings")
        found = []
        for step in steps:
            name = step.get("registry_name", step.get("class"))
            if name == step_name:
                found.append(step)
            elif name not in PLAIN_STEPS:
                known = ", ".join((step_name, *PLAIN_STEPS))
                raise CheckpointError(f"{path}: steps: {name}: not known here, must be of {known}")
        if len(found) != 1:
            raise CheckpointError(f"{path}: steps: {step_name}: {len(found)} times, must be once")
        self._config = mapping(found[0], "config", path)
        self._stats: dict[str, Tensor] = {}
        if (state_file := found[0].get("state_file")) is not None:
            state_path = path.parent / Path(str(state_file)).name
            self.files.append(state_path)
            self._stats = read_tensors(state_path)

    def scaling(self, key: str) -> Scaling:
        """Return how a feature is scaled.

        Raises:
            CheckpointError: the file does not say, or says what cannot be.
        """
        feature = mapping(self._config, "features", self._path).get(key)
        if not isinstance(feature, dict):
            raise CheckpointError(f"{self._path}: features: {key}: missing")
        mode = mapping(self._config, "norm_map", self._path).get(str(feature.get("type")), "IDENTITY")
        alone = self._config.get("normalize_observation_keys")
        if alone is not None and not isinstance(alone, list):
            raise CheckpointError(f"{self._path}: normalize_observation_keys: {alone!r}, must be a list")
        if key != ACTION and alone is not None and key not in alone:
            mode = "IDENTITY"
        epsilon = self._config.get("eps", EPSILON)
        if not isinstance(epsilon, (int, float)) or not 0 <= epsilon <= 1:
            raise CheckpointError(f"{self._path}: eps: {epsilon!r}, must be from 0 to 1")
        names = {stat: f"{key}.{stat}" for stat in _statistics(mode, self._path)}
        return _scaling(mode, names, self._stats, epsilon, self.files[-1])


def among_weights(
    config: dict[str, Any], layer: str, key: str, kind: str, tensors: dict[str, Tensor], path: Path
) -> Scaling:
    """Read the scaling of a feature as LeRobot before 0.4 stored it.

    Raises:
        CheckpointError: it is missing, or cannot be.
    """
    mode = mapping(config, "normalization_mapping", path.parent / CONFIG).get(kind, "IDENTITY")
    buffer = f"{layer}.buffer_{key.replace('.', '_')}"
    names = {stat: f"{buffer}.{stat}" for stat in _statistics(mode, path.parent / CONFIG)}
    return _scaling(mode, names, tensors, EPSILON, path)


def _statistics(mode: Any, where: Path) -> tuple[str, ...]:
    known = {"IDENTITY": (), "MEAN_STD": ("mean", "std"), **RANGES}
    if not isinstance(mode, str) or mode not in known:
        raise CheckpointError(f"{where}: normalization: {mode!r}, must be of {', '.join(known)}")
    return known[mode]


def _scaling(
    mode: str, names: dict[str, str], tensors: dict[str, Tensor], epsilon: float, where: Path
) -> Scaling:
    for name in names.values():
        if name not in tensors:
            raise CheckpointError(f"{where}: {name}: missing, but its normalization is {mode}")
        if not torch.isfinite(tensors[name]).all():
            raise CheckpointError(f"{where}: {name}: holds values that are not finite")
    if mode == "IDENTITY":
        return Scaling(torch.zeros(()), torch.ones(()), 0.0, torch.tensor(False))
    first, second = (tensors[name].float() for name in names.values())
    if first.shape != second.shape:
        shapes = f"{tuple(first.shape)}, {tuple(second.shape)}"
        raise CheckpointError(f"{where}: {', '.join(names.values())}: of shapes {shapes}, must be the same")
    if mode == "MEAN_STD":
        return Scaling(first, second + epsilon, 0.0, second == 0)
    reach = second - first
    still = reach == 0
    return Scaling(first, torch.where(still, epsilon, reach) / 2, -1.0, still)


def shaped(scaling: Scaling, shape: list[int], folder: Path) -> Scaling:
    """Return a scaling in the shape of its feature.

    Raises:
        CheckpointError: it is of another shape, or a scale is not positive.
    """
    try:
        shift, scale, still = (
            part.expand(shape).contiguous() for part in (scaling.shift, scaling.scale, scaling.still)
        )
    except RuntimeError:
        raise CheckpointError(
            f"{folder}: normalization: of shape {tuple(scaling.shift.shape)}, must be {tuple(shape)}"
        ) from None
    if not (scale > 0).all():
        raise CheckpointError(f"{folder}: normalization: scale {scale.min()}, must be above 0")
    return Scaling(shift, scale, scaling.bias, still)
