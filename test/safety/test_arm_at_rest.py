"""An arm that reaches each command within its period, and then stands: gaps, stalls and stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import RESTS, Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_path
from adahi_ros.safety.permission import Permission
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot

VELOCITY, ACCELERATION = 2.0, 8.0
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["act"] * 6 + ["true", "false", "stop", "start", "withhold"]),
        st.one_of(st.sampled_from([1, 1, 1, 2, 3, 12, 40]), st.integers(1, 60)),  # looks, once a period
        st.booleans(),  # nothing at all happens meanwhile: the node stood still
        st.floats(0.0, 0.99),  # of a period, before the next
        st.floats(-3.0, 3.0),
    ),
    max_size=40,
)


class Arm(Robot):
    """Goes to each command in a straight line within one period, and stands there."""

    def __init__(self, velocity: float = VELOCITY, acceleration: float = ACCELERATION) -> None:
        self.limits = velocity, acceleration
        limit = {"velocity": velocity, "acceleration": acceleration, "max_step": 0.5, "following": 10.0}
        super().__init__("positions", limit)
        self.put_s, self.position, self.speed = -1.0, 0.0, 0.0

    def take(self, command: np.ndarray | None, holds: bool) -> None:
        """Check what a command asks of the arm; holds may not move one that stands."""
        if command is None:
            return
        elapsed_s = self.now_s - self.put_s
        target = float(command[0])
        moved = target - self.position
        stands = elapsed_s >= RESTS * PERIOD_S
        before = 0.0 if stands else self.speed
        interval_s = min(elapsed_s, PERIOD_S)
        velocity, acceleration = self.limits
        assert abs(moved) <= velocity * interval_s + 1e-9
        if holds and stands:
            assert moved == 0.0  # a stop never starts a motion
        if interval_s > 0.0:
            speed = moved / interval_s
            if elapsed_s > PERIOD_S:  # it has begun to stand: its mean speed is left
                mean = before * PERIOD_S / elapsed_s
                before = float(np.clip(speed, min(0.0, mean), max(0.0, mean)))
            assert abs(speed - before) <= acceleration * interval_s + 1e-9
            self.speed = speed
        self.position, self.put_s = target, self.now_s

    def move(self, wanted: float) -> None:
        self.guard.observed(self.now_s)
        command = self.guard.act(np.array([wanted]), np.array([self.position]), self.now_s)
        self.take(command, holds=False)

    def look(self) -> None:
        self.take(self.guard.brake_if_held(self.now_s), holds=True)


@settings(max_examples=500)
@given(EVENTS)
def test_gaps_stalls_and_stops_keep_speed_and_acceleration_within_limits(events: Any) -> None:
    arm = Arm()
    arm.move(0.0)
    for kind, periods, stalled, part, wanted in events:
        for _ in range(1 if stalled else periods):
            arm.now_s += periods * PERIOD_S if stalled else PERIOD_S
            if not stalled:
                arm.look()
        arm.now_s += part * PERIOD_S
        if kind == "act":
            arm.move(wanted)
        elif kind in ("true", "false"):
            arm.press(kind == "true")
            arm.look()
        elif kind == "withhold":
            arm.guard.observed(arm.now_s)
            arm.take(arm.guard.withhold(arm.now_s), holds=True)
        elif kind == "start":
            arm.guard.start(arm.now_s)
        else:
            arm.guard.stop()
            arm.look()


@pytest.mark.parametrize("cause", ["silence", "gap", "deadman"])
def test_an_arm_at_full_speed_that_stands_is_not_moved_by_the_hold(cause: str) -> None:
    arm = Arm()
    for _ in range(20):
        arm.now_s += PERIOD_S
        arm.move(9.0)
    assert arm.speed == pytest.approx(VELOCITY)
    reached = arm.position
    arm.now_s += HOLD_AFTER_S + PERIOD_S if cause == "silence" else 2 * PERIOD_S
    if cause == "gap":
        arm.move(9.0)
        assert arm.position - reached <= ACCELERATION * PERIOD_S**2 + 1e-9
        return
    if cause == "deadman":
        arm.press(False)
    for _ in range(30):
        arm.look()
        arm.now_s += PERIOD_S
    assert arm.position == reached


@pytest.mark.parametrize("name", ["ur5e", "so101", "franka_panda"])
def test_shipped_arms_stand_through_a_hold_for_silence(name: str) -> None:
    path = limits_path(name)
    names = joints_of(path)
    limits = load_limits(path, names)
    guard = Guard(
        Envelope(limits, "positions", PERIOD_S),
        GuardConfig(PERIOD_S, HOLD_AFTER_S),
        Permission(False, 0.5),
        0.0,
    )
    guard.start(0.0)
    low = np.where(np.isfinite(limits.position_low), limits.position_low, -3.0)
    at, now_s = low.copy(), 0.0
    for _ in range(15):
        guard.observed(now_s)
        command = guard.act(np.full(len(names), 3.0), at, now_s)
        assert command is not None
        at, now_s = command, now_s + PERIOD_S
    now_s += HOLD_AFTER_S
    for _ in range(30):
        now_s += PERIOD_S
        held = guard.brake_if_held(now_s)
        assert held is None or held.tolist() == at.tolist()


def joints_of(path: Path) -> list[str]:
    import yaml

    return [name for name in yaml.safe_load(path.read_text())["limits"] if name != "default"]
