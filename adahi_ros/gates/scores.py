"""Gates: score a draft by what the robot alone knows; above the threshold, ask the target.

A new gate is a function from `GateContext` to scores and an entry in `GATES`; in `BLIND`, too, where it does
not look at what was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_ros.gates.context import GateContext
from adahi_ros.policy.distribution import probabilities_at

Score = Callable[[GateContext], np.ndarray]


def deviation_score(context: GateContext) -> np.ndarray:
    """ADAHI: the action deviation itself. Paper, section III-B. Looks at the drawn codes: at their action."""
    return context.deviation


def uncertainty_score(context: GateContext) -> np.ndarray:
    """1 - p of the sampled codes, all codebooks together; after U-HLM (Oh et al., 2025). Looks at them."""
    draft = context.draft
    return 1.0 - probabilities_at(draft.probabilities, draft.codes).prod(axis=-1)


def random_score(context: GateContext) -> np.ndarray:
    """Lots, blind to the draft. At threshold 1 - r, a share r of the steps is transmitted."""
    return context.uniforms


def always_score(context: GateContext) -> np.ndarray:
    """Every draft is above any threshold: hybrid inference."""
    return np.full(len(context.uniforms), np.inf)


def never_score(context: GateContext) -> np.ndarray:
    """No draft is above any threshold: the draft policy alone."""
    return np.full(len(context.uniforms), -np.inf)


ORACLE = "oracle"  # knows what the target would say; an evaluation can have it, a robot cannot

GATES: dict[str, Score] = {
    "deviation": deviation_score,
    "uncertainty": uncertainty_score,
    "random": random_score,
    "always": always_score,
    "never": never_score,
}

# Gates that decide without a look at what was drawn. Behind these, what the verifier returns is distributed
# as the target's; others send some draws and keep others, and there it is not (evaluation/exactness.py).
BLIND = frozenset({"random", "always", "never"})


@dataclass(frozen=True)
class Gate:
    """A score with its threshold.

    Attributes:
        name: a key of `GATES`, or anything where the score is given.
        threshold: a draft is transmitted when its score is above it.
        scorer: the score; None takes that of the name.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    name: str
    threshold: float = 0.0
    scorer: Score | None = None

    def __post_init__(self) -> None:
        if self.scorer is None and self.name not in GATES:
            raise ValueError(f"gate: {self.name!r}, must be one of {', '.join(sorted(GATES))}")
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold: {self.threshold}, must be finite")

    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""
        scorer = GATES[self.name] if self.scorer is None else self.scorer
        return scorer(context)
