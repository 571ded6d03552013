# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of flow policies, read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import within
from adahi_ros.core.signature import Signature
from adahi_ros.core.tensor_files import Shapes, read_tensors
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.networks.network_checkpoint import (
    Length,
    NetworkCheckpoint,
    Size,
    SizeOrNone,
    TransformerSizes,
    network_digest,
    read_network,
)


@dataclass(frozen=True)
class FlowConfig(TransformerSizes):
    """Sizes of a flow policy.

    Attributes:
        observation_dim, goal_dim, action_dim: O, G and A.
        window_length: H, observations that it reads.
        horizon: T, actions of a plan.
        width, layers, heads: of the transformer.
        head_width, head_layers: of the velocity network.
        steps: S, from noise to plan.
        noise: standard deviation of the initial noise; 1 is as in training, less makes plans
            nearer to the likeliest.
        image_dim: see `observed_features`.
    """

    layered: ClassVar[dict[str, tuple[str, str]]] = {
        **TransformerSizes.layered,
        "head_layers": ("velocity_blocks.", ".film.weight"),
    }

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    window_length: Length
    horizon: Length = 16
    width: Size = 64
    layers: Size = 2
    heads: Size = 4
    head_width: Size = 128
    head_layers: Size = 2
    steps: Annotated[int, within(1, 1000, "an integer")] = 8
    noise: Annotated[float, within(0.0, 10.0)] = 1.0
    image_dim: SizeOrNone = 0

    @property
    def is_regression(self) -> bool:
        """Whether a plan is the mean of what may follow: one step from no noise.

        It may lie a little beyond what was demonstrated, so it is clamped. A flow's plan there is a bad draw,
        and is refused.
        """
        return self.steps == 1 and self.noise == 0.0

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        head, size = self.head_width, self.horizon * self.action_dim
        return {
            **super().shapes(),
            **{f"velocity_blocks.{each}.film.weight": (2 * head, head) for each in range(self.head_layers)},
            **{f"action_{name}": (self.action_dim,) for name in ("mean", "scale", "low", "high")},
            "plan_in.weight": (head, size),
            "velocity_out.weight": (size, head),
        }


@dataclass(frozen=True)
class FlowCheckpoint(NetworkCheckpoint[FlowConfig]):
    """A flow policy on disk, read but not yet running.

    Attributes:
        action_scale, action_low, action_high: (A,) float32 of the demonstrations.
    """

    kind = "flow"
    network = "adahi_ros.policies.flow.flow_torch:load_network"
    outputs = ("plans",)

    action_scale: np.ndarray
    action_low: np.ndarray
    action_high: np.ndarray

    @property
    def signature(self) -> Signature:
        """Inputs and proposals of the policy."""
        sizes = self.sizes
        return flat_signature(
            sizes.window_length,
            sizes.horizon,
            sizes.action_dim,
            sizes.observation_dim,
            sizes.goal_dim,
            sizes.image_dim,
            parameters=self.parameters,
        )

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """See `NetworkCheckpoint`, and `FlowNetwork.forward`."""
        sizes = self.sizes
        return {
            "windows": (sizes.window_length, sizes.observation_dim),
            "goals": (sizes.goal_dim,),
            "noise": (sizes.horizon * sizes.action_dim,),
            "known": (sizes.horizon, sizes.action_dim),
        }

    def digest(self) -> str:
        """See `NetworkCheckpoint`; an exported network with other inputs is a different one."""
        return network_digest([list(self.inputs()), self.config], self.weights.read_bytes())


def load_flow(path: Path, made: type[FlowCheckpoint] = FlowCheckpoint) -> FlowCheckpoint:
    """Read a policy's description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Args:
        path: of the checkpoint.
        made: of its kind.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    weights, sizes, description = read_network(path, made.kind, FlowConfig)
    tensors = read_tensors(weights)
    scale, low, high = (tensors[f"action_{name}"] for name in ("scale", "low", "high"))
    if not (np.isfinite(scale) & (scale > 0) & np.isfinite(low) & (low <= high) & np.isfinite(high)).all():
        raise CheckpointError(f"{weights}: action_scale, action_low, action_high: no range of actions")
    return made(weights, sizes, description, scale, low, high)
