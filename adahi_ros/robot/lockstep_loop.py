# SPDX-License-Identifier: Apache-2.0
"""Control steps in lockstep with a simulator: a reply counts a fixed number of steps after its request.

So a run over the network equals the evaluation in process, however long a reply takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import ActiveStep, Outcome, PendingRequest

if TYPE_CHECKING:
    from adahi_ros.contract.assembler import Observation
    from adahi_ros.safety.commands import Outgoing


@dataclass(eq=False)
class _Late:
    """A request with a reply that counts later; steps are the observations' and the controller's."""

    step: int
    due: tuple[int, int]
    pending: PendingRequest | None = None
    outcome: Outcome | None = None


class LockstepLoop(ControlLoop):
    """A `ControlLoop` for simulators that wait for every command.

    A robot with a plan executes it meanwhile; the observation at which the reply counts waits for the reply.
    Without a plan, the robot and its world rest until the reply, as with the wait policy `wait`.

    Args:
        late_steps: control steps from a request to its reply; 0 for within the step.
        arguments: of `ControlLoop`.
    """

    def __init__(self, late_steps: int, *arguments: Any) -> None:
        self._late_steps = late_steps
        self._late: _Late | None = None
        self._held_back: Observation | None = None
        super().__init__(*arguments)

    def observe(self, observation: Observation) -> float | None:
        """See `ControlLoop`; an observation waits for the reply that counts at its step."""
        late = self._late
        if late is not None and observation.episode == late.due[0] and observation.step >= late.due[1]:
            if late.outcome is None:
                self._held_back = observation
                return None
            assert late.pending is not None
            self._late = None
            self._received(late.step, late.pending.request.ahead, late.outcome)
        return super().observe(observation)

    def poll(self, slack_s: float = 0.0) -> None:
        """See `ControlLoop`; takes an observation that waited for its reply."""
        super().poll(slack_s)
        if self._late is not None and self._late.outcome is not None and self._held_back is not None:
            waited, self._held_back = self._held_back, None
            self.step(waited)

    def decide(self, active: ActiveStep) -> Outcome | None:
        """See `ControlStep`."""
        if self._waits(active):
            return super().decide(active)
        if active.step.transmit[0] and self._late is None and self._trouble is None:
            left = int(active.step.plan_left[0])
            committed = min(left, self._late_steps, self._session.target.horizon - 1)
            episode, step = active.observation.key
            late = self._late = _Late(active.step.index, (episode, step + self._late_steps))
            request = self._request(active, self.deadline_s, committed)
            late.pending = active.pending = self._session.submit(
                request, self.deadline_s, self._clock(), lambda outcome: setattr(late, "outcome", outcome)
            )
        return self._so_far(active)

    def _waits(self, active: ActiveStep) -> bool:
        return not self._late_steps or self.controller.drafts or not active.step.plan_left[0]

    def limit(self, active: ActiveStep, outcome: Outcome) -> Outgoing:
        """See `ControlStep`."""
        self._spliced = not self._waits(active)
        return super().limit(active, outcome)

    def _forget_plans(self) -> None:
        super()._forget_plans()
        late, self._late, self._held_back = self._late, None, None
        if late is not None and late.outcome is None and late.pending is not None:
            self._session.cancel(late.pending)
