# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of trained networks, and their runtimes: read without torch, run on ONNX Runtime or torch.

NAME.safetensors    the weights
NAME.json           kind of network, its sizes, and how it was made
NAME.onnx           the network as ONNX Runtime runs it, once exported
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError, description_of_kind
from adahi_ros.core.registry import at_place
from adahi_ros.core.schema import Schema, at_least, checked, within
from adahi_ros.core.tensor_files import Shapes, check_count, check_shapes, read_shapes
from adahi_ros.policies.networks.onnx_cache import OpenSession, onnx_session

if TYPE_CHECKING:
    from adahi_ros.policies.networks.computing import OnTorch

EXPORT = "adahi_ros.policies.networks.onnx_export:export"  # needs torch
LONGEST = 4096  # observations and actions; attention takes the square of the former
Size = Annotated[int, at_least(1)]
SizeOrNone = Annotated[int, at_least(0)]
Length = Annotated[int, within(1, LONGEST, "an integer")]
RunNetwork = Callable[..., tuple[np.ndarray, ...]]
"""Runs a network: from its inputs to its outputs, arrays with a row per robot."""


class NetworkSizes(Schema):
    """Base of the configurations of networks."""

    layered: ClassVar[dict[str, tuple[str, str]]] = {}
    """By the size that counts layers, the text before and after the number in their names."""

    def shapes(self) -> Shapes:
        """Return shapes of weights in which every size occurs, and of every layer its largest part."""
        raise NotImplementedError

    def check_weights(self, path: Path) -> None:
        """Compare with the weights in a file, before these sizes are used.

        Raises:
            CheckpointError: the file is missing or damaged, or its weights have other sizes.
        """
        found = read_shapes(path)
        try:
            for size, (before, after) in self.layered.items():
                check_count(size, getattr(self, size), found, before, after)
            check_shapes(found, self.shapes())
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None


class TransformerSizes(NetworkSizes):
    """Base of the configurations of `ObservationTransformer`; `image_dim`, see `observed_features`."""

    observation_dim: int
    goal_dim: int
    window_length: int
    width: int
    layers: int
    heads: int
    image_dim: int
    layered: ClassVar[dict[str, tuple[str, str]]] = {"layers": ("blocks.", ".mlp.0.weight")}

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width: {self.width}, must be a multiple of heads = {self.heads}")
        if self.image_dim > self.observation_dim:
            raise ValueError(f"image_dim: {self.image_dim}, must be at most {self.observation_dim}")

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        width, goal_dim = self.width, self.goal_dim
        return {
            "observation_in.weight": (width, self.observation_dim),
            "goal_mean": (goal_dim,),
            "position": (bool(goal_dim) + self.window_length, width),
            **({"goal_in.weight": (width, goal_dim)} if goal_dim else {}),
            **{f"blocks.{layer}.mlp.0.weight": (4 * width, width) for layer in range(self.layers)},
        }


S = TypeVar("S", bound=NetworkSizes)


@dataclass(frozen=True)
class NetworkCheckpoint(Generic[S]):
    """A network on disk, read but not yet running.

    Attributes:
        weights: path of its safetensors file.
        sizes: its configuration.
        description: the content of its JSON file.
    """

    kind: ClassVar[str]
    network: ClassVar[str]
    """Builds the torch network of a checkpoint, as "module:function"."""
    outputs: ClassVar[tuple[str, ...]]

    weights: Path
    sizes: S
    description: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        """Its sizes as the file has them: older files lack some."""
        config: dict[str, Any] = self.description["config"]
        return config

    @property
    def parameters(self) -> int:
        """Number of trainable weights."""
        return int(self.description["parameters"])

    @property
    def training(self) -> dict[str, Any]:
        """Notes on how it was made."""
        training: dict[str, Any] = self.description.get("training", {})
        return training

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of one row of the network's inputs, by name."""
        raise NotImplementedError

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """Return the axes of inputs, besides the first, that may have any size, with a name for each."""
        return {}

    def digest(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the network: its configuration and weights."""
        return network_digest(self.config, self.weights.read_bytes())

    def on_onnx(self, open_session: OpenSession = onnx_session) -> RunNetwork:
        """Return the network on ONNX Runtime, without torch and its start-up time.

        Args:
            open_session: opens the exported network, at full precision or less.

        Raises:
            CheckpointError: it is not exported, and this machine cannot export it.
        """

        def export_to(path: Path) -> None:
            at_place(EXPORT)(self, path)

        session = open_session(self.weights, self.digest(), export_to)
        read = [each.name for each in session.get_inputs()]  # the exporter leaves out inputs without effect
        names = tuple(self.inputs())

        def run(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            given = dict(zip(names, arrays, strict=True))
            return tuple(session.run(self.outputs, {name: given[name] for name in read}))

        return run

    def on_torch(self, **compute: Any) -> OnTorch:
        """Return the network on torch, an `OnTorch` with these arguments."""
        from adahi_ros.policies.networks.computing import OnTorch

        return OnTorch(at_place(self.network)(self), **compute)


def network_digest(config: object, weights: bytes) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a configuration and weights."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode() + weights).hexdigest()[:16]


def read_network(
    path: Path, kind: str, sizes: type[S], trained: bool = True
) -> tuple[Path, S, dict[str, Any]]:
    """Read a description from `DIRECTORY/NAME.json` (or the same path without suffix).

    Args:
        path: of the checkpoint.
        kind: required kind.
        sizes: the type of its configuration.
        trained: the description must have the number of weights.

    Returns:
        The first three fields of `NetworkCheckpoint`.

    Raises:
        CheckpointError: it is missing, damaged, of another kind, or does not fit the weights.
    """
    path, meta = description_of_kind(path, kind)
    try:
        made: S = checked(sizes, meta.get("config"))
        checked(SizeOrNone, meta.get("parameters", None if trained else 0), "parameters")
    except ValueError as error:
        raise CheckpointError(f"{path}: not a whole description of a {kind} ({error})") from None
    weights = path.with_suffix(".safetensors")
    made.check_weights(weights)
    return weights, made, meta
