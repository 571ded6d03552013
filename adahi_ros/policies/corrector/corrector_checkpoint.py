# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of correctors, read without torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import within
from adahi_ros.core.signature import Signature
from adahi_ros.core.tensor_files import Shapes, read_tensors
from adahi_ros.policies.corrector.corrector_features import FeatureScales, feature_count
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.networks.network_checkpoint import (
    LONGEST,
    Length,
    NetworkCheckpoint,
    NetworkSizes,
    read_network,
)

SCALES = tuple(each.name for each in fields(FeatureScales))
RANGE = ("action_low", "action_high")


@dataclass(frozen=True)
class CorrectorConfig(NetworkSizes):
    """Sizes of a corrector.

    Attributes:
        observation_dim, goal_dim, action_dim, horizon: O, G, A and T of what it corrects.
        hidden: units of each of its two layers.
    """

    observation_dim: Length
    goal_dim: Annotated[int, within(0, LONGEST, "an integer")]
    action_dim: Length
    horizon: Length
    hidden: Length = 32

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        observation, goal, action = self.observation_dim, self.goal_dim, self.action_dim
        read = feature_count(observation, goal, action)
        sizes = {"observation": observation, "change": observation, "goal": goal, "action": action}
        return {
            "mean": (read,),
            "std": (read,),
            "layers.0.weight": (self.hidden, read),
            "layers.2.weight": (self.hidden, self.hidden),
            "layers.4.weight": (action + 1, self.hidden),
            **{name: (sizes[name.partition("_")[0]],) for name in (*SCALES, *RANGE)},
        }


@dataclass(frozen=True)
class CorrectorCheckpoint(NetworkCheckpoint[CorrectorConfig]):
    """A corrector on disk, read but not yet running.

    Attributes:
        scales: of its features.
        action_low, action_high: (A,) float32, the range of the demonstrations.
    """

    kind = "corrector"
    network = "adahi_ros.policies.corrector.corrector_torch:load_network"
    outputs = ("correction", "log_variance")

    scales: FeatureScales
    action_low: np.ndarray
    action_high: np.ndarray

    @property
    def signature(self) -> Signature:
        """A robot's observations and actions; the horizon is that of the plans."""
        sizes = self.sizes
        return flat_signature(
            1,
            sizes.horizon,
            sizes.action_dim,
            sizes.observation_dim,
            sizes.goal_dim,
            parameters=self.parameters,
        )

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`."""
        sizes = self.sizes
        return {"features": (feature_count(sizes.observation_dim, sizes.goal_dim, sizes.action_dim),)}


def load_corrector(path: Path) -> CorrectorCheckpoint:
    """Read a corrector's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing or damaged.
    """
    weights, sizes, description = read_network(path, CorrectorCheckpoint.kind, CorrectorConfig)
    tensors = read_tensors(weights)
    for name in (*SCALES, *RANGE):
        positive = not name.endswith("scale") or (tensors[name] > 0).all()
        if not (np.isfinite(tensors[name]).all() and positive):
            raise CheckpointError(f"{weights}: {name}: must be finite, and positive where it is a scale")
    scales = FeatureScales(**{name: tensors[name] for name in SCALES})
    return CorrectorCheckpoint(weights, sizes, description, scales, *(tensors[name] for name in RANGE))
