# SPDX-License-Identifier: Apache-2.0
"""Replaces actions by safe commands, and decides when to publish the safety state.

It has no clock, like the guard: the caller passes the time, of a clock that never jumps. It sends
nothing itself: it returns the messages to send.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.contract.contract import Action, MeasuredPositions
from adahi_ros.safety.guard import Guard
from adahi_ros.safety.intervention import Intervention

AT_REST = "at rest"
OUTDATED_S = 0.5  # a plan of an arm that stands
WAITS = "waits until the controller gets the commands"
LONGEST_STOP_S = 3.0  # when the robot's node is closed; its caller may not wait longer


@dataclass(frozen=True)
class SafetyRecord:
    """The safety state, as in `SafetyState.msg`.

    Attributes:
        enabled: the robot may move.
        stopped: a stop is latched.
        needs_press: motion needs a fresh press of the deadman, or the service.
        holding: the last command was to hold still.
        interventions: of the last command.
        counts: of each member of `Intervention`, in their order, since it was started.
        message: why the robot is held; begins with `AT_REST` once it is at rest. Else the limited entries.
        warning: a new reason why the robot is held, except at the end of a hold;
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
    """The messages to send now, the command first.

    Attributes:
        command: (A,) float64 in the message's units; None without a command.
        action: (A,), the command in the policy's units; None without a command.
        record: None where nothing is to be published.
        brakes: the command is not for an observation.
        left: (A,) bool, goals that are not to be sent: their joints are left alone; None for none.
    """

    command: np.ndarray | None = None
    action: np.ndarray | None = None
    record: SafetyRecord | None = None
    brakes: bool = False
    left: np.ndarray | None = None


_State = tuple[bool, bool, bool, bool, str, tuple[Intervention, ...]]
"""Fields that are published immediately when they change."""


