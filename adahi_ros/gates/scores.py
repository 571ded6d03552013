# SPDX-License-Identifier: Apache-2.0
"""Gates: score what a robot would do by what it alone knows; above the threshold, ask the target.

A new gate is a class with `blind` and `score` and a line in `GATES`, or an entry point of another package.
One that carries weights takes their file as an argument, and loads them when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from inspect import signature
from typing import Any, Protocol

import numpy as np

from adahi_ros.core.distribution import probabilities_at
from adahi_ros.core.registry import Registry
from adahi_ros.gates.adaptive import AdaptiveAgeGate
from adahi_ros.gates.gate_context import GateContext
from adahi_ros.gates.learned import LearnedGate
from adahi_ros.gates.online import OnlineGate
from adahi_ros.gates.plans import (
    AgeGate,
    ExpectedErrorGate,
    OverlapGate,
    PlanDeviationGate,
    ReversalGate,
    SurpriseGate,
)
from adahi_ros.gates.sampled import SampledUncertaintyGate


class Gate(Protocol):
    """Scores what B robots would do. One that learns from replies has `learn`, too, as `OnlineGate`.

    Attributes:
        blind: it decides without a look at what was drawn. Behind such a gate, what the verifier returns is
            distributed as the target's proposals; others send some draws and keep others, and there it is
            not (benchmarks/exactness.py).
    """

    blind: bool

    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""


class DeviationGate:
    """ADAHI: the action deviation itself. Paper, section III-B. Looks at the drawn codes: at their action."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.deviation


class UncertaintyGate:
    """1 - p of the sampled codes, all codebooks together; after U-HLM (Oh et al., 2025). Looks at them."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where no codes were drawn."""
        drawn = None if context.proposal is None else context.proposal.distribution
        if drawn is None:
            return np.full(len(context.uniforms), np.inf)
        return 1.0 - probabilities_at(drawn.probabilities, drawn.codes).prod(axis=-1)


class RandomGate:
    """Blind to the proposal. At threshold 1 - r, a share r of the steps is transmitted."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.uniforms


class AlwaysGate:
    """Above any threshold: hybrid inference."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), np.inf)


class NeverGate:
    """Below any threshold: what is proposed on the robot alone."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), -np.inf)


ORACLE = "oracle"  # knows what the target would say; an evaluation can have it, a robot cannot

GATES: Registry[Callable[..., Gate]] = Registry(
    "adahi_ros.gates",
    {
        "deviation": DeviationGate,
        "uncertainty": UncertaintyGate,
        "sampled_uncertainty": SampledUncertaintyGate,
        "random": RandomGate,
        "age": AgeGate,
        "expected_error": ExpectedErrorGate,
        "plan_deviation": PlanDeviationGate,
        "surprise": SurpriseGate,
        "reversal": ReversalGate,
        "overlap": OverlapGate,
        "learned": LearnedGate,
        "adaptive_age": AdaptiveAgeGate,
        "online": OnlineGate,
        "always": AlwaysGate,
        "never": NeverGate,
    },
)
WITHOUT_THRESHOLD = ("always", "never")  # decide the same at any threshold


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
    gate: Gate | None = field(default=None, compare=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.gate is None:
            if self.name not in GATES:
                raise ValueError(f"gate: {self.name!r}, must be one of {', '.join(sorted(GATES))}")
            object.__setattr__(self, "gate", self._made())
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold: {self.threshold}, must be finite")

    def _made(self) -> Gate:
        make = GATES[self.name]
        try:
            signature(make).bind(**self.arguments)
            return make(**self.arguments)
        except TypeError as error:  # also of a text where a number was wanted
            allowed = ", ".join(map(str, signature(make).parameters.values())) or "none"
            raise ValueError(f"gate {self.name}: {error}; its arguments are: {allowed}") from error

    @property
    def blind(self) -> bool:
        """See `Gate`."""
        assert self.gate is not None
        return self.gate.blind

    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""
        assert self.gate is not None
        return self.gate.score(context)

    @property
    def learns(self) -> bool:
        """Whether the gate learns from replies."""
        return hasattr(self.gate, "learn")

    @property
    def state(self) -> dict[str, float]:
        """What the gate of the first robot has learned, by name; empty where it learns nothing."""
        states = getattr(self.gate, "states", ())
        return {name: float(value) for name, value in asdict(states[0]).items()} if states else {}

    def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:
        """Tell a gate that learns from replies what fresh plans say of the step that asked for them.

        Args:
            requested_at: that step, of this episode.
            fresh: (M, A) in action scales, their first actions.
            rows: (M,), the robots that they are for, by index.
        """
        if self.learns:
            self.gate.learn(requested_at, fresh, rows)  # type: ignore[union-attr]
