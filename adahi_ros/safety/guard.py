# SPDX-License-Identifier: Apache-2.0
"""The guard between a policy's actions and the controller: allowed commands, and holds of the robot.

It has no clock: the caller passes the time, of a clock that never jumps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from adahi_ros.core.command_curve import Schedule
from adahi_ros.safety.command_limits import Judge
from adahi_ros.safety.envelope import (
    HOLDS_AT_REST,
    PAUSE_S,
    RESTS_ON_CURVE,
    Envelope,
    Following,
    Motion,
    stopping_path,
)
from adahi_ros.safety.holds import REPORTED_AS, Event, Hold, State
from adahi_ros.safety.intervention import Admitted, Intervention
from adahi_ros.safety.measured_jumps import SETTLED_S, MeasuredArm
from adahi_ros.safety.permission import Permission

LASTING = frozenset(REPORTED_AS.values()) | {Intervention.UNVERIFIED}  # counted once, not per command
HELD = LASTING | {Intervention.NOT_FINITE, Intervention.WORKSPACE}
WITH_PERSON = frozenset((Hold.TAKEN, Hold.UNLIKE))  # let the commands pass of a person who has taken over
NOTHING: frozenset[Hold] = frozenset()
LEFT = "driver: motion waits until its controllers get commands again"
SETTLED_PERIODS = 4.0  # a curve lasts three periods after its command
ACTED_ON = frozenset((Intervention.UNVERIFIED, Intervention.TAKEOVER))  # only an action ends these
FORGOTTEN = frozenset((Intervention.STALE, Intervention.FOLLOWING))  # after these, no command is repeated


@dataclass(frozen=True)
class GuardConfig:
    """Conditions for holding a robot.

    Attributes:
        period_s: of the control.
        hold_after_s: largest time without a usable observation.
        interpolated: a controller of positions follows the curve of the commands, see `command_curve.py`.
    """

    period_s: float
    hold_after_s: float
    interpolated: bool = False


class Guard:
    """Passes actions through the envelope, and holds the robot on faults.

    `safety/holds.py` is the table of what holds a robot; a single action is also withheld where it must not
    be commanded. A hold brakes until the robot is at rest, or until an action is allowed again.

    After every gap, motion starts from rest: a robot reaches each command within a period, and then stands.
    So a hold in a gap sends positions nothing: the last one would bring back an arm that was moved meanwhile.

    Motion starts at the measured position once an entry has rested for `SETTLED_S` and `SETTLED_PERIODS`.
    Earlier it starts at the last command: the measurement lags, and an arm that hangs below its commands
    would sink at each gap if it started where it is measured. An entry further than `max_step` from there
    was displaced: it starts at its measured position after a press that follows the measurement; at once
    after an activation or in a new episode.

    Attributes:
        counts: interventions since it was started.
        interventions: of the last command.
        limited: names of the entries that they changed in an action.
        permission: of the operator, with all holds.

    Args:
        envelope: of the robot.
        config: when it is held.
        permission: of the operator; it outlasts the guard.
        now_s: the time.
        judges: of whole commands, by the key of each in the file of limits.
    """

    def __init__(
        self,
        envelope: Envelope,
        config: GuardConfig,
        permission: Permission,
        now_s: float,
        judges: Mapping[str, Judge] = MappingProxyType({}),
    ) -> None:
        self._envelope = envelope
        self._config = config
        self._settled_s = max(SETTLED_S, SETTLED_PERIODS * config.period_s)
        self.permission = permission
        self.counts: Counter[Intervention] = Counter()
        self.interventions: tuple[Intervention, ...] = ()
        self.limited: tuple[str, ...] = ()
        self._following = Following(envelope.following, config.period_s)
        self._judges = judges
        self._refused_by: str | None = None  # the key of the judge that refused last
        motion = self._motion = Motion(config.period_s, now_s, now_s)
        if config.interpolated:
            motion.schedule, envelope.rests = Schedule(config.period_s), RESTS_ON_CURVE
        self._arm = MeasuredArm(envelope, motion, permission, config.hold_after_s)
        self._unwrapped = self._arm.unwrapped
        self._person = False  # the last action was a person's
        self._why: Intervention | None = None  # it is held
        self._held = True  # the next action ends a hold
        self._interrupted = False  # plans from before the hold are outdated
        self.outside = ""
        """A joint that is far outside of its limits, for people; empty without one."""
        self.waits = ""
        """What motion waits for though nothing holds the arm, for people; empty where it moves."""
        self._sink_fault = ""
        self._commanded: np.ndarray | None = None
        self._owed: tuple[np.ndarray, np.ndarray | None, float | None, np.ndarray | None] | None = None
        self._observed_s = now_s

    @property
    def active(self) -> bool:
        """Whether it passes actions when there is no hold."""
        return self.permission.holds[Hold.DEACTIVATED] is State.CLEAR

    @property
    def moving(self) -> bool:
        """Whether `brake_if_held` may still have to bring the robot to rest."""
        return self._motion.moving

    @property
    def holding(self) -> bool:
        """Whether the last command, or its absence, was to hold the robot."""
        return bool(self.outside) or not HELD.isdisjoint(self.interventions)

    def enabled(self, now_s: float) -> bool:
        """Whether it may move the robot."""
        return self.active and self.permission.enabled(now_s)

    def at_rest(self, now_s: float) -> bool:
        """Whether the robot has reached its last command and has stopped."""
        reached_s = max(self._motion.reached_s, self._motion.left_s + self._settled_s)
        return not self._motion.moving and now_s >= reached_s

    def paused(self, now_s: float) -> bool:
        """Whether commands come after a gap, or in a new episode: motion starts at rest."""
        return self._motion.resting or self._motion.gap(now_s)

    @property
    def before(self) -> np.ndarray:
        """(A,), where the last command began; empty before the first."""
        return self._motion.before

    @property
    def counted_s(self) -> float:
        """Time from the command before to the last one, as the limits count it; infinite for the first."""
        return self._motion.counted_s

    @property
    def made_s(self) -> float:
        """When the last command was made."""
        return self._motion.put_s

    @property
    def resting(self) -> np.ndarray:
        """(A,) bool, not to be sent: what was left, positions at rest while others brake, or since a gap."""
        rested = self._motion.rested
        return np.isinf(rested) | (
            self._envelope.positions & (self._motion.resting | (rested > HOLDS_AT_REST))
        )

    def stay(self, wanted: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Return the action (A,) that moves nothing from `place`, once `goals` are left out.

        Where a place is unknown, it is the wanted one.
        """
        known = np.where(np.isfinite(place), place, wanted)
        return np.where(self._envelope.positions | self.goals, known, 0.0)

    @property
    def goals(self) -> np.ndarray:
        """(A,) bool, goals of ROS actions; also one to where it is measured moves a gripper."""
        return self._envelope.goals

    def reason(self, now_s: float) -> str:
        """Return why the robot is held; empty while it is not."""
        if self._sink_fault:
            return f"gripper: {self._sink_fault}"
        hold = self._hold(now_s)
        if hold is None:
            held = sorted(each.name.lower() for each in self.interventions if each in HELD)
            if self._refused_by is not None and Intervention.WORKSPACE in self.interventions:
                held = [self._refused_by]
            if Intervention.DRIVER in self.interventions:
                held = [LEFT]
            return ", ".join(held) if held else (self.outside and f"position: {self.outside}") or self.waits
        name, detail = REPORTED_AS[hold].name.lower(), self.permission.holds.text(hold)
        return f"{name}: {detail}" if detail else name

    def start(self, now_s: float) -> None:
        """Pass actions from now on."""
        self.permission.activate(now_s)
        self._observed_s = now_s
        self._commanded = self._owed = None
        self.counts.clear()
        self._held = True
        self._interrupted = self._person = False
        self._arm.forget()
        if not self._motion.moving:
            self._why = None

    def stop(self) -> None:
        """Pass no more actions."""
        self.permission.holds.happen(Event.DEACTIVATE)
        self._count((Intervention.DEACTIVATED,))

    def leave(self, entries: np.ndarray, now_s: float) -> None:
        """Send entries nothing until motion begins; it begins after half a second, where they are measured.

        Args:
            entries: (A,) bool. Their controllers ended, are slow, or follow another program's goal.
            now_s: the time; a later one if their controllers miss commands until then.
        """
        self._motion.left_s, self._commanded = max(self._motion.left_s, now_s), None
        self._motion.rested = np.where(entries, np.inf, self._motion.rested)
        self._envelope.begin(None, entries)
        self._motion.moved_s = np.where(entries, -np.inf, self._motion.moved_s)
        if entries.all():
            self._motion.begin_curve()
            self._motion.moving = False

    def sink(self, fault: str) -> None:
        """Set the fault that keeps a sink from stopping the robot; empty without one."""
        self.counts[Intervention.GRIPPER] += bool(fault and not self._sink_fault)
        self._sink_fault = fault

    @property
    def reported(self) -> tuple[Intervention, ...]:
        """Interventions of the last command, and a sink that does not stop."""
        return self.interventions + ((Intervention.GRIPPER,) if self._sink_fault else ())

    def observed(self, now_s: float) -> None:
        """Note a new, usable observation."""
        self._held |= now_s - self._observed_s > self._config.hold_after_s
        self._observed_s = now_s
        self.permission.holds.happen(Event.OBSERVED)

    def new_episode(self, measured: np.ndarray | None = None) -> None:
        """Note that a simulator has set the arm: it rests there, whatever was commanded before.

        Args:
            measured: positions (A,), NaN where unknown. Within `max_step` of the last command the arm was not
                set, and goes on. None: it was set.
        """
        set_elsewhere = measured is None or bool(self._arm.off(measured).any())
        self._arm.forget(set_elsewhere)
        if not set_elsewhere:
            return
        self._envelope.begin(None)
        self._held, self._motion.resting, self._motion.moved_s = True, True, -np.inf
        self._motion.begin_curve()

    def interrupt(self) -> None:
        """Note that the arm stood while a plan went on: it is outdated."""
        self._interrupted = True

    def resumes(self, now_s: float) -> bool:
        """Whether a hold ends, so that earlier plans are outdated; true once for each."""
        fault = self._fault(now_s)
        if fault not in (None, Intervention.STALE):
            return False
        interrupted, self._interrupted = self._interrupted or fault is not None, False
        return interrupted

    def act(
        self,
        wanted: np.ndarray,
        measured: np.ndarray | None,
        now_s: float,
        stamp_s: float | None = None,
        person: bool = False,
        place: np.ndarray | None = None,
    ) -> np.ndarray | None:
        """Return the command for a wanted action (A,); None for no command.

        Args:
            wanted: any numbers.
            measured: positions (A,) of the commanded entries, NaN where unknown; None if all are unknown.
            now_s: the time.
            stamp_s: when they were measured, on any clock; None for now.
            person: the action is of a person who has taken over.
            place: (A,), where positions stand, NaN where unknown: the action moves nothing. None: it may.
        """
        self._commanded, self._owed = None, None if person else (wanted, measured, stamp_s, place)
        self._person = person
        measured = self._checked(measured, now_s, stamp_s)
        why = self._fault(now_s)  # stale if the observation is too old
        if why is not None:
            if why is Intervention.FOLLOWING:
                self._owed = None
            self._count((why,))
            return None
        low, high = self._envelope.limits.far  # NaN is not outside
        with np.errstate(invalid="ignore"):
            far = np.zeros(0, bool) if measured is None else (measured < low) | (measured > high)
        self.outside = ""
        if measured is not None and far.any():
            self.outside = self._envelope.limits.place(int(far.argmax()), measured)
        if self.outside:
            return self._stand(Intervention.POSITION, now_s)
        motion = self._motion
        if now_s - motion.left_s < self._settled_s:
            owed, stands = self._owed, self._stand(Intervention.DRIVER, now_s)
            self._owed = owed  # a simulator may wait for it
            return stands
        if motion.crowded(now_s):
            return None
        gap = motion.gap(now_s)
        if (self._held or gap or place is not None) and self._arm.elsewhere(measured, now_s):
            self._count((Intervention.MEASURED,))
            if place is not None:  # no command leads a moved arm back to where it stood
                motion.rested = np.where(self._envelope.positions, np.inf, motion.rested)
                motion.moving &= not self._envelope.positions.all()
            return None
        before = self._envelope.state, motion.at, motion.speeds
        displaced = (self._held or gap) and self._begin(measured, gap, now_s)
        start = measured if motion.at is None else motion.at
        if start is not None:
            wanted = self._unwrapped(wanted, start)
        admitted = self._envelope.admit(wanted, measured, motion.since_s(now_s))
        if place is not None and start is not None:
            admitted = self._envelope.stand(admitted, self._unwrapped(place, start), start)
        if place is None and self._refused(start, admitted.action, motion.since_s(now_s)):
            self._envelope.state, motion.at, motion.speeds = before
            return self._stand(Intervention.WORKSPACE, now_s)
        motion.elapsed_s(now_s)
        self._held, self._why = False, None
        motion.begins(now_s)
        began = (Intervention.DISPLACED,) if displaced else ()
        self._commanded = self._put(Admitted(admitted.action, began + admitted.interventions), start)
        changed = np.flatnonzero(wanted != admitted.action) if admitted.interventions else ()
        self.limited = tuple(self._envelope.limits.names[place] for place in changed)
        return self._commanded

    def _checked(self, measured: np.ndarray | None, now_s: float, stamp_s: float | None) -> np.ndarray | None:
        """Return measured positions in the turn of the commanded ones, once they are compared with both."""
        measured = self._arm.measure(measured, now_s, stamp_s)
        if self.active and not self._held:
            lagging = self._following.error(measured, now_s)
            if lagging is not None:
                self._lags(lagging)
        return measured

    def withhold(
        self,
        now_s: float,
        why: Intervention = Intervention.UNVERIFIED,
        measured: np.ndarray | None = None,
        stamp_s: float | None = None,
    ) -> np.ndarray | None:
        """Return the command that holds the robot, because its action is not allowed; None at rest.

        Arguments as in `act`, and the intervention to record.
        """
        self._checked(measured, now_s, stamp_s)
        self._commanded = self._owed = None
        self._count((self._fault(now_s) or why,))
        return self.brake_if_held(now_s)

    def repeat(self, now_s: float) -> np.ndarray | None:
        """Return the last action's command again, for a repeated observation.

        A robot that was held has no such command. Once it is enabled, its action is judged again: a simulator
        may wait for it.
        """
        if self._commanded is None and self._owed is not None and self.enabled(now_s):
            self.observed(now_s)
            wanted, measured, stamp_s, place = self._owed
            return self.act(wanted, measured, now_s, stamp_s, place=place)
        return self._commanded if self._fault(now_s) is None else None

    def brake_if_held(self, now_s: float) -> np.ndarray | None:
        """Return the command that holds the robot where necessary; call it every control period."""
        fault = self._fault(now_s)
        if fault is not None:
            self._interrupted = True  # plans from before are outdated
        why = fault or self._why
        if why is None and self._person and not self.permission.takeover.person:
            why = Intervention.UNVERIFIED  # the person's last command must not go on
        if why is None:
            return None
        if not self._motion.moving:
            if fault is None and self._why not in ACTED_ON:
                self._why = None  # the hold is over; the next one counts again
            elif fault is not None and np.isinf(self._motion.rested).all():  # left, so nothing brakes
                self._count((fault,))
            return None
        if self._commanded is not None and why in FORGOTTEN:  # else repetitions would move it for ever
            self._owed = None
        self._commanded = None
        if why is not self._why:
            self._motion.rested = np.where(self._motion.rested > HOLDS_AT_REST, self._motion.rested, 0)
        return self._brake(why, now_s)

    def halt(self, now_s: float) -> np.ndarray | None:
        """Return the command that stops at once, at any acceleration: the node is about to end."""
        self._envelope.begin(None)
        rests = self._rests(now_s)
        self._motion.moving = False
        if rests:
            return None
        return self._put(self._envelope.hold(None, self._motion.elapsed_s(now_s), Intervention.DEACTIVATED))

    def _stand(self, why: Intervention, now_s: float) -> np.ndarray | None:
        """Return the braking command of a moving robot; None where it stands, at any position."""
        self._owed = None
        if self._motion.moving:
            return self._brake(why, now_s)
        self._count((why,))
        return None

    def _rests(self, now_s: float) -> bool:
        """Note whether positions rest since a gap; return whether nothing else is to be braked.

        A last velocity or effort may go on in a gap.
        """
        motion = self._motion
        motion.resting |= motion.gap(now_s) and now_s - motion.put_s >= PAUSE_S
        return motion.resting and bool(self._envelope.positions.all())

    def _brake(self, why: Intervention, now_s: float) -> np.ndarray | None:
        rests = self._rests(now_s)
        if rests or self._motion.crowded(now_s):  # the policy's steps and the timer both brake
            self._motion.moving = not rests
            self._count((why,))
            return None
        held = self._put(self._envelope.hold(None, self._motion.elapsed_s(now_s), why))
        self._motion.brakes(self._envelope.at_rest)
        return held

    def _begin(self, measured: np.ndarray | None, gap: bool, now_s: float) -> bool:
        """Start at the robot's position after a hold or a gap; return whether it was displaced meanwhile."""
        motion = self._motion
        displaced = self._envelope.begin_displaced(measured, motion.since_s(now_s))
        rests = gap or motion.resting or not motion.moving
        settled = self._settled(now_s) & (rests | (motion.rested > HOLDS_AT_REST))
        if settled.any():
            self._envelope.begin(measured, settled)
        if settled.any() or displaced:
            self._following.reset()
            if measured is not None and motion.at is not None:
                motion.at, motion.speeds = self._envelope.start(motion.at, measured, settled), None
        return displaced

    def place(self, measured: np.ndarray | None, now_s: float) -> np.ndarray | None:
        """Return where (A,) a robot at rest starts to move, NaN where unknown; `measured` as in `act`."""
        at = self._motion.at
        if measured is None or at is None:
            return measured if at is None else at
        measured = self._unwrapped(measured, at)
        return self._envelope.start(at, measured, self._settled(now_s))

    def _settled(self, now_s: float) -> np.ndarray:
        """Return the entries (A,) of which no command has moved the arm for long."""
        return np.broadcast_to(
            now_s - self._motion.moved_s >= self._settled_s, self._envelope.positions.shape
        )

    def _refused(self, start: np.ndarray | None, action: np.ndarray | None, elapsed_s: float) -> bool:
        """Whether a judge refuses an action that moves the arm, or the arm's braking path from it."""
        if not self._judges or action is None:
            return False
        before = action.copy() if start is None else np.where(np.isfinite(start), start, action)
        interval_s = min(elapsed_s, self._config.period_s)
        speeds = (action - before) / interval_s if interval_s > 0.0 else np.zeros_like(action)
        path = stopping_path(action, speeds, self._envelope.limits)
        refused = (name for name, admits in self._judges.items() for at in path if not admits(before, at))
        self._refused_by = next(refused, None)
        return self._refused_by is not None

    def _lags(self, entry: int) -> None:
        self._following.reset()
        limits = self._envelope.limits
        text = f"{limits.names[entry]} is further than {limits.following[entry]:g} from its commands"
        self.permission.holds.happen(Event.LAGS, text)

    def _hold(self, now_s: float) -> Hold | None:
        """Return what holds the robot now, for the one who acted last."""
        if now_s - self._observed_s > self._config.hold_after_s:
            self.permission.holds.happen(Event.NOT_OBSERVED)
        return self.permission.holding(now_s, WITH_PERSON if self._person else NOTHING)

    def _fault(self, now_s: float) -> Intervention | None:
        """Return why nothing may move the robot now."""
        hold = self._hold(now_s)
        return None if hold is None else REPORTED_AS[hold]

    def _put(self, admitted: Admitted, start: np.ndarray | None = None) -> np.ndarray | None:
        self._count(admitted.interventions)
        if admitted.action is not None:
            self._motion.put(admitted.action, start)
            self._following.commanded(admitted.action, self._motion.put_s)
        return admitted.action

    def _count(self, interventions: tuple[Intervention, ...]) -> None:
        self.interventions, self.limited = interventions, ()
        for why in interventions:
            if why in LASTING and why is self._why:
                continue
            self.counts[why] += 1
            if why in LASTING:
                self._why = why
        if self.holding:
            self._held = True
