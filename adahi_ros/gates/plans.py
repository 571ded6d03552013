# SPDX-License-Identifier: Apache-2.0
"""Gates of robots that execute plans: each is one sign that a plan is outdated."""

from __future__ import annotations

import numpy as np

from adahi_ros.gates.interface import Gate, GateContext


def distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the root mean square over the last axis of the difference of two arrays."""
    with np.errstate(over="ignore"):  # the result is then infinite
        apart: np.ndarray = np.sqrt(np.square(one - other).mean(axis=-1))
    return apart


class AgeGate(Gate):
    """Age of the plan, in control steps since its request: above k - 1, every k-th step sends a request."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.age


class ExpectedErrorGate(Gate):
    """The error, in action scales, that the corrector expects of its own action."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where unknown."""
        expected = None if context.proposal is None else context.proposal.expected_error
        return np.full(len(context.uniforms), np.inf) if expected is None else expected
