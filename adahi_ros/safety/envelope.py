# SPDX-License-Identifier: Apache-2.0
"""The envelope of a robot: whatever comes in, what goes out is finite and within every limit.

And where an arm is, compared with its commands: following error, whole turns, and where it can stop.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from copy import copy

import numpy as np

from adahi_ros.core.registry import at_place
from adahi_ros.safety.entry_limits import LARGEST
from adahi_ros.safety.governors import GOVERNORS, Governor, interventions_of
from adahi_ros.safety.intervention import Admitted, Intervention
from adahi_ros.safety.limits import Limits

SHORTEST_S = 1e-9  # the clocks' resolution; what is shorter is no time
# In periods after the last command. The robot reaches a command in one period and then stands. Timers jitter,
# so its velocity fades rather than ends there: what is left is never more than its mean velocity since then.
FADES, RESTS = 1.0, 1.5
BRAKES = 1.1  # later than this a hold does not move a robot that stands


class Envelope:
    """Lets actions through, or what is nearest to them within the limits.

    An action within all limits goes through as it is, bit by bit. Limits hold entry by entry; an action
    with an entry that is no number, or beyond anything, is no action at all, and the robot is braked.

    What limits are relative to is the commanded state: what went out last, and how long ago. So call
    one of `admit` and `hold` for every command, and send every command that they return. A command is to be
    reached in a period, so longer intervals count as one: the robot stood since. Its velocity fades between
    `FADES` and `RESTS` periods after the last command, to 0. The first interval counts as a period.

    Braking takes time where accelerations are limited: call `hold` once a period until `at_rest`. After
    that the last command may be repeated.

    Args:
        limits: of the A commanded entries.
        field: what an action is, a key of `GOVERNORS`; a twist is `velocities`, a position that a ROS action
            goes to is `goals`. Or (A,), what each entry is.
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
        self.following = np.where([kind == "positions" for kind in each], limits.following, np.inf)
        """(A,), largest following error; infinite where an entry is no position."""
        self.turning = limits.continuous & np.array([kind == "positions" for kind in each], dtype=bool)
        """(A,) bool, positions of joints that turn without end."""
        for kind in each:
            if kind not in GOVERNORS:
                raise ValueError(f"field: {kind!r}, must be one of {', '.join(GOVERNORS)}")
        self._governors: list[Governor] = [
            at_place(GOVERNORS[kind])(limits, place, self.period_s) for place, kind in enumerate(each)
        ]
        self._unknown = [math.nan] * len(limits.names)
        self.reset()

    def reset(self) -> None:
        """Forget what went out: the robot stands still, and the next command is the first."""
        for governor in self._governors:
            governor.reset()
        self._first = True

    def begin(self, measured: np.ndarray | None) -> None:
        """Stand still from now on, where the robot is measured; unknown entries where they were commanded.

        Args:
            measured: as in `admit`.

        Raises:
            ValueError: wrong shape.
        """
        for governor, position in zip(self._governors, self._measured(measured), strict=True):
            governor.begin(position)

    def begin_displaced(self, measured: np.ndarray | None, elapsed_s: float) -> bool:
        """Do as `begin` with entries measured further than `max_step` from where they were commanded.

        Or from where they would be next, were they braked. The others keep their velocity.

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

    @property
    def state(self) -> tuple[list[Governor], bool]:
        """What limits are relative to, to go back to: what `admit` returned since is not sent."""
        return [copy(governor) for governor in self._governors], self._first

    @state.setter
    def state(self, state: tuple[list[Governor], bool]) -> None:
        self._governors, self._first = state

    @property
    def at_rest(self) -> bool:
        """Whether what went out last moves nothing any more, once it is reached; efforts do not tell."""
        return all(governor.at_rest for governor in self._governors)

    def admit(self, wanted: np.ndarray, measured: np.ndarray | None, elapsed_s: float) -> Admitted:
        """Return what may go out in place of a wanted action.

        Args:
            wanted: (A,), any numbers.
            measured: (A,) positions, NaN where unknown; None where none is known. With `positions`
                they are the start at first, and what `max_step` is relative to; with `velocities` they
                tell how far the position limits are. Without one, positions start from the first that
                is wanted, clipped: it is reached at once.
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
        # A robot outside of its limits may stand where it is wanted: it is led inwards, but not at once.
        return self._sent(action, () if action == entries else interventions_of(stages))

    def hold(
        self, measured: np.ndarray | None, elapsed_s: float, why: Intervention = Intervention.STALE
    ) -> Admitted:
        """Return what brakes to a stop within the limits, at once where acceleration is unlimited.

        Positions go on ever slower, then repeat; velocities go to 0. Accelerations and efforts are 0, which
        stops nothing that moves: brakes or the controller must.

        Args:
            measured: as in `admit`.
            elapsed_s: since the last command.
            why: the intervention that this is.

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
        self._first = False
        return Admitted(np.array(action, dtype=np.float64), interventions)

    def _checked(self, name: str, values: np.ndarray) -> list[float]:
        array = np.asarray(values, dtype=np.float64)
        expected = (len(self.limits.names),)
        if array.shape != expected:
            raise ValueError(f"{name}: shape {array.shape}, expected {expected}")
        entries: list[float] = array.tolist()
        return entries

    def _measured(self, measured: np.ndarray | None) -> list[float]:
        """Return positions, NaN where they are unknown or cannot be."""
        if measured is None:
            return self._unknown
        return [
            position if abs(position) <= LARGEST else math.nan
            for position in self._checked("measured", measured)
        ]

    def _interval(self, elapsed_s: float) -> float:
        if self._first:
            return self.period_s
        if not elapsed_s >= SHORTEST_S:
            return 0.0
        return min(float(elapsed_s), self.period_s)

    def _slow(self, elapsed_s: float, reached: bool = False) -> None:
        """Let the commanded velocity fade where the robot has reached its last command, and stands."""
        share = (RESTS - elapsed_s / self.period_s) / (RESTS - FADES)
        if share < 1.0:
            for governor in self._governors:
                governor.slow(max(0.0, share), reached)


WINDOW_S = 0.5  # an arm has to be where it was commanded within this time
COMMANDS_KEPT = 1024


class Following:
    """Compares where an arm is measured with all that was commanded in the last `WINDOW_S`.

    An arm that lags is somewhere between the commands of the window, whatever its speed. An arm in a
    protective stop is not. It knows no clock.

    Args:
        limit: (A,) largest distance from what was commanded, infinite where none is checked.
    """

    def __init__(self, limit: np.ndarray) -> None:
        self._limit = limit
        self._checks = bool(np.isfinite(limit).any())
        self._commands: deque[tuple[float, np.ndarray]] = deque(maxlen=COMMANDS_KEPT)
        self._since_s = float("inf")

    def reset(self) -> None:
        """Begin a new window: the robot was held, or begins from where it is measured."""
        self._commands.clear()
        self._since_s = float("inf")

    def commanded(self, positions: np.ndarray, now_s: float) -> None:
        """Take a command (A,)."""
        if not self._commands:
            self._since_s = now_s
        self._commands.append((now_s, positions))

    def error(self, measured: np.ndarray | None, now_s: float) -> int | None:
        """Return the first entry that does not follow; None where all do, or the window is not full yet.

        Args:
            measured: (A,) positions, NaN where unknown; None where none is known.
            now_s: the time.
        """
        while len(self._commands) > 1 and self._commands[1][0] <= now_s - WINDOW_S:
            self._commands.popleft()  # the one before the window is what the arm had at its begin
        if not self._checks or measured is None or not self._commands or now_s - self._since_s < WINDOW_S:
            return None
        window = np.array([positions for _, positions in self._commands])
        with np.errstate(invalid="ignore"):
            off = np.maximum(window.min(axis=0) - measured, measured - window.max(axis=0))
            beyond = np.flatnonzero(off > self._limit)
        return int(beyond[0]) if len(beyond) else None


TURN = 2.0 * math.pi
POINTS = 5  # of the path of an arm that brakes


def nearest_turn(measured: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the same angles (A,), each moved by whole turns to within half a turn of a reference (A,).

    An angle is unchanged where it, or its reference, is not finite.
    """
    with np.errstate(invalid="ignore"):
        turns = np.round((reference - measured) / TURN)
    return np.where(np.isfinite(turns), measured + TURN * np.where(np.isfinite(turns), turns, 0.0), measured)


