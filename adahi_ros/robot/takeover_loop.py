# SPDX-License-Identifier: Apache-2.0
"""The control steps of a robot that a person can take over: the policy yields, and gets the arm back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.loop import HELD_MEANWHILE, ControlLoop
from adahi_ros.robot.outcomes import ActiveStep, Outcome

if TYPE_CHECKING:
    from adahi_ros.safety.commands import Outgoing

RESTS = "the arm stops first, because a person drove it"


class Person(Protocol):
    """A person's actions, and a way to the arm."""

    @property
    def drives(self) -> bool:
        """A person drives now."""

    @property
    def takeovers(self) -> int:
        """Count of a person's takeovers: one may be over before the next observation."""

    @property
    def at_rest(self) -> bool:
        """The arm has stopped."""

    def held(self) -> str:
        """Return why a person who drives does not move the arm; may be empty."""

    def limit(self, observation: Observation) -> Outgoing:
        """Return the command that the person wants, or what holds the arm."""


class TakeoverLoop(ControlLoop):
    """Control steps of which a person makes some. Other arguments as `ControlLoop`.

    While a person drives, the policy sees the observations, but it commands nothing and requests nothing.
    At every change of who drives, plans, replies and requests are dropped, and the arm stops. So the
    policy begins with a reply to an observation that it made after the person.

    Args:
        person: see above.
    """

    def __init__(self, *given: Any, person: Person, **named: Any) -> None:
        super().__init__(*given, **named)
        self._person = person
        self._driven = False  # a person drove the last step
        self._takeovers = person.takeovers  # at the last step

    def settle(self, observation: Observation, received_s: float) -> bool:
        """See `ControlLoop`; where somebody else drives now, a step that waits ends without an action."""
        self._note_who_drives()
        return super().settle(observation, received_s)

    def stop(self) -> None:
        """See `ControlLoop`."""
        super().stop()
        self._driven = self._yields = False
        self._stand_in = None

    def _note_who_drives(self) -> bool:
        """Return whether somebody else drove since the last call; then drop what is from before."""
        drives, takeovers = self._person.drives, self._person.takeovers
        changed = drives != self._driven or takeovers != self._takeovers
        if changed:
            self._driven, self._takeovers, self._yields = drives, takeovers, not drives
            # A policy without a valid action must not keep a person from driving.
            nothing = np.full((1, self.controller.policy.signature.action_dim), np.nan, np.float32)
            self._stand_in = nothing if drives else None
            if self._last is not None:  # its observation may be repeated, its command must not
                self._last = replace(self._last, withheld=True, outdated=True)
            self.controller.forget_plan()
            self._drop_waiting()
        if self._yields:
            self._yields = not self._person.at_rest
        return changed

    @property
    def _trouble(self) -> Outcome | None:
        return None if self._driven else super()._trouble

    def _is_unattended(self) -> bool:
        return not self._person.drives and super()._is_unattended()

    def _without_action(self, observation: Observation) -> Outgoing:
        return self._person.limit(observation) if self._driven else super()._without_action(observation)

    def decide(self, active: ActiveStep) -> Outcome | None:
        """See `ControlStep`."""
        return Outcome(None, Reason.PERSON) if self._driven else super().decide(active)

    def limit(self, active: ActiveStep, outcome: Outcome) -> Outgoing:
        """See `ControlStep`; what the person wants, while one drives."""
        # A step that waited while the one who drives changed acts by a measurement from before.
        if self._note_who_drives() and active.pending is not None:
            active.outdated, outcome = True, Outcome(None, Reason.SUPERSEDED, HELD_MEANWHILE)
        if not self._driven:
            outgoing = super().limit(active, outcome)
            if self._yields:
                active.outcome = replace(active.outcome, reason=Reason.PERSON, message=RESTS)
            return outgoing
        if active.outdated:
            outgoing = self._commands.limit(None, active.newest or active.observation)
        else:
            outgoing = self._person.limit(active.newest or active.observation)
        held = "" if outgoing.action is not None else self._person.held() or RESTS
        active.withheld, active.outcome = True, Outcome(None, Reason.PERSON, held)
        return outgoing
