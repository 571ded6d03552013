# SPDX-License-Identifier: Apache-2.0
"""What is commanded in the place of each action, and when which word of the safety is due.

It knows no clock, as the guard does not: whoever asks says what time it is, on a clock that never jumps. Nor
does it send anything: it returns what is to go out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.contract.contract import Action, MeasuredPositions
from adahi_ros.safety.guard import HELD, Guard
from adahi_ros.safety.intervention import Intervention

AT_REST = "at rest"
LONGEST_STOP_S = 3.0  # of a robot whose node is closed; whoever closes it may not wait much longer


@dataclass(frozen=True)
class SafetyRecord:
    """What is told of the safety, as `SafetyState.msg` has it.

    Attributes:
        enabled: it may move the robot.
        stopped: a stop is latched.
        needs_press: motion needs a fresh press of the deadman, or the service.
        holding: the last command was to hold still.
        interventions: of the last command.
        counts: of each member of `Intervention`, in their order, since it was started.
        message: why the robot is held, for people; begins with `AT_REST` once it is at rest.
        warning: for people, where the robot is held for other reasons than before, but not to its end;
            else empty.
    """

    enabled: bool
    stopped: bool
    needs_press: bool
    holding: bool
    interventions: tuple[Intervention, ...]
    counts: tuple[int, ...]
    message: str = ""
    warning: str = ""


@dataclass(frozen=True, eq=False)
class Outgoing:
    """What is to go out now, the command first.

    Attributes:
        command: (A,) float64 as it is sent; None where nothing is commanded.
        action: (A,), the command in the policy's units; None where there is none.
        record: None where nothing is to be told.
        brakes: the command belongs to no observation.
    """

    command: np.ndarray | None = None
    action: np.ndarray | None = None
    record: SafetyRecord | None = None
    brakes: bool = False


_State = tuple[bool, bool, bool, bool, str, tuple[Intervention, ...]]
"""What a change of is published at once."""


class Commands:
    """Turns actions into commands, as far as the guard lets them through, and says what is to be told of it.

    Told is every command that is not the action that was wanted, and every change: of the interventions, and,
    while it is active, of whether the robot is enabled or stopped.

    Args:
        guard: of the robot.
        action: the contract's.
        measured: where the commanded joints stand in what is read for an observation.
    """

    def __init__(self, guard: Guard, action: Action, measured: MeasuredPositions) -> None:
        self._guard = guard
        self._action = action
        self._measured = measured
        self._commanded: np.ndarray | None = None
        self._published: _State | None = None
        self._end_s = -math.inf

    def start(self, now_s: float) -> None:
        """Let actions through from now on."""
        self._guard.start(now_s)

    def stop(self, now_s: float) -> Outgoing:
        """Hold the robot from now on; actions are not commanded any more."""
        if not self._guard.active:
            return Outgoing()
        self._guard.stop()
        return self.look(now_s)

    def close(self, now_s: float) -> Outgoing:
        """Hold the robot for good, for nobody will be there: `look` while it is `closing`, then `halt`."""
        self._end_s = now_s + LONGEST_STOP_S
        return self.stop(now_s)

    def closing(self, now_s: float) -> bool:
        """Whether a robot that is closed has yet to come to rest, and has time to."""
        return self._guard.moving and now_s < self._end_s

    def halt(self, now_s: float) -> Outgoing:
        """Stop at once a robot that has not come to rest; one that has is commanded nothing."""
        return self._outgoing(self._guard.halt(now_s), now_s) if self._guard.moving else Outgoing()

    # Of observations

    def send(self, action: np.ndarray, read: np.ndarray, now_s: float) -> Outgoing:
        """Command an action. Where none may go out, brake an arm that moves: the next look may be late.

        Args:
            action: (A,), in the policy's units.
            read: (S,) float64, the observation's numbers as they were read.
            now_s: the time.
        """
        wanted = np.asarray(self._action.to_wire(action), dtype=np.float64)
        command = self._guard.act(wanted, self._measured.of(read), now_s)
        if command is None and self._guard.moving:
            return replace(self.look(now_s), action=None, brakes=True)
        # What nobody intervened in is the action to the last bit: there and back it might lose some.
        return self._outgoing(command, now_s, None if self._guard.interventions else action)

    def repeat(self, now_s: float) -> Outgoing:
        """Command the last again, for an observation that was repeated, unless the robot was held."""
        return self._outgoing(self._guard.repeat(now_s), now_s)

    def withhold(self, now_s: float) -> Outgoing:
        """Hold the robot: there is an observation, and no action that may be commanded."""
        return self._outgoing(self._guard.withhold(now_s), now_s)

    def commanded(self) -> np.ndarray | None:
        """Return what was commanded last, as an action (A,), where something was since this was last called.

        That is the reply to an observation, or what has held the robot since the one before. A robot that
        rests is commanded nothing.
        """
        commanded, self._commanded = self._commanded, None
        return commanded

    # Of time

    def look(self, now_s: float) -> Outgoing:
        """Hold the robot where that is due; call it every control period."""
        outgoing = self._outgoing(self._guard.look(now_s), now_s)
        if outgoing.command is None and self._published != self._state(now_s):
            return Outgoing(record=self.record(now_s))
        return outgoing

    def record(self, now_s: float, warning: str = "") -> SafetyRecord | None:
        """Return what is to be published now, though nothing has changed; None before the first start."""
        guard = self._guard
        self._published = state = self._state(now_s)
        if not guard.active and not guard.reported:
            return None
        enabled, stopped, needs_press, resting, reason, interventions = state
        message = ": ".join(part for part in (AT_REST * resting, reason) if part)
        counts = tuple(guard.counts[each] for each in Intervention)
        return SafetyRecord(
            enabled, stopped, needs_press, guard.holding, interventions, counts, message, warning
        )

    def driver(self, fault: str, now_s: float) -> Outgoing:
        """Take the driver's state: why it does not run, empty where it runs."""
        self._guard.driver(fault)
        return self.look(now_s)

    def sink(self, fault: str, now_s: float) -> Outgoing:
        """Take what keeps a sink from stopping the robot; empty where nothing does."""
        self._guard.sink(fault)
        return Outgoing() if self._published == self._state(now_s) else Outgoing(record=self.record(now_s))

    def _outgoing(
        self, command: np.ndarray | None, now_s: float, wanted: np.ndarray | None = None
    ) -> Outgoing:
        """Return what goes out with a command; `wanted` is the action that it is to the last bit, if any."""
        action = None
        if command is not None:
            action = self._action.from_wire(command) if wanted is None else wanted
            self._commanded = action
        interventions = self._guard.interventions
        changed = self._published is None or self._guard.reported != self._published[-1]
        if not interventions or (command is None and not changed):
            return Outgoing(command, action)
        held = sorted(why.name.lower() for why in HELD.intersection(interventions))
        closed = self._end_s > -math.inf  # whoever closed it knows that it is held
        warning = f"held: {', '.join(held)}" if held and changed and not closed else ""
        return Outgoing(command, action, self.record(now_s, warning))

    def _state(self, now_s: float) -> _State:
        guard = self._guard
        resting = guard.holding and guard.at_rest(now_s)
        permission = guard.stopped, guard.permission.needs_press
        return guard.enabled(now_s), *permission, resting, guard.reason(now_s), guard.reported
