# SPDX-License-Identifier: Apache-2.0
"""A learned gate: it predicts the harm of sending no request from all other signs.

Harm is the distance, in action scales, of the executed action from that of a fresh plan. A small network
predicts it from the scores of other gates. A rising curve, fitted on other episodes, corrects the
prediction; so a threshold is an expected distance. No torch: training is in `lab/evaluation/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.registry import argument
from adahi_ros.core.tensor_files import Shapes, read_arrays, save_arrays
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import (
    AgeGate,
    ExpectedErrorGate,
    OverlapGate,
    PlanDeviationGate,
    ReversalGate,
    SurpriseGate,
)

FURTHEST = 5.0  # standard deviations from the mean at which signs are clipped
WIDEST, LONGEST = 4096, 4096  # of a file: units of a layer, points of the curve


class Sign(Protocol):
    """A sign: it scores as a gate does."""

    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""


class _Deviation:
    def score(self, context: GateContext) -> np.ndarray:
        return context.deviation


class _Left:
    def score(self, context: GateContext) -> np.ndarray:
        return (
            np.zeros(len(context.uniforms)) if context.course is None else context.course.left.astype(float)
        )


class _Misses:
    def score(self, context: GateContext) -> np.ndarray:
        return np.full(len(context.uniforms), np.nan if context.link is None else context.link.misses)


SIGNS: dict[str, Callable[[], Sign]] = {
    "age": AgeGate,
    "left": _Left,
    "deviation": _Deviation,
    "expected_error": ExpectedErrorGate,
    "plan_deviation": PlanDeviationGate,
    "surprise": SurpriseGate,
    "reversal": ReversalGate,
    "overlap": OverlapGate,
    "link_misses": _Misses,
}
"""The network's inputs, in this order."""


class Signs:
    """The signs of all gates of plans, together."""

    def __init__(self) -> None:
        self._signs = [make() for make in SIGNS.values()]

    def read(self, context: GateContext) -> np.ndarray:
        """Return the signs (B, F) of a step, steps in order; NaN or infinite where one is unknown."""
        return np.stack([sign.score(context) for sign in self._signs], axis=1)


def standardised(signs: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return signs (B, F) in standard deviations; unknown ones are set to the mean."""
    scaled = np.clip((signs - mean) / scale, -FURTHEST, FURTHEST)
    return np.where(np.isfinite(signs), scaled, 0.0)


@dataclass(frozen=True)
class HarmModel:
    """A network of one hidden layer, followed by a rising curve.

    Attributes:
        mean, scale: (F,) of the signs in its training.
        weight_0, bias_0, weight_1, bias_1: (H, F), (H,), (1, H) and (1,) of its layers.
        predicted, measured: (P,), the curve: rising predictions of the network, and the measured harm.
    """

    mean: np.ndarray
    scale: np.ndarray
    weight_0: np.ndarray
    bias_0: np.ndarray
    weight_1: np.ndarray
    bias_1: np.ndarray
    predicted: np.ndarray
    measured: np.ndarray

    def raw(self, signs: np.ndarray) -> np.ndarray:
        """Return the network's output for signs (B, F), (B,)."""
        hidden = np.tanh(standardised(signs, self.mean, self.scale) @ self.weight_0.T + self.bias_0)
        output: np.ndarray = (hidden @ self.weight_1.T + self.bias_1)[:, 0]
        return output

    def harm(self, signs: np.ndarray) -> np.ndarray:
        """Return the expected harm (B,) of sending no request, in action scales."""
        return along(self.raw(signs), self.predicted, self.measured)


def along(values: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return a curve's values; beyond its ends it continues at the same slope, so there are no ties."""
    within = np.interp(values, predicted, measured)
    if len(predicted) < 2:
        return within + (values - predicted[0])
    first = (measured[1] - measured[0]) / (predicted[1] - predicted[0])
    last = (measured[-1] - measured[-2]) / (predicted[-1] - predicted[-2])
    below, above = np.minimum(values - predicted[0], 0.0), np.maximum(values - predicted[-1], 0.0)
    on: np.ndarray = within + first * below + last * above
    return on


def _sizes(shapes: Shapes) -> Shapes:
    hidden = shapes.get("bias_0", (0,))[0]
    points = shapes.get("predicted", (0,))[0]
    if not 0 < hidden <= WIDEST or not 0 < points <= LONGEST:
        raise ValueError(f"bias_0, predicted: of {hidden} and {points}, must be from 1 to {WIDEST}")
    read = len(SIGNS)
    sizes: Shapes = {"mean": (read,), "scale": (read,), "weight_0": (hidden, read), "bias_0": (hidden,)}
    return sizes | {"weight_1": (1, hidden), "bias_1": (1,), "predicted": (points,), "measured": (points,)}


def load_harm_model(path: Path) -> HarmModel:
    """Read a file of `save_harm_model`.

    Raises:
        CheckpointError: it is missing, damaged, or of other signs.
    """
    model = HarmModel(**read_arrays(path, "a gate", _sizes))
    if not ((np.diff(model.predicted) > 0.0).all() and (np.diff(model.measured) >= 0.0).all()):
        raise CheckpointError(f"{path}: not the weights of a gate (predicted, measured: must rise)")
    return model


def save_harm_model(path: Path, model: HarmModel) -> None:
    """Write a model atomically."""
    save_arrays(path, vars(model))


@dataclass(eq=False)
class LearnedGate(Gate):
    """Harm of sending no request, in action scales, predicted by a small network from all other signs.

    Raises:
        ValueError: no file is given.
        CheckpointError: its weights are invalid.
    """

    blind = False

    file: str = argument("", "Weights written by `adahi train gate`", optional=True)

    def __post_init__(self) -> None:
        if not self.file:
            raise ValueError("file: '', must be the weights of `adahi train gate`")
        self._model = load_harm_model(Path(self.file).expanduser())
        self._signs = Signs()

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite without a plan."""
        harm = self._model.harm(self._signs.read(context))
        course = context.course
        return harm if course is None else np.where(course.left == 0, np.inf, harm)