class Commands:
    """Turns actions into commands, as far as the guard allows, and returns the state to publish.

    It publishes every command that differs from its action, and every change of the interventions and, while
    active, of enabled or stopped.

    Args:
        guard: of the robot.
        action: the contract's.
        measured: the commanded joints' positions in an observation.
        reaches: whether a command has reached the controller; motion does not begin before. None: it has.
    """

    def __init__(
        self,
        guard: Guard,
        action: Action,
        measured: MeasuredPositions,
        reaches: Callable[[], bool] | None = None,
    ) -> None:
        self._guard = guard
        self._action = action
        self._measured = measured
        self._reaches = reaches
        self._stay: np.ndarray | None = None  # what is commanded until the controller is reached
        self._place = np.zeros(0)  # (A,), where the arm stands meanwhile, NaN where unknown
        self._stayed_s = 0.0  # since when
        self._commanded: np.ndarray | None = None
        self._published: _State | None = None
        self._closed = False
        self._end_s = math.inf  # of braking

    def start(self, now_s: float) -> None:
        """Allow actions from now on."""
        self._guard.start(now_s)

    def stop(self, now_s: float) -> Outgoing:
        """Hold the robot from now on; actions are not commanded any more."""
        if not self._guard.active:
            return Outgoing()
        self._end_s = now_s + LONGEST_STOP_S
        self._guard.stop()
        return self.brake_if_held(now_s)

    def close(self, now_s: float) -> Outgoing:
        """Hold the robot for good, before the node ends: `brake_if_held` while `closing`, then `halt`."""
        self._closed = True
        return self.stop(now_s)

    def closing(self, now_s: float) -> bool:
        """Whether a closed robot has not come to rest yet, and has time left."""
        return self._guard.moving and now_s < self._end_s < math.inf

    def halt(self, now_s: float) -> Outgoing:
        """Stop a moving robot immediately; one at rest gets no command."""
        return self._outgoing(self._guard.halt(now_s), now_s) if self._guard.moving else Outgoing()

    # Of observations

    def limit(
        self, action: np.ndarray | None, read: np.ndarray, now_s: float, stamp_s: float | None = None
    ) -> Outgoing:
        """Return what may be commanded of an action.

        If nothing may, brake a moving arm: the next call of `brake_if_held` may be late.

        Args:
            action: (A,), in the policy's units; None to hold the robot.
            read: (S,) float64, the observation's numbers before any operator.
            now_s: the time.
            stamp_s: of the observation, on any clock; None for now.
        """
        if action is None:
            return self.withhold(read, now_s, stamp_s)
        wanted = np.asarray(self._action.to_wire(action), dtype=np.float64)
        return self.pass_on(wanted, self._measured.positions_in(read), now_s, action, stamp_s)

    def pass_on(
        self,
        wanted: np.ndarray,
        measured: np.ndarray,
        now_s: float,
        action: np.ndarray | None = None,
        stamp_s: float | None = None,
        person: bool = False,
    ) -> Outgoing:
        """Do as `limit` for an action (A,) and measured positions (A,), both in the messages' units.

        `action` is the same action in the policy's units, if known; `person` says that a person made it.
        """
        stay = self._staying(wanted, measured, now_s)
        if stay is not None:
            wanted, action = stay, None
        place = None if stay is None else self._place  # an arm outside of its limits is not led inwards
        command = self._guard.act(wanted, measured, now_s, stamp_s, person, place)
        if command is None and self._guard.moving:
            return replace(self.brake_if_held(now_s), action=None, brakes=True)
        # Without intervention, return the action itself: a conversion and its inverse may change bits.
        outgoing = self._outgoing(command, now_s, None if self._guard.interventions else action)
        return outgoing if stay is None else replace(outgoing, left=self._guard.goals)

    def _staying(self, wanted: np.ndarray, measured: np.ndarray, now_s: float) -> np.ndarray | None:
        """Return what moves nothing (A,), while a controller misses commands and would catch up with them.

        A plan that went on for long meanwhile is outdated; until it is forgotten the arm stays one step more.
        """
        guard = self._guard
        paused = guard.paused(now_s) or not len(guard.before)
        if self._reaches is None or not (paused or self._stay is not None):
            return None
        if self._stay is None:
            self._stayed_s = now_s
        if self._stay is None or paused or guard.holding:  # the arm may have been moved since
            place = guard.place(measured, now_s)
            self._place = measured if place is None else place
            self._stay = guard.stay(wanted, self._place)
        if self._reaches():
            stay, self._stay, guard.waits = self._stay, None, ""
            if now_s <= self._stayed_s + OUTDATED_S:
                return None
            guard.interrupt()
            return stay
        guard.waits = WAITS
        return self._stay

    def repeat(self, now_s: float) -> Outgoing:
        """Repeat the last command, for a repeated observation, unless the robot was held."""
        outgoing = self._outgoing(self._guard.repeat(now_s), now_s)
        return outgoing if self._stay is None else replace(outgoing, left=self._guard.goals)

    def withhold(
        self,
        read: np.ndarray,
        now_s: float,
        stamp_s: float | None = None,
        why: Intervention = Intervention.UNVERIFIED,
    ) -> Outgoing:
        """Hold the robot: there is an observation, but no allowed action; arguments as `limit`."""
        held = self._guard.withhold(now_s, why, self._measured.positions_in(read), stamp_s)
        return replace(self._outgoing(held, now_s), action=None, brakes=True)

    def commanded(self) -> np.ndarray | None:
        """Return the last command, as an action (A,), if there was one since the previous call.

        It is the result for an observation, or the hold since the previous one. A robot at rest gets no
        command.
        """
        commanded, self._commanded = self._commanded, None
        return commanded

    # Of time

    def brake_if_held(self, now_s: float) -> Outgoing:
        """Hold the robot where necessary; call it every control period."""
        if self._guard.moving and now_s >= self._end_s and not (self._guard.active or self._closed):
            return self.halt(now_s)
        outgoing = self._outgoing(self._guard.brake_if_held(now_s), now_s)
        if outgoing.command is None and self._published != self._state(now_s):
            return Outgoing(record=self.record(now_s))
        return outgoing

    def record(self, now_s: float, warning: str = "") -> SafetyRecord | None:
        """Return the state to publish now, even without a change; None before the first start."""
        guard = self._guard
        self._published = state = self._state(now_s)
        if not guard.active and not guard.reported:
            return None
        enabled, stopped, needs_press, resting, reason, interventions = state
        message = ": ".join(part for part in (AT_REST * resting, reason) if part)
        if guard.limited and not guard.holding:
            message = message or f"limited: {', '.join(guard.limited)}"
        counts = tuple(guard.counts[each] for each in Intervention)
        return SafetyRecord(
            enabled, stopped, needs_press, guard.holding, interventions, counts, message, warning
        )

    def sink(self, fault: str, now_s: float) -> Outgoing:
        """Set the fault that keeps a sink from stopping the robot; empty without one."""
        self._guard.sink(fault)
        return Outgoing() if self._published == self._state(now_s) else Outgoing(record=self.record(now_s))

    def _outgoing(
        self, command: np.ndarray | None, now_s: float, wanted: np.ndarray | None = None
    ) -> Outgoing:
        """Return the messages with a command; `wanted` is the action that it equals exactly, if any."""
        action = None
        if command is not None:
            action = self._action.from_wire(command) if wanted is None else wanted
            self._commanded = action
        interventions = self._guard.interventions
        changed = self._published is None or self._guard.reported != self._published[-1]
        if not interventions or (command is None and not changed):
            return Outgoing(command, action)
        held = self._guard.holding and changed and not self._closed
        warning = f"held: {self._guard.reason(now_s)}" if held else ""
        return Outgoing(command, action, self.record(now_s, warning))

    def _state(self, now_s: float) -> _State:
        guard = self._guard
        resting = guard.holding and guard.at_rest(now_s)
        permission = guard.permission.stopped, guard.permission.needs_press
        return guard.enabled(now_s), *permission, resting, guard.reason(now_s), guard.reported
