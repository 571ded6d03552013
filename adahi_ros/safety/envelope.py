# SPDX-License-Identifier: Apache-2.0
"""The envelope of a robot: for any input, commands are finite and within every limit.

It also compares an arm with its commands: following error, whole turns, stopping position, and motion.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from adahi_ros.contract.contract import GOALS
from adahi_ros.core.command_curve import EARLY, Schedule
from adahi_ros.core.registry import at_place
from adahi_ros.safety.entry_limits import LARGEST
from adahi_ros.safety.governors import GOVERNORS, Governor, interventions_of
from adahi_ros.safety.intervention import Admitted, Intervention
from adahi_ros.safety.limits import Limits

SHORTEST_S = 1e-9  # the clocks' resolution; shorter intervals count as 0
# In periods after the last command. The robot reaches a command in one period and then stands still. Timers
# jitter, so its velocity fades: the rest is never more than its mean velocity since then.
FADES, RESTS = 1.0, 1.5
CROWDED = 0.25  # periods; on a curve, less time would brake the arm too hard where it ends
RESTS_ON_CURVE = 2.0  # the same, where a controller follows the curve of the commands (`command_curve.py`)
PAUSE_S = 0.07  # in a shorter pause no arm moves far, and a controller of velocities keeps its velocity
BRAKES = 1.1  # a hold after this time does not move a robot at standstill
HOLDS_AT_REST = 3  # several, because one may be lost


class Envelope:
    """Passes actions, or the nearest commands within the limits.

    An action within all limits passes unchanged, bit by bit. Limits apply entry by entry. An action
    with a NaN or huge entry is no action: the robot brakes.

    Limits are relative to the commanded state: the last command and its age. So call one of `admit` and
    `hold` for every command, and send every command that they return. A command is reached within a period,
    so longer intervals count as one: the robot stood still since. Its velocity fades to 0 between `FADES` and
    `RESTS` periods after the last command. A commanded velocity remains until `PAUSE_S` if that is later. The
    first interval counts as a period.

    Braking takes time where accelerations are limited: call `hold` once a period until `at_rest`. After
    that the last command may be repeated.

    Args:
        limits: of the A commanded entries.
        field: quantity of the action, a key of `GOVERNORS`; a twist is `velocities`, the position of a ROS
            action is `goals`. Or (A,), the quantity of each entry.
        period_s: of the control.

    Raises:
        ValueError: unknown field, or the period is not above 0.
    """

    def __init__(self, limits: Limits, field: str | Sequence[str], period_s: float) -> None:
        if not (math.isfinite(period_s) and period_s > 0.0):
            raise ValueError(f"period_s: {period_s}, must be finite and above 0")
        self.limits = limits
        self.period_s = float(period_s)
        names = limits.names
        each = (field,) * len(names) if isinstance(field, str) else tuple(field)
        if len(each) != len(names):
            raise ValueError(f"field: {len(each)}, must be one for each of {len(names)} entries")
        self.positions = np.array([kind == "positions" for kind in each], dtype=bool)
        """(A,) bool, entries that are positions."""
        self.goals = np.array([kind == GOALS for kind in each], dtype=bool)
        """(A,) bool, entries that are goals of ROS actions."""
        self.following = np.where(self.positions, limits.following, np.inf)
        """(A,), largest following error; infinite where an entry is no position."""
        self.turning = limits.continuous & self.positions
        """(A,) bool, positions of joints that turn without end."""
        for kind in each:
            if kind not in GOVERNORS:
                raise ValueError(f"field: {kind!r}, must be one of {', '.join(GOVERNORS)}")
        self._governors: list[Governor] = [
            at_place(GOVERNORS[kind])(limits, place, self.period_s) for place, kind in enumerate(each)
        ]
        self._unknown = [math.nan] * len(limits.names)
        self.rests = RESTS
        """Periods after the last command until the robot stands; `RESTS_ON_CURVE` where it follows curves."""
        self._interval_s = self.period_s
        self.reset()

    def reset(self) -> None:
        """Forget the last command: the robot stands still, and the next command is the first."""
        for governor in self._governors:
            governor.reset()
        self._first, self._former_s = True, self.period_s

    def begin(self, measured: np.ndarray | None, entries: np.ndarray | None = None) -> None:
        """Stand still from now on at the measured position; unknown entries at the commanded one.

        Args:
            measured: as in `admit`.
            entries: (A,) bool, the entries that stand still; None for all.

        Raises:
            ValueError: wrong shape.
        """
        for place, position in enumerate(self._measured(measured)):
            if entries is None or entries[place]:
                self._governors[place].begin(position)

    def begin_displaced(self, measured: np.ndarray | None, elapsed_s: float) -> bool:
        """Do as `begin` for entries measured further than `max_step` from their commanded position.

        Their position in the next step, if they braked, counts as well. The others keep their velocity.

        Args:
            measured: as in `admit`.
            elapsed_s: since the last command.

        Returns:
            Whether there are any.

        Raises:
            ValueError: wrong shape.
        """
        interval_s, displaced = self._interval(elapsed_s), False
        self._slow(elapsed_s)
        for governor, position in zip(self._governors, self._measured(measured), strict=True):
            if governor.strays(position, interval_s):
                governor.begin(position)
                displaced = True
        return displaced

    def start(self, commanded: np.ndarray, measured: np.ndarray, settled: np.ndarray) -> np.ndarray:
        """Return positions (A,) to start from: measured, of settled or displaced entries; else commanded.

        Args:
            commanded: (A,), the last command.
            measured: (A,), NaN where unknown.
            settled: (A,) bool; of the others only those further than `max_step` from their command.
        """
        moved = settled | (np.abs(measured - commanded) > self.limits.max_step)
        return np.where(np.isfinite(measured) & moved, measured, commanded)

    @property
    def state(self) -> tuple[list[Governor], bool, float]:
        """The state of the limits, to restore: commands that `admit` returned since are not sent."""
        return [copy(governor) for governor in self._governors], self._first, self._former_s

    @state.setter
    def state(self, state: tuple[list[Governor], bool, float]) -> None:
        self._governors, self._first, self._former_s = state

    @property
    def at_rest(self) -> np.ndarray:
        """(A,) bool, entries that the last command, once reached, moves no more; unknown for efforts."""
        return np.array([governor.at_rest for governor in self._governors], dtype=bool)

    def admit(self, wanted: np.ndarray, measured: np.ndarray | None, elapsed_s: float) -> Admitted:
        """Return the command for a wanted action.

        Args:
            wanted: (A,), any numbers.
            measured: (A,) positions, NaN where unknown; None if all are unknown. With `positions`
                they are the start at first, and the reference of `max_step`; with `velocities` they
                give the distance to the position limits. Without them, positions start at the first
                wanted one, clipped, which is reached at once.
            elapsed_s: since the last command.

        Raises:
            ValueError: wrong shape.
        """
        entries = self._checked("wanted", wanted)
        if not all(abs(entry) <= LARGEST for entry in entries):  # false of NaN, too
            return self.hold(measured, elapsed_s, Intervention.NOT_FINITE)
        positions, interval_s = self._measured(measured), self._interval(elapsed_s)
        self._slow(elapsed_s)
        stages: set[int] = set()
        action = [
            governor.admit(entry, position, interval_s, stages)
            for governor, entry, position in zip(self._governors, entries, positions, strict=True)
        ]
        # A robot outside of its limits may get its own position as action: it is led inwards gradually.
        return self._sent(action, () if action == entries else interventions_of(stages))

    def stand(self, admitted: Admitted, place: np.ndarray, start: np.ndarray) -> Admitted:
        """Return an admitted command with positions that stand at a place, outside of limits as the arm is.

        Args:
            admitted: the command within the limits, for the others.
            place: (A,), NaN where unknown.
            start: (A,), the last command; where it is another one, it is led to the place within the limits.
        """
        if admitted.action is None:
            return admitted
        stands = self.positions & (start == place)
        self.begin(place, stands)
        interventions = () if (stands | ~self.positions).all() else admitted.interventions
        return Admitted(np.where(stands, place, admitted.action), interventions)

    def hold(
        self, measured: np.ndarray | None, elapsed_s: float, why: Intervention = Intervention.STALE
    ) -> Admitted:
        """Return a command that brakes to a stop within the limits, at once without an acceleration limit.

        Positions slow down, then repeat; velocities go to 0. Accelerations and efforts are 0, which
        does not stop a moving robot: brakes or the controller must.

        Args:
            measured: as in `admit`.
            elapsed_s: since the last command.
            why: the intervention to record.

        Raises:
            ValueError: wrong shape.
        """
        positions = self._measured(measured)
        pairs = list(zip(self._governors, positions, strict=True))
        if not all(governor.can_hold(position) for governor, position in pairs):
            return Admitted(None, (why,))
        interval_s = self._interval(elapsed_s)
        self._slow(elapsed_s, reached=elapsed_s > BRAKES * self.period_s)
        return self._sent([governor.hold(position, interval_s) for governor, position in pairs], (why,))

    def _sent(self, action: list[float], interventions: tuple[Intervention, ...]) -> Admitted:
        self._first, self._former_s = False, self._interval_s
        return Admitted(np.array(action, dtype=np.float64), interventions)

    def _checked(self, name: str, values: np.ndarray) -> list[float]:
        array = np.asarray(values, dtype=np.float64)
        expected = (len(self.limits.names),)
        if array.shape != expected:
            raise ValueError(f"{name}: shape {array.shape}, expected {expected}")
        entries: list[float] = array.tolist()
        return entries

    def _measured(self, measured: np.ndarray | None) -> list[float]:
        """Return positions, NaN where they are unknown or invalid."""
        if measured is None:
            return self._unknown
        return [
            position if abs(position) <= LARGEST else math.nan
            for position in self._checked("measured", measured)
        ]

    def _interval(self, elapsed_s: float) -> float:
        """Return the next command's interval; on a curve, the speed changes in this or the former at most."""
        self._interval_s = min(float(elapsed_s), self.period_s) if elapsed_s >= SHORTEST_S else 0.0
        if self._first:
            self._interval_s = self.period_s
        elif self.rests == RESTS_ON_CURVE:
            late = elapsed_s > self.period_s * (1.0 + EARLY)
            for governor in self._governors:
                governor.turns_s = math.inf if late else self._former_s
        return self._interval_s

    def _slow(self, elapsed_s: float, reached: bool = False) -> None:
        """Let the commanded velocity fade after the robot has reached its last command."""
        share = (self.rests - elapsed_s / self.period_s) / (self.rests - FADES)
        if share < 1.0:
            unknown = share <= 0.0 and elapsed_s >= PAUSE_S
            for governor in self._governors:
                governor.slow(max(0.0, share), reached, unknown)


