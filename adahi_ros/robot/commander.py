# SPDX-License-Identifier: Apache-2.0
"""The interface of what commands a robot's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from adahi_ros.contract.assembler import Observation

if TYPE_CHECKING:
    from adahi_ros.safety.commands import Outgoing


class Commander(Protocol):
    """Takes the robot's actions, and commands them as far as that is safe."""

    def observed(self) -> None:
        """There is a new observation that the policy can act on."""

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        """Return what may be commanded of an action (A,); without an action, what holds the robot."""

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        """Send what was made of an observation; return the commanded action (A,), or None."""

    def repeat(self, observation: Observation) -> None:
        """Command the same again, for an observation that was repeated."""

    def resumes(self) -> bool:
        """Whether a hold ends, so that older plans are outdated; called once for each."""

    def commanded(self) -> np.ndarray | None:
        """Return the last commanded action (A,); None where there is none since the last call."""
