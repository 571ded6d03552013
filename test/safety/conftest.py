"""A guard of one entry, with the time in hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits

PERIOD_S = 0.05
HOLD_AFTER_S = 0.5
LOW, HIGH, SPEED = -1.0, 1.0, 0.5
MARGIN = 0.2  # a robot may be measured so far outside, and be held there
GARBAGE = st.one_of(
    st.floats(-2.0, 2.0), st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324])
)


class Robot:
    """A guard with one entry, and the time."""

    def __init__(self, field: str, limit: dict[str, float], **config: Any) -> None:
        self.now_s = 100.0
        limits = Limits.of(["a"], {"a": limit})
        settings = GuardConfig(PERIOD_S, HOLD_AFTER_S, early=0.25, **config)
        self.guard = Guard(Envelope(limits, field, PERIOD_S), settings, self.now_s)
        self.guard.start(self.now_s)

    def wait(self, periods: int = 1) -> list[float]:
        """Let time pass; return what holds the robot meanwhile."""
        held = []
        for _ in range(periods):
            self.now_s += PERIOD_S
            command = self.guard.look(self.now_s)
            if command is not None:
                held.append(float(command[0]))
        return held

    def act(self, wanted: float, measured: float | None = 0.0, new: bool = True) -> float | None:
        if new:
            self.guard.heard(self.now_s)
        where = None if measured is None else np.array([measured])
        command = self.guard.act(np.array([wanted]), where, self.now_s)
        return None if command is None else float(command[0])

    def repeat(self) -> float | None:
        command = self.guard.repeat(self.now_s)
        return None if command is None else float(command[0])