WINDOW_S = 0.5  # an arm must reach a command within this time
WINDOW_PERIODS = 3.0  # at least: a controller reaches a command within two and a half, late ones later
COMMANDS_KEPT = 1024


class Following:
    """Compares measured positions with all commands of the last `WINDOW_S`, or of `WINDOW_PERIODS`.

    A lagging arm is between the commands of the window, at any speed. An arm in a
    protective stop is not. It has no clock.

    Args:
        limit: (A,) largest distance from the commands, infinite where it is not checked.
        period_s: of the control.
    """

    def __init__(self, limit: np.ndarray, period_s: float = 0.0) -> None:
        self._limit, self._window_s = limit, max(WINDOW_S, WINDOW_PERIODS * period_s)
        self._checks = bool(np.isfinite(limit).any())
        self._commands: deque[tuple[float, np.ndarray]] = deque(maxlen=COMMANDS_KEPT)
        self._since_s = float("inf")

    def reset(self) -> None:
        """Start a new window, after a hold or at the measured position."""
        self._commands.clear()
        self._since_s = float("inf")

    def commanded(self, positions: np.ndarray, now_s: float) -> None:
        """Add a command (A,)."""
        if not self._commands:
            self._since_s = now_s
        self._commands.append((now_s, positions))

    def error(self, measured: np.ndarray | None, now_s: float) -> int | None:
        """Return the first entry that does not follow; None if all do, or if the window is not full yet.

        Args:
            measured: (A,) positions, NaN where unknown; None if all are unknown.
            now_s: the time.
        """
        while len(self._commands) > 1 and self._commands[1][0] <= now_s - self._window_s:
            self._commands.popleft()  # the last one before the window applies at its start
        if not self._checks or measured is None or not self._commands:
            return None
        if now_s - self._since_s < self._window_s:
            return None
        window = np.array([positions for _, positions in self._commands])
        with np.errstate(invalid="ignore"):
            off = np.maximum(window.min(axis=0) - measured, measured - window.max(axis=0))
            beyond = np.flatnonzero(off > self._limit)
        return int(beyond[0]) if len(beyond) else None


