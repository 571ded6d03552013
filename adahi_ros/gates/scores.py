# SPDX-License-Identifier: Apache-2.0
"""Gates that need no plan and no weights."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import probabilities_at
from adahi_ros.gates.interface import Gate, GateContext


class DeviationGate(Gate):
    """The action deviation of the draft (ADAHI, section III-A of the paper). Reads the drawn codes."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.deviation


class UncertaintyGate(Gate):
    """1 - p of the drafted codes, all codebooks together (U-HLM, Oh et al., 2025). Reads these codes."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where no codes were drawn."""
        drawn = None if context.proposal is None else context.proposal.distribution
        if drawn is None:
            return np.full(len(context.uniforms), np.inf)
        return 1.0 - probabilities_at(drawn.probabilities, drawn.codes).prod(axis=-1)


class RandomGate(Gate):
    """Random: at threshold 1 - r, a share r of the steps sends a request."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.uniforms


class AlwaysGate(Gate):
    """Above every threshold: each step sends a request."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), np.inf)


class NeverGate(Gate):
    """Below every threshold: no step sends a request."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), -np.inf)