class Unwrapped:
    """Measured positions whose continuous joints stay close to the commanded ones.

    Without this, a joint that passes pi is measured a whole turn away from its last command: a governor
    would turn it back, or hold the robot.

    Args:
        continuous: (A,) bool, the entries that are angles without limits.
    """

    def __init__(self, continuous: np.ndarray) -> None:
        self._continuous = np.array(continuous, dtype=bool)
        self._some = bool(self._continuous.any())

    def __call__(self, measured: np.ndarray, commanded: np.ndarray | None) -> np.ndarray:
        """Return measured positions (A,) in the turn of the commanded ones, where there are any."""
        if commanded is None or not self._some:
            return measured
        return np.where(self._continuous, nearest_turn(measured, commanded), measured)


def fastest(start: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the largest speed (A,) of a cubic that ends with its mean velocity.

    Its velocity is start + 4 (mean - start) t - 3 (mean - start) t^2 with t from 0 to 1, which is furthest
    at t = 2/3: a third of the change beyond the mean (Hermite).

    Args:
        start: (A,) velocity at its begin.
        mean: (A,) displacement over its duration, also the velocity at its end.
    """
    return np.maximum(np.abs(start), np.abs(mean + (mean - start) / 3.0))


def stopping_path(start: np.ndarray, speeds: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where an arm passes (P, A) that brakes: at first, on the way, and at rest.

    Args:
        start: (A,) position.
        speeds: (A,) there, per s.
        limits: of the arm.
    """
    brakes_s = np.abs(speeds) / limits.acceleration
    passed_s = np.minimum(np.linspace(0.0, brakes_s.max(), POINTS)[:, None], brakes_s)
    left = 1.0 - 0.5 * np.divide(passed_s, brakes_s, out=np.zeros_like(passed_s), where=brakes_s > 0.0)
    return start + speeds * passed_s * left
