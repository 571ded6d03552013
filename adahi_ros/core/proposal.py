# SPDX-License-Identifier: Apache-2.0
"""What a policy proposes: actions for the next steps, and the distribution that they were drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CodeDistribution:
    """The distributions that the codes of an action were drawn from, one for each codebook.

    Attributes:
        probabilities: (B, N, K) float32.
        codes: (B, N) int64, drawn.
        actions_of: from codes (B, N) to the actions (B, T, A) that the policy would take by them.
        counts: (B, N, K) uint16, the same distributions in units of 1/UNITS, where they were rounded
            to be sent; else None.
    """

    probabilities: np.ndarray
    codes: np.ndarray
    actions_of: Callable[[np.ndarray], np.ndarray]
    counts: np.ndarray | None = None


@dataclass(frozen=True)
class Proposal:
    """Actions of B robots for T control steps, from the present one on.

    Attributes:
        actions: (B, T, A) float32 in action units.
        distribution: that they were drawn from; None where there is none to be had.
        expected_error: (B,) in action scales, how far the first actions are expected to be from those of a
            fresh plan; None where nobody says.
    """

    actions: np.ndarray
    distribution: CodeDistribution | None = None
    expected_error: np.ndarray | None = None
