# SPDX-License-Identifier: Apache-2.0
"""The interface of what robots act by: the target's plan, or what else a proposer keeps of replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np


class Held(Protocol):
    """Guidance that B robots act by; a `Plan` is one, an intent another.

    Attributes:
        alone: the actions of replies have no effect, so that they need not be sent.
        steps: control steps that a reply is useful; None for as many as it has actions.
    """

    @property
    def alone(self) -> bool:
        """See the class."""

    @property
    def steps(self) -> int | None:
        """See the class."""

    @property
    def figures(self) -> Mapping[str, object]:
        """Figures for a robot's diagnostics, such as its age."""

    def at(self, step: int) -> np.ndarray:
        """Return the actions (B, A) of the present step; NaN for robots without one."""

    def age(self, step: int) -> np.ndarray:
        """Return the age (B,), in steps, of the reply's request; infinite without one."""

    def left(self, step: int) -> np.ndarray:
        """Return for how many steps (B,), this one included, robots can act."""

    def forget(self) -> None:
        """Drop it, because the task has changed or a gap ended."""
