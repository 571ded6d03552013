# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a policy, for compatibility checks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OBSERVATION = "observation"
"""The feature of a policy that reads the whole observation, in the order of the contract."""
GOAL = "goal"
"""The condition of a policy with a goal."""
ACTION = "action"
"""The name of the actions, beside those of features."""
IMAGE_FEATURES = "image_features"
"""The feature of a target that reads images, which the robot only sends."""
RATE_WITHIN = 0.01
"""Largest relative difference between the rates of actions and control steps."""


@dataclass(frozen=True)
class Feature:
    """A part of an observation.

    Attributes:
        name: such as observation.state.
        size: number of entries.
        entries: names of the entries, such as position.panda_joint1; empty if unknown.
    """

    name: str
    size: int
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageInput:
    """A camera image that a target reads itself, instead of features.

    Attributes:
        name: such as observation.images.front.
        rows, columns: that it reads; a smaller image is enlarged by the reader, never before it is sent.
        padded: the image keeps its aspect, with black borders; else it is stretched.
    """

    name: str
    rows: int
    columns: int
    padded: bool = False


@dataclass(frozen=True)
class Ranges:
    """The values that a policy learnt from, of each entry, in its units.

    Attributes:
        minimum, maximum, q01, q99: extremes, and quantiles of 1 % and 99 %; each empty if unknown, with NaN
            for an unknown entry.
    """

    minimum: tuple[float, ...] = ()
    maximum: tuple[float, ...] = ()
    q01: tuple[float, ...] = ()
    q99: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Quantity:
    """A robot's numbers of one name.

    Attributes:
        names: D paths in the contract's `select`.
        units: D numbers; entries with the same number have one unit.
        low, high: (D,) that the robot's limits allow, in the policy's units; NaN without limits.
    """

    names: tuple[str, ...]
    units: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class CodeSpace:
    """Codes of an action tokenizer.

    Attributes:
        fingerprint: 16 hexadecimal digits; equal exactly when the same codes mean the same actions.
        codebooks: N, codes per chunk of actions.
        codebook_size: K, entries per codebook.
        sequential: each code depends on those before it; else codes are independent. Unknown,
            thus false, for a target behind the network.
    """

    fingerprint: str
    codebooks: int
    codebook_size: int
    sequential: bool = False


