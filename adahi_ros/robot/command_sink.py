# SPDX-License-Identifier: Apache-2.0
"""The interface of what commands a robot's actions."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from adahi_ros.contract.assembler import Observation


class Commander(Protocol):
    """Takes the robot's actions, and commands them as far as that is safe."""

    def observed(self) -> None:
        """There is a new observation that the policy can act on."""

    def send(self, action: np.ndarray, observation: Observation) -> np.ndarray | None:
        """Command an action (A,); return the commanded action, or None where there is none."""

    def repeat(self, observation: Observation) -> None:
        """Command the same again, for an observation that was repeated."""

    def withhold(self, observation: Observation) -> None:
        """Hold the robot: there is an observation, and no action that may be commanded."""

    def resumes(self) -> bool:
        """Whether a hold ends, so that older plans are outdated; called once for each."""

    def commanded(self) -> np.ndarray | None:
        """Return the last commanded action (A,); None where there is none since the last call."""
