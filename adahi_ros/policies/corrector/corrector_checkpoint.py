# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of correctors: `NAME.safetensors`, `NAME.json` and `NAME.onnx`. No torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.core.checkpoint_files import (
    CheckpointError,
    check_integers,
    check_shapes,
    description_of_kind,
    read_shapes,
    read_tensors,
)
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Signature
from adahi_ros.policies.corrector.corrector_features import FeatureScales, feature_count

KIND = "corrector"
LARGEST = 4096
SIZES = ("observation_dim", "goal_dim", "action_dim", "horizon", "hidden")
SCALES = tuple(each.name for each in fields(FeatureScales))


@dataclass(frozen=True)
class CorrectorCheckpoint:
    """A corrector on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        config: the arguments of `CorrectorConfig`.
        parameters: number of trainable weights.
        scales: of its features.
        action_low, action_high: (A,) float32, the range of the demonstrations.
        training: how it was made.
    """

    weights: Path
    config: dict[str, int]
    parameters: int
    scales: FeatureScales
    action_low: np.ndarray
    action_high: np.ndarray
    training: dict[str, Any]

    @property
    def signature(self) -> Signature:
        """What a robot observes and does; the horizon is that of the plans."""
        return Signature(
            history=1,
            horizon=self.config["horizon"],
            action_dim=self.config["action_dim"],
            features=(Feature(OBSERVATION, self.config["observation_dim"]),),
            conditions=(Feature(GOAL, self.config["goal_dim"]),) if self.config["goal_dim"] else (),
            parameters=self.parameters,
        )

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        config = json.dumps(self.config, sort_keys=True).encode()
        return hashlib.sha256(config + self.weights.read_bytes()).hexdigest()[:16]


def load_corrector(path: Path) -> CorrectorCheckpoint:
    """Read a corrector's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing or damaged.
    """
    path, meta = description_of_kind(path, KIND)
    weights = path.with_suffix(".safetensors")
    try:
        config = {size: meta["config"][size] for size in SIZES}
        check_integers({**config, "parameters": meta["parameters"]})
        check_integers(config, LARGEST)
        for size, value in config.items():
            if value < 1 and size != "goal_dim":
                raise ValueError(f"{size}: {value}, must be at least 1")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a whole description of a corrector ({error})") from None
    observation, goal, action = (config[f"{each}_dim"] for each in ("observation", "goal", "action"))
    read, hidden = feature_count(observation, goal, action), config["hidden"]
    sizes = {"observation": observation, "change": observation, "goal": goal, "action": action}
    try:
        check_shapes(
            read_shapes(weights),
            {
                "mean": (read,),
                "std": (read,),
                "layers.0.weight": (hidden, read),
                "layers.2.weight": (hidden, hidden),
                "layers.4.weight": (action + 1, hidden),
                **{name: (sizes[name.partition("_")[0]],) for name in (*SCALES, "action_low", "action_high")},
            },
        )
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{weights}: {error}") from None
    tensors = read_tensors(weights)
    scales = FeatureScales(**{name: tensors[name] for name in SCALES})
    for name in (*SCALES, "action_low", "action_high"):
        positive = not name.endswith("scale") or (tensors[name] > 0).all()
        if not (np.isfinite(tensors[name]).all() and positive):
            raise CheckpointError(f"{weights}: {name}: must be finite, and positive where it is a scale")
    low, high = tensors["action_low"], tensors["action_high"]
    return CorrectorCheckpoint(
        weights, config, meta["parameters"], scales, low, high, meta.get("training", {})
    )
