# SPDX-License-Identifier: Apache-2.0
"""How drafts are made and judged: what a calibration writes, and a controller reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.interface import Gate
from adahi_ros.gates.registry import GATES


@dataclass(frozen=True)
class ThresholdedGate:
    """A gate with its threshold.

    Attributes:
        name: a key of `GATES`, or anything where the gate is given.
        threshold: the target is asked when the score is above it.
        gate: that scores; None makes that of the name.
        arguments: that it is made with, by name.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    name: str
    threshold: float = 0.0
    gate: Gate = field(default=None, compare=False)  # type: ignore[assignment]
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", self.gate or self._made())
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold: {self.threshold}, must be finite")

    def _made(self) -> Gate:
        if self.name not in GATES:
            raise ValueError(f"gate: {self.name!r}, must be one of {', '.join(sorted(GATES))}")
        make = GATES[self.name]
        try:
            signature(make).bind(**self.arguments)
            return make(**self.arguments)
        except TypeError as error:  # also of a text where a number was wanted
            allowed = ", ".join(map(str, signature(make).parameters.values())) or "none"
            raise ValueError(f"gate {self.name}: {error}; its arguments are: {allowed}") from error


@dataclass(frozen=True)
class ControllerConfig:
    """How drafts are made and judged.

    Attributes:
        trigger: decides which to transmit.
        smoothing: weight of the newest action in the moving average, in (0, 1].
        normalization: of the deviation, a key of `deviation.NORMALIZATIONS`.
        draft_temperature: of the code distributions that the draft samples from, above zero.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    trigger: ThresholdedGate
    smoothing: float = 0.5
    normalization: str = "std"
    draft_temperature: float = 1.0

    def __post_init__(self) -> None:
        DeviationTracker(np.ones(1), self.smoothing, self.normalization)
        if not 0.0 < self.draft_temperature < np.inf:
            raise ValueError(f"draft_temperature: {self.draft_temperature}, must be above 0 and finite")
