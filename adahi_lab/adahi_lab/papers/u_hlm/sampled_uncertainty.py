# SPDX-License-Identifier: Apache-2.0
"""A draft's uncertainty as in U-HLM: how often it draws other codes at other temperatures.

After U-HLM (Oh et al., "Uncertainty-Aware Hybrid Inference with On-Device Small and Remote Large Language
Models", arXiv 2412.12687): the robot samples its own distribution again at perturbed temperatures, and
skips the request where few of the samples differ from its draft. The number of samples, their temperatures
and the count per code are our choice: only the paper's abstract was read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import sample
from adahi_ros.core.registry import argument
from adahi_ros.gates.interface import Gate, GateContext

ODD = np.uint64(0x9E3779B97F4A7C15)  # constant of SplitMix64 (Steele et al., OOPSLA 2014), like those below
MIXES = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def spread(uniforms: np.ndarray, count: int) -> np.ndarray:
    """Return uniform draws (B, count) from one per robot (B,), by hashing it with a counter."""
    state = (uniforms * 2.0**53).astype(np.uint64)[:, None] + ODD * np.arange(1, count + 1, dtype=np.uint64)
    for shift, factor in MIXES:
        state = (state ^ (state >> shift)) * factor
    state ^= state >> np.uint64(31)
    draws: np.ndarray = (state >> np.uint64(11)) * 2.0**-53
    return draws


@dataclass(eq=False)
class SampledUncertaintyGate(Gate):
    """Share of codes, drawn at other temperatures, that differ from the drafted ones. Reads these codes.

    It counts codes, since a whole action is rarely drawn twice: with two codebooks most would differ.

    Raises:
        ValueError: names the argument, the value and what was allowed.
    """

    blind = False

    samples: int = argument(20, "Draws of all codebooks, one at each temperature", 1, 1000)
    hottest: float = argument(2.0, "The temperatures are evenly spaced up to this", 1e-3, 1e3)

    def __post_init__(self) -> None:
        if not (float(self.samples).is_integer() and 1 <= self.samples <= 1000):
            raise ValueError(f"samples: {self.samples}, must be a whole number from 1 to 1000")
        if not 0.0 < self.hottest < np.inf:
            raise ValueError(f"hottest: {self.hottest}, must be above 0 and finite")
        self._temperatures = self.hottest * np.arange(1, int(self.samples) + 1) / self.samples

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where no codes were drawn."""
        robots = len(context.uniforms)
        drawn = None if context.proposal is None else context.proposal.distribution
        if drawn is None:
            return np.full(robots, np.inf)
        with np.errstate(divide="ignore"):  # probability 0 stays 0 at any temperature
            logs = np.log(drawn.probabilities / drawn.probabilities.max(axis=-1, keepdims=True))
        weights = np.exp(logs[:, None] / self._temperatures[:, None, None])  # (B, samples, N, K)
        uniforms = spread(context.uniforms, int(np.prod(weights.shape[1:3]))).reshape(weights.shape[:3])
        differs = sample(weights, uniforms) != drawn.codes[:, None]
        share: np.ndarray = differs.mean(axis=(1, 2))
        return share
