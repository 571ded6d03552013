# SPDX-License-Identifier: Apache-2.0
"""The interface of what a proposer keeps of replies, beside the target's plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np


class HeldReplies(Protocol):
    """What a proposer acts by instead of the target's plan, with the methods that `Plan` has for that.

    Attributes:
        alone: the actions of replies have no effect, so that they need not be sent.
        steps: control steps that a reply is useful.
    """

    alone: bool
    steps: int

    @property
    def figures(self) -> Mapping[str, object]:
        """Its age and what is left of it, for the diagnostics of a robot."""

    def at(self, step: int) -> np.ndarray:
        """Return the actions (B, A) of the present step; NaN for robots without one."""

    def age(self, step: int) -> np.ndarray:
        """Return the age (B,), in steps, of the reply's request; infinite without one."""

    def left(self, step: int) -> np.ndarray:
        """Return for how many steps (B,), this one included, robots can act."""

    def forget(self) -> None:
        """Drop it, because the task has changed or a gap ended."""