@dataclass(frozen=True)
class Observations:
    """Observations of B robots, as one policy reads them.

    Attributes:
        features: by name, (B, H, size) float32, the newest H, oldest first.
        conditions: by name, (B, size) float32, current values.
        instructions: B sentences; empty without any.
        images: by name, (B, H, rows, columns, 3) uint8, of the newest H observations.
        episodes: B identities, each of one robot and episode, for a policy with a memory; empty if unknown.
    """

    features: Mapping[str, np.ndarray]
    conditions: Mapping[str, np.ndarray]
    instructions: tuple[str, ...] = ()
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    episodes: tuple[Hashable, ...] = ()

    def rows(self, which: np.ndarray) -> Observations:
        """Return the observations of some robots, by mask or index."""

        def chosen(each: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(each[row] for row in np.arange(len(each))[which]) if each else ()

        return Observations(
            {name: values[which] for name, values in self.features.items()},
            {name: values[which] for name, values in self.conditions.items()},
            chosen(self.instructions),
            {name: values[which] for name, values in self.images.items()},
            chosen(self.episodes),
        )


@dataclass(frozen=True)
class Offer:
    """A robot's observations, conditions and actions, as offered to a policy.

    Attributes:
        sizes: by name, of its observations.
        entries: by name, the names of the numbers of some of these.
        images: names of its cameras.
        instruction: it can send an instruction.
        action_names: names of the entries of an action; empty if unknown.
        rate_hz: of its control steps; 0 if unknown.
        quantities: by name, its numbers and those of its `action`.
    """

    sizes: Mapping[str, int]
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    instruction: bool = False
    action_names: tuple[str, ...] = ()
    rate_hz: float = 0.0
    quantities: Mapping[str, Quantity] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a policy.

    Attributes:
        history: H, observations of each feature that it reads.
        horizon: T, actions of a proposal.
        action_dim: A.
        features: that it reads, the newest H of each.
        conditions: that it reads, current values.
        codes: of its tokenizer; None for a policy without one.
        instruction: it reads an instruction.
        parameters: number of trainable weights.
        images: that it reads, the newest H of each.
        action_names: names of the entries of an action; empty if unknown.
        rate_hz: control steps per second that its actions are meant for; 0 if unknown.
    """

    history: int
    horizon: int
    action_dim: int
    features: tuple[Feature, ...]
    conditions: tuple[Feature, ...] = ()
    codes: CodeSpace | None = None
    instruction: bool = False
    parameters: int = 0
    images: tuple[ImageInput, ...] = ()
    action_names: tuple[str, ...] = ()
    rate_hz: float = 0.0

    def __str__(self) -> str:
        tokenizer = "no tokenizer" if self.codes is None else f"tokenizer {self.codes.fingerprint}"
        return f"{self.parameters} parameters, {tokenizer}"

    @property
    def observation_dim(self) -> int:
        """O, the numbers of one observation."""
        return sum(feature.size for feature in self.features)

    @property
    def image_dim(self) -> int:
        """The number of image features, of images that the robot only sends."""
        return sum(feature.size for feature in self.features if feature.name == IMAGE_FEATURES)

    @property
    def goal_dim(self) -> int:
        """G, the numbers of the conditions."""
        return sum(feature.size for feature in self.conditions)

    def window(self, observations: Observations) -> np.ndarray:
        """Return the features (B, H, O), joined into a flat vector."""
        return _joined([observations.features[feature.name] for feature in self.features])

    def condition(self, observations: Observations) -> np.ndarray:
        """Return the conditions (B, G), joined into a flat vector."""
        if not self.conditions:
            batch = len(next(iter(observations.features.values())))
            return np.zeros((batch, 0), dtype=np.float32)
        return _joined([observations.conditions[feature.name] for feature in self.conditions])

    def unmet(self, offered: Offer) -> str | None:
        """Return the first input that the robot does not offer, with the reason; None where it offers all."""
        for feature in (*self.features, *self.conditions):
            found = offered.sizes.get(feature.name)
            if found is None:
                there_are = ", ".join(offered.sizes) or "nothing"
                return f"{feature.name}: is read, but the robot offers {there_are}"
            if found != feature.size:
                return f"{feature.name}: {feature.size} numbers are read, the robot offers {found}"
            fault = _named_otherwise(feature.name, feature.entries, offered.entries.get(feature.name, ()))
            if fault is not None:
                return fault
        for image in self.images:
            if image.name not in offered.images:
                there_are = ", ".join(offered.images) or "no camera"
                return f"{image.name}: is read, but the robot offers {there_are}"
        if self.instruction and not offered.instruction:
            return "instruction: is read, but the robot has none"
        theirs, ours = self.rate_hz, offered.rate_hz
        if theirs and ours and abs(theirs - ours) > RATE_WITHIN * ours:
            return f"rate_hz: the target's actions are for {theirs:g} Hz, the robot's steps at {ours:g} Hz"
        return _named_otherwise("action", self.action_names, offered.action_names)

    def nothing(self, batch: int = 1) -> Observations:
        """Return observations of zeros and black images, for measurements and warm-up."""
        nothing = self.observations(
            np.zeros((batch, self.history, self.observation_dim), dtype=np.float32),
            np.zeros((batch, self.goal_dim), dtype=np.float32),
        )
        black = {
            each.name: np.zeros((batch, self.history, each.rows, each.columns, 3), dtype=np.uint8)
            for each in self.images
        }
        instructions = ("",) * batch if self.instruction else ()
        return Observations(nothing.features, nothing.conditions, instructions, black)

    def observations(self, window: np.ndarray, condition: np.ndarray) -> Observations:
        """Return the observations of flat vectors: the inverse of both."""
        return Observations(_split(self.features, window), _split(self.conditions, condition))


def observed_features(observation_dim: int, image_dim: int) -> tuple[Feature, ...]:
    """Return the features of a policy that reads flat observations.

    Args:
        observation_dim: O, numbers of one.
        image_dim: the number of these, at the end, of images that the robot only sends.
    """
    numbers = Feature(OBSERVATION, observation_dim - image_dim)
    return (numbers, Feature(IMAGE_FEATURES, image_dim)) if image_dim else (numbers,)


def _named_otherwise(what: str, read: Sequence[str], offered: Sequence[str]) -> str | None:
    """Return the first entry with different names; None where all are equal, or one side has none."""
    if not read or not offered:
        return None
    if len(read) != len(offered):
        return f"{what}: {len(read)} entries, the robot's has {len(offered)}"
    for index, (theirs, ours) in enumerate(zip(read, offered, strict=True)):
        if theirs != ours:
            return f"{what}[{index}]: is {theirs!r} to the target, {ours!r} to the robot; must be the same"
    return None


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def _split(features: Sequence[Feature], values: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([feature.size for feature in features])
    return {
        feature.name: values[..., end - feature.size : end]
        for feature, end in zip(features, ends, strict=True)
    }
