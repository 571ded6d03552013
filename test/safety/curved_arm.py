"""An arm whose controller follows the curve of its commands, for tests of the guard."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from adahi_lab.tasks.trajectory_controller import SetPoint, TrajectoryController
from adahi_ros.core.command_curve import CommandCurve
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission, Press
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S

SPEED, ACCELERATION, LOW, HIGH = 2.0, 40.0, -1.0, 1.0
ARM = {
    "velocity": SPEED,
    "acceleration": ACCELERATION,
    "position_low": LOW,
    "position_high": HIGH,
    "max_step": 0.5,
}
BRAKES_M = SPEED**2 / (2.0 * ACCELERATION) + 3.0 * SPEED * PERIOD_S  # and until the message is there
STEPS = st.lists(
    st.tuples(st.floats(-1.5, 1.5), st.floats(0.05, 6.0), st.integers(0, 20)), min_size=2, max_size=25
)
"""Wanted positions, the periods until the next one, and what happens meanwhile."""


class Arm:
    """A guard whose commands a trajectory controller executes, and the time."""

    def __init__(self, **changes: float) -> None:
        self.now_s = 100.0
        self.permission = Permission(True, 60.0)
        limits = Limits.from_fields(["a"], {"a": {**ARM, **changes}})
        envelope = Envelope(limits, "positions", PERIOD_S)
        config = GuardConfig(PERIOD_S, HOLD_AFTER_S, interpolated=True)
        self.guard = Guard(envelope, config, self.permission, self.now_s)
        self.controller, self.curve = TrajectoryController(np.zeros(1)), CommandCurve(PERIOD_S)
        self.guard.start(self.now_s)
        self.presses = 0
        self.reads_s = 0.0  # how much later the clock is read for the curve
        self.enable(True)

    def enable(self, value: bool) -> None:
        self.presses += 1
        self.permission.publishers.note_publishers(frozenset((b"deadman",)), None, self.now_s)
        self.permission.receive(Press(value, self.now_s, 0.0, self.presses), self.now_s)

    @property
    def at(self) -> SetPoint:
        return self.controller.sample(self.now_s)

    def receive(self, command: np.ndarray | None) -> None:
        if command is not None:
            curve = self.curve.extend(
                self.now_s + self.reads_s, self.guard.before, command, self.guard.counted_s
            )
            stamp_s = curve.times_s[0]
            self.controller.receive(curve._replace(times_s=curve.times_s - stamp_s), stamp_s, self.now_s)

    def step(self, wanted: float) -> None:
        """Command a position."""
        self.guard.observed(self.now_s)
        command = self.guard.act(np.array([wanted]), self.at.positions, self.now_s)
        self.receive(command)
        if command is None:
            self.look()

    def look(self) -> None:
        self.receive(self.guard.brake_if_held(self.now_s))

    def pass_by(self, time_s: float) -> None:
        """Let time pass; the timer looks every period."""
        end_s = self.now_s + time_s
        while self.now_s + PERIOD_S < end_s:
            self.now_s += PERIOD_S
            self.look()
        self.now_s = end_s

    def pass_by_within_limits(self, time_s: float) -> None:
        """Let time pass, and check that the arm stays between its limits."""
        before_s = self.now_s
        self.pass_by(time_s)
        between = np.linspace(before_s, self.now_s, 5)
        places = np.array([self.controller.sample(each).positions[0] for each in between])
        assert ((places >= LOW - 1e-9) & (places <= HIGH + 1e-9)).all()