TURN = 2.0 * math.pi
POINTS = 5  # of a braking arm's path


def nearest_turn(measured: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the same angles (A,), each shifted by whole turns to within half a turn of a reference (A,).

    An angle is unchanged where it, or its reference, is not finite.
    """
    with np.errstate(invalid="ignore"):
        turns = np.round((reference - measured) / TURN)
    return np.where(np.isfinite(turns), measured + TURN * np.where(np.isfinite(turns), turns, 0.0), measured)


class Unwrapped:
    """Measured positions, with continuous joints kept close to the commanded ones.

    Without this, a joint that passes pi is measured a whole turn away from its last command: a governor
    would turn it back, or the robot would be held.

    Args:
        continuous: (A,) bool, the entries that are angles without limits.
    """

    def __init__(self, continuous: np.ndarray) -> None:
        self._continuous = np.array(continuous, dtype=bool)
        self._some = bool(self._continuous.any())

    def __call__(self, measured: np.ndarray, commanded: np.ndarray | None) -> np.ndarray:
        """Return measured positions (A,) in the same turn as the commanded ones, if any."""
        if commanded is None or not self._some:
            return measured
        return np.where(self._continuous, nearest_turn(measured, commanded), measured)


def stopping_path(start: np.ndarray, speeds: np.ndarray, limits: Limits) -> np.ndarray:
    """Return positions (P, A) of a braking arm: at the start, on the way, and at rest.

    Args:
        start: (A,) position.
        speeds: (A,) there, per s.
        limits: of the arm.
    """
    brakes_s = np.abs(speeds) / limits.acceleration
    passed_s = np.minimum(np.linspace(0.0, brakes_s.max(), POINTS)[:, None], brakes_s)
    left = 1.0 - 0.5 * np.divide(passed_s, brakes_s, out=np.zeros_like(passed_s), where=brakes_s > 0.0)
    return start + speeds * passed_s * left


@dataclass
class Motion:
    """The commands so far, of an arm that reaches each within a control period and then stands.

    Attributes:
        period_s: of the control.
        put_s: when the last command was made.
        moved_s: when the last command was made that may have moved the arm; or (A,), of each entry.
        at: (A,), the last command; None before the first.
        speeds: (A,), mean velocities towards it; None where they are unknown.
        before: (A,), where the last command began; empty before the first.
        schedule: of a controller that interpolates; None where each command begins when it is made.
        interval_s: between the last two commands, at most a period.
        counted_s: the same, without a bound.
        moving: the commands may move the arm, or may have been lost.
        rested: (A,), commands at rest so far of each entry, in the present hold, infinite where it was left.
        resting: positions were held in a gap, or a simulator set them, and they have not been moved since.
        anywhere: the arm may start anywhere.
        pressed_at: (A,), where it was measured at the newest press since it moved; None without one.
        left_s: when entries were left last.
    """

    period_s: float
    put_s: float
    moved_s: float | np.ndarray
    at: np.ndarray | None = None
    speeds: np.ndarray | None = None
    before: np.ndarray = field(default_factory=lambda: np.zeros(0))
    schedule: Schedule | None = None
    interval_s: float = 0.0
    counted_s: float = math.inf
    moving: bool = False
    rested: np.ndarray | float = 0.0
    resting: bool = False
    anywhere: bool = True
    pressed_at: np.ndarray | None = None
    left_s: float = -math.inf

    def since_s(self, now_s: float) -> float:
        """Return the time from the begin of the last command to that of one made now."""
        if self.schedule is None:
            return now_s - self.put_s
        return self.schedule.next_s(now_s) - self.schedule.due_s

    def crowded(self, now_s: float) -> bool:
        """Whether a command made now would begin too soon after the last one, because many come at once."""
        return self.schedule is not None and self.since_s(now_s) < CROWDED * self.period_s

    def elapsed_s(self, now_s: float) -> float:
        """Do as `since_s`, for a command that is made now."""
        elapsed_s, self.put_s = self.since_s(now_s), now_s
        self.counted_s, self.interval_s = elapsed_s, min(elapsed_s, self.period_s)
        if self.schedule is not None:
            self.schedule.due_s = self.schedule.next_s(now_s)
        return elapsed_s

    def begin_curve(self) -> None:
        """Let the next command begin a new curve, of a controller that interpolates: the arm stands."""
        if self.schedule is not None:
            self.schedule.due_s = -np.inf

    @property
    def reached_s(self) -> float:
        """When the arm has reached the last command and stands."""
        if self.schedule is None:
            return self.put_s + self.period_s
        return max(self.put_s, self.schedule.due_s) + 2.0 * self.period_s

    def gap(self, now_s: float) -> bool:
        """Whether the arm stands, because the last command is long ago."""
        return self.since_s(now_s) >= (RESTS if self.schedule is None else RESTS_ON_CURVE) * self.period_s

    def put(self, command: np.ndarray, start: np.ndarray | None = None) -> None:
        """Note a command (A,), and where the arm starts, NaN where unknown; None for the last command."""
        known = self.at is not None and self.interval_s > 0.0
        self.speeds = (command - self.at) / self.interval_s if known else None
        start = self.at if start is None else start
        self.before = command if start is None else np.where(np.isfinite(start), start, command)
        self.at = command

    def begins(self, now_s: float) -> None:
        """Note that the next command moves the arm."""
        self.moving, self.resting, self.rested, self.moved_s = True, False, 0.0, now_s
        self.anywhere, self.pressed_at = False, None

    def brakes(self, at_rest: np.ndarray) -> None:
        """Note a command that brakes the arm; entries at rest (A,) stand once they have reached it."""
        self.rested = np.where(at_rest | np.isinf(self.rested), self.rested + 1, 0)
        self.moved_s = np.where(at_rest, self.moved_s, self.put_s)
        self.moving = bool((self.rested < HOLDS_AT_REST).any())
