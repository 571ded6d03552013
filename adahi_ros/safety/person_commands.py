# SPDX-License-Identifier: Apache-2.0
"""A person's commands become the arm's, without a jump. It has no clock, like the guard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_ros.contract.contract import GOALS, MeasuredPositions
from adahi_ros.safety.commands import Commands, Outgoing
from adahi_ros.safety.goals import TOLERANCE
from adahi_ros.safety.guard import Guard
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.takeover import Takeover

POSITIONS = "positions"


class PersonCommands:
    """Turns a person's commands into the arm's, without a jump.

    Positions are relative, as with a clutch: from the moment that the person gets the arm, it moves as far as
    the teleoperator does, wherever that stands. Before, the arm brakes to rest. The same holds after every
    hold. A joint that the person does not name stays at its last command. Velocities and efforts are taken
    as they are. All of it passes the guard.

    A hold cancels a gripper's goal, and where the gripper stands then may be unknown. So it gets no goal
    until the person moves the teleoperator's: then from where it is measured or, unmeasured, the
    teleoperator's own position.

    Args:
        takeover: who drives, and the person's command.
        commands: of the robot.
        guard: of the robot.
        fields: quantity of each of the A entries.
        measured: positions of the commanded entries in an observation.
    """

    def __init__(
        self,
        takeover: Takeover,
        commands: Commands,
        guard: Guard,
        fields: Sequence[str],
        measured: MeasuredPositions,
    ) -> None:
        self.takeover = takeover
        self._commands = commands
        self._guard = guard
        self._relative = np.array([each in (POSITIONS, GOALS) for each in fields])
        self._strict = np.array([each == POSITIONS for each in fields])
        self._goals = np.array([each == GOALS for each in fields])
        self._left = self._goals  # (A,), goals that the person has not moved
        self._named_at = np.full(len(fields), np.nan)  # (A,), where the teleoperator's goals were first
        self._measured = measured
        self._number = 0  # of the takeover
        self._place: np.ndarray | None = None  # (A,), where the person has brought the arm
        self._offset = np.full(len(fields), np.nan)  # (A,), to it; NaN where not coupled

    def limit(self, read: np.ndarray, now_s: float, stamp_s: float | None = None) -> Outgoing:
        """Return the command that the person wants, or one that brakes where there is nothing usable.

        Args:
            read: (S,) float64, the observation's numbers before any operator.
            now_s: the time.
            stamp_s: of the observation, on any clock; None for now.
        """
        wanted = self.takeover.wanted(now_s)
        if wanted is None or self._guard.holding or self._number != self.takeover.count:
            self._number, self._place = self.takeover.count, None
        if wanted is None:
            return self._hold(read, now_s, stamp_s)
        measured = self._measured.positions_in(read)
        if self._place is None and (self._guard.moving or not self._engage(wanted, measured, now_s)):
            return self._hold(read, now_s, stamp_s)
        place = self._guard.place(measured, now_s)
        if self._guard.paused(now_s) and place is not None and self._place is not None:
            # The arm may have been moved in the gap; the goal of a gripper goes on.
            self._place = np.where(self._goals, self._place, place)
            self._offset = np.where(self._goals, self._offset, np.nan)
        moved = self._moved(wanted, measured)
        outgoing = self._commands.pass_on(moved, measured, now_s, stamp_s=stamp_s, person=True)
        self._place = None if outgoing.action is None else outgoing.command
        if outgoing.left is not None:  # the arm waits for its controller: it does not catch up afterwards
            self._offset = np.where(self._goals, self._offset, np.nan)
        left = self._left if outgoing.left is None else self._goals
        return replace(outgoing, left=left if left.any() else None)

    def _hold(self, read: np.ndarray, now_s: float, stamp_s: float | None) -> Outgoing:
        """Brake to rest."""
        self._place = None
        return self._commands.withhold(read, now_s, stamp_s, Intervention.TAKEOVER)

    def _engage(self, wanted: np.ndarray, measured: np.ndarray, now_s: float) -> bool:
        """Couple the teleoperator with the arm, where each is now; return whether the arm's is known."""
        place = self._guard.place(measured, now_s)
        place = np.full(len(wanted), np.nan) if place is None else place
        if np.isnan(place[self._strict]).any():
            return False
        self._place, self._offset = place, np.full(len(wanted), np.nan)
        self._left, self._named_at = self._goals, np.full(len(wanted), np.nan)
        return True

    def _moved(self, wanted: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Return the command (A,): joints that the person does not name stay, or have no velocity.

        A joint that is named first, or again after a silence, is coupled where both stand now.
        """
        assert self._place is not None
        self._begin_goals(wanted, measured)
        coupled = np.where(self._relative & np.isfinite(self._place), self._place - wanted, 0.0)
        self._offset = np.where(np.isnan(self._offset), coupled, self._offset)
        self._offset = np.where(np.isnan(wanted), np.nan, self._offset)
        moved = np.where(self._left, self._place, wanted + self._offset)
        return np.where(np.isnan(moved), np.where(self._relative, self._place, 0.0), moved)

    def _begin_goals(self, wanted: np.ndarray, measured: np.ndarray) -> None:
        """Couple the goals that the person moves now; of the others no place is sent: 0 may stand for it."""
        assert self._place is not None
        named_at = np.where(np.isnan(self._named_at), wanted, self._named_at)
        self._named_at = np.where(np.isnan(wanted), np.nan, named_at)
        begun = self._left & (np.abs(wanted - self._named_at) > TOLERANCE)  # false of NaN
        self._left = self._left & ~begun
        start = np.where(np.isnan(measured), 0.0, measured - self._named_at)
        self._offset = np.where(begun, start, self._offset)
        at: np.ndarray = np.nan_to_num(np.where(np.isnan(measured), self._place, measured))
        self._place = np.where(self._left, at, self._place)
