# SPDX-License-Identifier: Apache-2.0
"""A control step on one screen: observe, settle, propose, decide, limit, command, record; none blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from adahi_ros.contract.assembler import Observation
    from adahi_ros.robot.outcomes import ActiveStep, Outcome
    from adahi_ros.safety.commands import Outgoing


class ControlStep(Protocol):
    """The seven calls of a control step, in their order; `ControlLoop` has what is behind them."""

    def step(self, observation: Observation) -> None:
        """Begin the step of an observation; raises as `settle` and `propose`."""
        received_s = self.observe(observation)
        if received_s is None or self.settle(observation, received_s):
            return
        active = self.propose(observation, received_s)
        outcome = self.decide(active)
        if outcome is not None:  # else `finish` is called when the reply arrives
            self.finish(active, outcome)

    def finish(self, active: ActiveStep, outcome: Outcome) -> None:
        """End a step with the outcome of its request."""
        outgoing = self.limit(active, outcome)
        executed = self.command(active, outgoing)
        self.record(active, executed)

    def observe(self, observation: Observation) -> float | None:
        """Return when an observation came, s; None where it begins no step."""

    def settle(self, observation: Observation, received_s: float) -> bool:
        """End the step before, if it still waits for a reply: its command goes out now.

        Return whether the observation is that of the step before, again. Then it begins no step, and the
        command that was sent for it goes out again; if there was none, it may send a new request.
        """

    def propose(self, observation: Observation, received_s: float) -> ActiveStep:
        """Return the step with an action of the robot's own, and whether its gate sends a request."""

    def decide(self, active: ActiveStep) -> Outcome | None:
        """Send a request if one is due; return the outcome to go on with, None to wait for the reply."""

    def limit(self, active: ActiveStep, outcome: Outcome) -> Outgoing:
        """Return what may be commanded of the step's action; the outcome becomes the step's."""

    def command(self, active: ActiveStep, outgoing: Outgoing) -> np.ndarray | None:
        """Send commands; return the action (A,) that they execute, None for none."""

    def record(self, active: ActiveStep, executed: np.ndarray | None) -> None:
        """Publish the record of a step, and remember what was commanded."""
