# SPDX-License-Identifier: Apache-2.0
"""Configuration of drafts and gates: the action deviation, a gate with its threshold, and both together.

**Action deviation**: how far a draft lies from the average of the actions before it.

The paper (section III-A1) gives the idea; its equations (4) and (5) are missing from our text:

    m_t = a a_t + (1 - a) m_(t-1)              smoothing factor a
    d_t = | a_t - m_(t-1) |_s                  norm in units of s

Scaled by each dimension's standard deviation (`std`) or divided by the length of the average (`average`),
the deviation ranks rejections about alike. The average covers executed actions. For a robot that is held or
slowed down by its limits these are the commanded actions, not the policy's. While it brakes, they are the
braking commands, such as the position to stay at; while it rests without commands, nothing is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adahi_ros.gates.interface import Gate
from adahi_ros.gates.registry import GATES

SHORTEST_AVERAGE = 0.05  # in units of the action scale: avoids division by zero at standstill


def _by_std(step: np.ndarray, average: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("bd,bd->b", step, step) / step.shape[1])


def _by_average(step: np.ndarray, average: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.einsum("bd,bd->b", average, average))
    return np.sqrt(np.einsum("bd,bd->b", step, step)) / np.maximum(length, SHORTEST_AVERAGE)


NORMALIZATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "std": _by_std,
    "average": _by_average,
}


class DeviationTracker:
    """The moving average of B robots' executed actions, and drafts' deviation from it.

    Args:
        action_scale: (A,), standard deviation of the demonstrated actions.
        smoothing: weight of the newest action in the average, in (0, 1].
        normalization: a key of `NORMALIZATIONS`.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, action_scale: np.ndarray, smoothing: float, normalization: str) -> None:
        if not 0.0 < smoothing <= 1.0:
            raise ValueError(f"smoothing: {smoothing}, must be above 0 and at most 1")
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"normalization: {normalization!r}, must be one of {', '.join(sorted(NORMALIZATIONS))}"
            )
        self._scale = action_scale
        self._smoothing = smoothing
        self._norm = NORMALIZATIONS[normalization]
        self._average: np.ndarray | None = None

    def reset(self) -> None:
        """Forget the past."""
        self._average = None

    def deviation(self, actions: np.ndarray) -> np.ndarray:
        """Return the deviation (B,) of actions (B, A); infinite before the first executed action."""
        if self._average is None:
            return np.full(len(actions), np.inf)
        scaled = actions / self._scale
        return self._norm(scaled - self._average, self._average)

    def update(self, actions: np.ndarray) -> None:
        """Add executed actions (B, A) to the average."""
        scaled = actions / self._scale
        if self._average is None:
            self._average = scaled
        else:
            self._average = self._average + self._smoothing * (scaled - self._average)


@dataclass(frozen=True)
class ThresholdedGate:
    """A gate with its threshold.

    Attributes:
        name: a key of `GATES`, or any name where the gate is given.
        threshold: a request is sent when the score is above it.
        gate: that scores; None makes the one of this name.
        arguments: of its construction, by name.
        learns: the gate learns from replies.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    name: str
    threshold: float = 0.0
    gate: Gate = field(default=None, compare=False)  # type: ignore[assignment]
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    learns: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", self.gate or GATES.made("gate", self.name, self.arguments))
        object.__setattr__(self, "learns", self.gate.learns)
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold: {self.threshold}, must be finite")


@dataclass(frozen=True)
class ControllerConfig:
    """Configuration of drafts and their gate.

    Attributes:
        trigger: decides which drafts to transmit.
        smoothing: weight of the newest action in the moving average, in (0, 1].
        normalization: of the deviation, a key of `NORMALIZATIONS`.
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
