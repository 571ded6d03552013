"""A robot that a person takes over: simulated link, real guard and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import MeasuredPositions
from adahi_ros.protocol.records import StepRecord
from adahi_ros.robot.takeover_loop import TakeoverLoop
from adahi_ros.safety.commands import Commands, Outgoing
from adahi_ros.safety.envelope import PAUSE_S, RESTS, Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission
from adahi_ros.safety.person_commands import PersonCommands
from adahi_ros.safety.takeover import COMMAND, SIGNAL
from test.robot.conftest import PERIOD_S, Robot

HORIZON, TIMEOUT_S, HOLD_AFTER_S = 8, 0.5, 0.5
SPEED, ACCELERATION, STEP = 1.0, 10.0, 0.2
DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25] * 4]
LIMITS = {
    "velocity": SPEED,
    "acceleration": ACCELERATION,
    "max_step": STEP,
    "position_low": -3.0,
    "position_high": 3.0,
}


class Units:
    """The wire format of an action in the policy's units."""

    def to_wire(self, values: np.ndarray) -> np.ndarray:
        return values

    def from_wire(self, values: np.ndarray) -> np.ndarray:
        return values


class Arm:
    """A `Commander` and a `Person`: a guard, and an arm that reaches every command in a period.

    Attributes:
        at: (A,), where the arm is.
        sent: time, command and whether it holds the arm.
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        size: int,
        interpolated: bool,
        required: bool,
        permission: Permission | None = None,
    ) -> None:
        self._now_s = now_s
        names = [f"joint_{place}" for place in range(size)]
        limits = Limits.from_fields(names, dict.fromkeys(names, LIMITS))
        self.permission = permission or Permission(required, TIMEOUT_S)
        envelope = Envelope(limits, "positions", PERIOD_S)
        config = GuardConfig(PERIOD_S, HOLD_AFTER_S, interpolated)
        self.guard = Guard(envelope, config, self.permission, now_s())
        measured = MeasuredPositions(tuple(names), tuple(range(size)))
        self.commands = Commands(self.guard, Units(), measured)  # type: ignore[arg-type]
        self.takeover = self.permission.takeover
        for topic in (SIGNAL, COMMAND):
            self.show_publishers(topic)
        self._person = PersonCommands(
            self.takeover, self.commands, self.guard, ["positions"] * size, measured
        )
        self.at = np.full(size, 0.5)
        self.sent: list[tuple[float, np.ndarray, bool]] = []
        self.commands.start(now_s())

    @property
    def read(self) -> np.ndarray:
        return self.at.copy()

    def publish(self, outgoing: Outgoing) -> np.ndarray | None:
        if outgoing.command is not None:
            self.sent.append((self._now_s(), outgoing.command, self.guard.holding))
            self.at = outgoing.command.copy()
        return outgoing.action

    # Commander

    def observed(self) -> None:
        self.guard.observed(self._now_s())

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        return self.commands.limit(action, self.read, self._now_s())

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        return self.publish(outgoing)

    def repeat(self, observation: Observation) -> None:
        self.publish(self.commands.repeat(self._now_s()))

    def resumes(self) -> bool:
        return self.guard.resumes(self._now_s())

    def commanded(self) -> np.ndarray | None:
        return self.commands.commanded()

    def look(self) -> None:
        self.publish(self.commands.brake_if_held(self._now_s()))

    def show_publishers(self, topic: str, publishers: int = 1) -> None:
        """Let the takeover see so many publishers of a topic; the first one is always the same."""
        gids = frozenset(f"{number}".encode() for number in range(publishers))
        self.takeover.publishers[topic].note_publishers(gids, None, self._now_s())


class Person:
    """See `Person` in `robot/takeover_loop.py`."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    @property
    def drives(self) -> bool:
        return self._arm.takeover.person

    @property
    def takeovers(self) -> int:
        return self._arm.takeover.count

    @property
    def at_rest(self) -> bool:
        return not self._arm.guard.moving

    def held(self) -> str:
        return self._arm.takeover.held(self._arm._now_s())

    def limit(self, observation: Observation) -> Outgoing:
        return self._arm._person.limit(self._arm.read, self._arm._now_s())


class Teleoperated(Robot):
    """A robot that executes plans, with a person beside it."""

    def __init__(self, *given: Any, interpolated: bool = False, required: bool = False, **named: Any) -> None:
        super().__init__(*given, **named)
        size = self.policy.signature.action_dim
        self.arm = Arm(lambda: self.link.now_s, size, interpolated, required)
        self.person = Person(self.arm)
        base, self.presses, self.step = self.loop, 0, 0
        self.loop = TakeoverLoop(
            base.controller,
            self.session,
            base._view,
            "robot",
            0,
            base.deadline_s,
            self.arm,
            self.records.append,
            base.fallback,
            lambda: self.link.now_s,
            PERIOD_S if named.get("plans") and not named.get("waits") else None,
            max(RESTS * PERIOD_S, PAUSE_S),
            person=self.person,
        )
        self.teleoperator = np.full(size, -1.0)

    def press(self, value: bool, age_s: float = 0.0, publishers: int = 1) -> str:
        self.arm.show_publishers(SIGNAL, publishers)
        return self.arm.takeover.signal(value, age_s, self.link.now_s)

    def command(self, moved: float = 0.0, age_s: float = 0.0, publishers: int = 1) -> str:
        self.teleoperator = self.teleoperator + moved
        self.arm.show_publishers(COMMAND, publishers)
        return self.arm.takeover.command(self.teleoperator, age_s, self.link.now_s)

    def drive(self, steps: int, moved: float = 0.0) -> list[StepRecord]:
        """Let the person press and command at every step."""
        for _ in range(steps):
            self.press(True)
            self.command(moved)
            self.go(1)
        return self.records[-steps:]

    def go(self, steps: int, period_s: float = PERIOD_S) -> list[StepRecord]:
        for _ in range(steps):
            self.step += 1
            self.see(1, self.step)
            self.pass_time(period_s)
            self.arm.look()
        return self.records[-steps:]

    @property
    def moves(self) -> list[np.ndarray]:
        return [command for _, command, holds in self.arm.sent if not holds]
