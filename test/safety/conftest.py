"""A guard of one entry, with the time in hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from adahi_ros.safety.command_limits import Judge
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.intervention import Admitted
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission, Press

PERIOD_S = 0.05
HOLD_AFTER_S = 0.5
LOW, HIGH, SPEED = -1.0, 1.0, 0.5
MARGIN = 0.2  # a robot may be measured so far outside, and be held there
GARBAGE = st.one_of(
    st.floats(-2.0, 2.0), st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324])
)


def listed(values: np.ndarray | None) -> list[float]:
    """Return what an array has, which must be there."""
    assert values is not None
    numbers: list[float] = values.tolist()
    return numbers


def sent(admitted: Admitted) -> np.ndarray:
    assert admitted.action is not None
    return admitted.action


def limits_of(entries: int = 1, **given: Any) -> Limits:
    """Return the same limits of several entries; `position` is a pair."""
    if "position" in given:
        given["position_low"], given["position_high"] = given.pop("position")
    names = [f"joint_{index}" for index in range(entries)]
    return Limits.from_fields(names, dict.fromkeys(names, given))


class Guarded:
    """A guard with one entry that was not started, the only publisher on `enable`, and the time."""

    def __init__(
        self,
        field: str,
        limit: dict[str, float],
        require_enable: bool = False,
        enable_timeout_s: float = 0.5,
        judges: Mapping[str, Judge] = MappingProxyType({}),
    ) -> None:
        self.now_s = 100.0
        self.published = 0
        self.permission = Permission(require_enable, enable_timeout_s)
        self.permission.publishers.note_publishers(frozenset(), None, self.now_s)
        envelope = Envelope(Limits.from_fields(["a"], {"a": limit}), field, PERIOD_S)
        config = GuardConfig(PERIOD_S, HOLD_AFTER_S)
        self.guard = Guard(envelope, config, self.permission, self.now_s, judges)

    def publish(self, value: bool, age_s: float = 0.0) -> None:
        """Receive a message on `enable`."""
        self.published += 1
        self.permission.publishers.note_publishers(frozenset((b"deadman",)), None, self.now_s)
        self.permission.receive(Press(value, self.now_s - age_s, age_s, self.published), self.now_s)


class Robot(Guarded):
    """A guard that was started."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.guard.start(self.now_s)
        self.press = self.publish

    def happen(self, what: str) -> None:
        """Let the operator enable or stop the robot, or start it."""
        if what == "start":
            self.guard.start(self.now_s)
        else:
            self.press(what == "allow")

    def wait(self, periods: int = 1) -> list[float]:
        """Let time pass; return what holds the robot meanwhile."""
        held = []
        for _ in range(periods):
            self.now_s += PERIOD_S
            command = self.guard.brake_if_held(self.now_s)
            if command is not None:
                held.append(float(command[0]))
        return held

    def act(self, wanted: float, measured: float | None = 0.0, new: bool = True) -> float | None:
        if new:
            self.guard.observed(self.now_s)
        where = None if measured is None else np.array([measured])
        command = self.guard.act(np.array([wanted]), where, self.now_s)
        return None if command is None else float(command[0])

    def repeat(self) -> float | None:
        command = self.guard.repeat(self.now_s)
        return None if command is None else float(command[0])
