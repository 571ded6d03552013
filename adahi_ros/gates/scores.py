# SPDX-License-Identifier: Apache-2.0
"""Gates that need no plan and no weights."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import probabilities_at
from adahi_ros.gates.interface import Gate, GateContext


class DeviationGate(Gate):
    """ADAHI: the action deviation itself. Paper, section III-B. Looks at the drawn codes: at their action."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.deviation


class UncertaintyGate(Gate):
    """1 - p of the sampled codes, all codebooks together; after U-HLM (Oh et al., 2025). Looks at them."""

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where no codes were drawn."""
        drawn = None if context.proposal is None else context.proposal.distribution
        if drawn is None:
            return np.full(len(context.uniforms), np.inf)
        return 1.0 - probabilities_at(drawn.probabilities, drawn.codes).prod(axis=-1)


class RandomGate(Gate):
    """Blind to the proposal. At threshold 1 - r, a share r of the steps is transmitted."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.uniforms


class AlwaysGate(Gate):
    """Above any threshold: hybrid inference."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), np.inf)


class NeverGate(Gate):
    """Below any threshold: what is proposed on the robot alone."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return np.full(len(context.uniforms), -np.inf)
