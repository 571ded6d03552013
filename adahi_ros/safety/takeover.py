# SPDX-License-Identifier: Apache-2.0
"""A person takes over the arm: who drives, and how the person's commands become the arm's.

It has no clock, like the guard: the caller passes the time, of a clock that never jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_ros.contract.contract import GOALS, MeasuredPositions
from adahi_ros.safety.commands import Commands, Outgoing
from adahi_ros.safety.guard import Guard
from adahi_ros.safety.intervention import Intervention

POSITIONS = "positions"
SIGNAL, COMMAND = "takeover", "teleop_command"  # topics; the first may be a button of joy


class Takeover:
    """Decides who drives, and keeps the newest command of the person.

    - A `true` takes over, and only a `false` gives the arm back. Silence does not: the arm is then held.
    - A message that is older than `timeout_s` counts for nothing, neither to take over nor to give back.
    - The person's newest command lasts `timeout_s`. One that cannot be used ends the former one at once.
    - Two publishers of one topic cannot both drive: the arm is held, and neither can give it back.

    Attributes:
        person: a person drives.
        count: how often a person has taken over.

    Args:
        timeout_s: how long a message lasts.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.person, self.count = False, 0
        self._wanted: np.ndarray | None = None
        self._fault = "none was received"  # of the newest command
        self._several: set[str] = set()  # topics with more than one publisher
        self._sent_s = {SIGNAL: -np.inf, COMMAND: -np.inf}

    def signal(self, value: bool, age_s: float, publishers: int, now_s: float) -> str:
        """Take a message that takes over (true) or gives the arm back (false).

        Args:
            value: of the message.
            age_s: since it was sent; negative where the clocks disagree.
            publishers: of its topic now.
            now_s: the time.

        Returns:
            Why it is ignored; empty where it is not.
        """
        if late := self._received(SIGNAL, age_s, publishers, now_s):
            return late
        if value:
            self.count += not self.person
            self.person = True
        elif SIGNAL in self._several:
            return f"{SIGNAL}: a false of one of {publishers} publishers, must be the only one"
        else:
            self.person = False
        return ""

    def command(
        self, wanted: np.ndarray | None, age_s: float, publishers: int, now_s: float, fault: str = ""
    ) -> str:
        """Take the person's command; arguments and result as `signal`.

        Args:
            wanted: (A,) in the messages' units, NaN for entries that stay; None if it cannot be used.
            age_s: since it was sent.
            publishers: of its topic now.
            now_s: the time.
            fault: why it cannot be used.
        """
        if late := self._received(COMMAND, age_s, publishers, now_s):
            return late
        if wanted is not None and np.isinf(wanted).any():
            fault, wanted = f"{COMMAND}: {wanted.tolist()}, must be finite", None
        self._wanted, self._fault = wanted, fault
        return fault

    def held(self, now_s: float) -> str:
        """Return why a person who drives does not move the arm; empty where the newest command is usable."""
        if self._several:
            return f"several publishers of {' and of '.join(sorted(self._several))}, must be one"
        for topic, sent_s in self._sent_s.items():
            if now_s - sent_s > self._timeout_s:
                return f"no {topic} for {self._timeout_s:g} s"
        return "" if self._wanted is not None else f"no usable {COMMAND}: {self._fault}"

    def wanted(self, now_s: float) -> np.ndarray | None:
        """Return the command (A,) of a person who drives; None where the arm must be held."""
        return self._wanted if self.person and not self.held(now_s) else None

    def _received(self, topic: str, age_s: float, publishers: int, now_s: float) -> str:
        """Note a message; return why it is too old to count."""
        if not -self._timeout_s / 2 <= age_s <= self._timeout_s:
            return (
                f"{topic}: {age_s:.2f} s old by its timestamp, allowed are {-self._timeout_s / 2:g} to "
                f"{self._timeout_s:g} s (safety.enable_timeout_s)"
            )
        self._sent_s[topic] = max(self._sent_s[topic], now_s - max(0.0, age_s))
        (self._several.add if publishers > 1 else self._several.discard)(topic)
        return ""


class PersonCommands:
    """Turns a person's commands into the arm's, without a jump.

    Positions are relative, as with a clutch: from the moment that the person gets the arm, it moves as far as
    the teleoperator does, wherever that stands. Before, the arm brakes to rest. The same holds after every
    hold. Velocities and efforts are taken as they are. All of it passes the guard.

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
        self._measured = measured
        self._number = 0  # of the takeover
        self._place: np.ndarray | None = None  # (A,), of the arm when the person got it
        self._offset: np.ndarray | None = (
            None  # (A,), from the teleoperator to the arm, NaN where it is silent
        )

    def send(self, read: np.ndarray, now_s: float) -> Outgoing:
        """Command what the person wants, or brake where there is nothing usable.

        Args:
            read: (S,) float64, the observation's numbers before any operator.
            now_s: the time.
        """
        wanted = self.takeover.wanted(now_s)
        if wanted is None or self._guard.holding or self._number != self.takeover.count:
            self._number, self._place = self.takeover.count, None
        if wanted is None:
            return self.hold(now_s)
        measured = self._measured.of(read)
        if self._place is None and (self._guard.moving or not self._engage(wanted, measured, now_s)):
            return self.hold(now_s)
        outgoing = self._commands.pass_on(self._moved(wanted), measured, now_s)
        if outgoing.action is None:
            self._place = None
        return outgoing

    def hold(self, now_s: float) -> Outgoing:
        """Brake to rest."""
        self._place = None
        return replace(self._commands.withhold(now_s, Intervention.TAKEOVER), action=None, brakes=True)

    def _engage(self, wanted: np.ndarray, measured: np.ndarray, now_s: float) -> bool:
        """Couple the teleoperator with the arm, where each is now; return whether the arm's is known."""
        place = self._guard.place(measured, now_s)
        place = np.full(len(wanted), np.nan) if place is None else place
        if np.isnan(place[self._strict]).any():
            return False
        self._place, self._offset = place, np.where(self._relative, place - wanted, 0.0)
        return True

    def _moved(self, wanted: np.ndarray) -> np.ndarray:
        """Return the command (A,): entries that the person does not name stay, or have no velocity."""
        assert self._place is not None
        assert self._offset is not None
        moved = wanted + np.where(np.isnan(self._place), 0.0, self._offset)  # else a goal, which is absolute
        return np.where(np.isnan(moved), np.where(self._relative, self._place, 0.0), moved)
