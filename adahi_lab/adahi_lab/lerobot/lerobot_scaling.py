# SPDX-License-Identifier: Apache-2.0
"""LeRobot's scaling of numbers, from its processors' files or, before LeRobot 0.4, from the weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from adahi_lab.lerobot.lerobot_files import ACTION, LeRobotSchema, read_config
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import Listed, checked, one_of, within
from adahi_ros.core.signature import Ranges
from adahi_ros.core.tensor_files import weights_of

EPSILON = 1e-8  # LeRobot's own, where a scale would be zero
RANGES = {"MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}
MODES: dict[str, tuple[str, ...]] = {"IDENTITY": (), "MEAN_STD": ("mean", "std"), **RANGES}
"""Kinds of scaling, and the statistics that each uses."""
STATISTICS = {"minimum": "min", "maximum": "max", "q01": "q01", "q99": "q99"}
"""LeRobot's names of the fields of `Ranges`."""
Modes = dict[str, Annotated[str, one_of(MODES)]]
PLAIN_STEPS = ("rename_observations_processor", "to_batch_processor", "device_processor")


@dataclass(frozen=True)
class Scaling:
    """Scaling of a feature: normalized = (value - shift) / scale + bias.

    Attributes:
        shift, scale: in the shape of the feature; scale positive.
        bias: the normalized value of `shift`.
        still: likewise, true for entries that were constant in the data: LeRobot's scale is nearly zero
            there.
    """

    shift: Tensor
    scale: Tensor
    bias: float
    still: Tensor


@dataclass(frozen=True)
class _ScalingStep(LeRobotSchema):
    registry_name: str = ""
    class_: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    state_file: str | None = None


@dataclass(frozen=True)
class _Pipeline(LeRobotSchema):
    steps: Listed[_ScalingStep]


@dataclass(frozen=True)
class _Type(LeRobotSchema):
    type: str


@dataclass(frozen=True)
class _Normalizer(LeRobotSchema):
    features: dict[str, _Type]
    norm_map: Modes
    normalize_observation_keys: Listed[str] | None = None
    eps: Annotated[float, within(0.0, 1.0)] = EPSILON


class Processor:
    """One of the two files in which LeRobot since 0.4 stores the scaling of a policy's inputs or outputs.

    Attributes:
        files: the file, and the file with the numbers.
    """

    def __init__(self, path: Path, step_name: str) -> None:
        self.files = [path]
        steps = read_config(_Pipeline, path).steps
        for name in (step.registry_name or step.class_ for step in steps):
            if name not in (step_name, *PLAIN_STEPS):
                known = ", ".join((step_name, *PLAIN_STEPS))
                raise CheckpointError(f"{path}: steps: {name}: not known here, must be of {known}")
        found = [step for step in steps if step_name in (step.registry_name, step.class_)]
        if len(found) != 1:
            raise CheckpointError(f"{path}: steps: {step_name}: {len(found)} times, must be once")
        try:
            self._config: _Normalizer = checked(_Normalizer, found[0].config)
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None
        self._stats: dict[str, Tensor] = {}
        if found[0].state_file is not None:
            self.files.append(path.parent / Path(found[0].state_file).name)
            with weights_of(self.files[-1]):
                self._stats = load_file(self.files[-1])

    def scaling(self, key: str) -> Scaling:
        """Return the scaling of a feature.

        Raises:
            CheckpointError: the file has none, or an invalid one.
        """
        config = self._config
        if key not in config.features:
            raise CheckpointError(f"{self.files[0]}: features: {key}: missing")
        mode, alone = (
            config.norm_map.get(config.features[key].type, "IDENTITY"),
            config.normalize_observation_keys,
        )
        if key != ACTION and alone is not None and key not in alone:
            mode = "IDENTITY"
        return _scaling(mode, f"{key}.", self._stats, config.eps, self.files[-1])

    def ranges(self, key: str, size: int) -> Ranges:
        """Return the ranges of a feature's numbers in the training data, as far as the file has them."""
        found = {}
        for name, statistic in STATISTICS.items():
            values = self._stats.get(f"{key}.{statistic}")
            if values is not None and values.numel() == size:
                found[name] = tuple(values.double().flatten().tolist())
        return Ranges(**found)


def among_weights(mode: str, layer: str, key: str, tensors: dict[str, Tensor], path: Path) -> Scaling:
    """Read the scaling of a feature as LeRobot before 0.4 stored it.

    Raises:
        CheckpointError: it is missing or invalid.
    """
    return _scaling(mode, f"{layer}.buffer_{key.replace('.', '_')}.", tensors, EPSILON, path)


def _scaling(mode: str, before: str, tensors: dict[str, Tensor], epsilon: float, where: Path) -> Scaling:
    names = [f"{before}{statistic}" for statistic in MODES[mode]]
    for name in names:
        if name not in tensors:
            raise CheckpointError(f"{where}: {name}: missing, but its normalization is {mode}")
        if not torch.isfinite(tensors[name]).all():
            raise CheckpointError(f"{where}: {name}: holds values that are not finite")
    if mode == "IDENTITY":
        return Scaling(torch.zeros(()), torch.ones(()), 0.0, torch.tensor(False))
    first, second = (tensors[name].float() for name in names)
    if first.shape != second.shape:
        shapes = f"{tuple(first.shape)}, {tuple(second.shape)}"
        raise CheckpointError(f"{where}: {', '.join(names)}: of shapes {shapes}, must be the same")
    if mode == "MEAN_STD":
        return Scaling(first, second + epsilon, 0.0, second == 0)
    reach = second - first
    still = reach == 0
    return Scaling(first, torch.where(still, epsilon, reach) / 2, -1.0, still)


def shaped(scaling: Scaling, shape: tuple[int, ...], folder: Path) -> Scaling:
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
