# SPDX-License-Identifier: Apache-2.0
"""How drafts are made and judged: what a calibration says, and a controller is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.scores import ThresholdedGate


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
