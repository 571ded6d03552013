# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of flow policies: `NAME.safetensors`, `NAME.json` and, once exported, `NAME.onnx`. No torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.core.checkpoint_files import (
    CheckpointError,
    check_count,
    check_integers,
    check_shapes,
    description_of_kind,
    read_shapes,
    read_tensors,
)
from adahi_ros.core.signature import GOAL, Feature, Signature, observed_features

KIND = "flow"
READS = ("windows", "goals", "noise", "known")
"""What the exported network reads; see `FlowNetwork.forward`."""
LARGEST = {"window_length": 4096, "horizon": 4096, "steps": 1000, "noise": 10}
SIZES = (
    *("observation_dim", "goal_dim", "action_dim", "window_length", "horizon"),
    *("width", "layers", "heads", "head_width", "head_layers", "steps"),
)


@dataclass(frozen=True)
class FlowCheckpoint:
    """A flow policy on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        config: the arguments of `FlowConfig`.
        parameters: number of trainable weights.
        action_scale, action_low, action_high: (A,) float32 of the demonstrations.
        training: how it was made.
    """

    weights: Path
    config: dict[str, Any]
    parameters: int
    action_scale: np.ndarray
    action_low: np.ndarray
    action_high: np.ndarray
    training: dict[str, Any]

    @property
    def signature(self) -> Signature:
        """What the policy reads and proposes."""
        config = self.config
        return Signature(
            history=config["window_length"],
            horizon=config["horizon"],
            action_dim=config["action_dim"],
            features=observed_features(config["observation_dim"], config.get("image_dim", 0)),
            conditions=(Feature(GOAL, config["goal_dim"]),) if config["goal_dim"] else (),
            parameters=self.parameters,
        )

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        # An exported network that reads something else is another one.
        config = json.dumps([READS, self.config], sort_keys=True).encode()
        return hashlib.sha256(config + self.weights.read_bytes()).hexdigest()[:16]


def load_flow(path: Path) -> FlowCheckpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing or damaged.
    """
    path, meta = description_of_kind(path, KIND)
    try:
        config = dict(meta["config"])
        parameters = meta["parameters"]
        check_integers({**{size: config[size] for size in SIZES}, "parameters": parameters})
        for size in ("window_length", "horizon", "steps"):
            check_integers({size: config[size]}, LARGEST[size])
        noise = config["noise"]
        if (
            isinstance(noise, bool)
            or not isinstance(noise, float | int)
            or not 0.0 <= noise <= LARGEST["noise"]
        ):
            raise ValueError(f"noise: {noise!r}, must be a number from 0 to 10")
        check_integers({"image_dim": config.get("image_dim", 0)}, config["observation_dim"])
        unknown = config.keys() - {*SIZES, "noise", "image_dim"}
        if unknown:
            raise ValueError(f"{min(unknown)}: unknown")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a whole description of a flow policy ({error})") from None
    weights = path.with_suffix(".safetensors")
    try:
        _check_network(config, weights)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{weights}: {error}") from None
    tensors = read_tensors(weights)
    scale, low, high = (tensors[f"action_{name}"] for name in ("scale", "low", "high"))
    if not (np.isfinite(scale) & (scale > 0) & np.isfinite(low) & (low <= high) & np.isfinite(high)).all():
        raise CheckpointError(f"{weights}: action_scale, action_low, action_high: no range of actions")
    return FlowCheckpoint(weights, config, parameters, scale, low, high, meta.get("training", {}))


def _check_network(config: dict[str, Any], weights: Path) -> None:
    """Compare the sizes of a network with its weights: every size, and every layer by its largest part."""
    shapes = read_shapes(weights)
    width, head, goal_dim = (config[size] for size in ("width", "head_width", "goal_dim"))
    action_dim = config["action_dim"]
    size = config["horizon"] * action_dim
    check_count("layers", config["layers"], shapes, "blocks.", ".mlp.0.weight")
    check_count("head_layers", config["head_layers"], shapes, "velocity_blocks.", ".film.weight")
    check_shapes(
        shapes,
        {
            "observation_in.weight": (width, config["observation_dim"]),
            "goal_mean": (goal_dim,),
            "position": (bool(goal_dim) + config["window_length"], width),
            **({"goal_in.weight": (width, goal_dim)} if goal_dim else {}),
            **{f"blocks.{layer}.mlp.0.weight": (4 * width, width) for layer in range(config["layers"])},
            **{
                f"velocity_blocks.{each}.film.weight": (2 * head, head)
                for each in range(config["head_layers"])
            },
            **{f"action_{name}": (action_dim,) for name in ("mean", "scale", "low", "high")},
            "plan_in.weight": (head, size),
            "velocity_out.weight": (size, head),
        },
    )
