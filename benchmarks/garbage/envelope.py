"""Whether commands keep the limits, by arithmetic of its own: nothing here is the node's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

POSITION, VELOCITY, ACCELERATION = 0.15, 0.5, 10.0  # rad, rad/s, rad/s^2, of every joint
JITTER_S = 0.05  # between a node's look at its clock and its message
APART_S = 0.15  # more than a period, and no such jitter on a busy machine makes two commands nearer than that
ROUNDING = 1e-9
KEPT = 5


def limits_file(names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the file of the limits says that are checked here."""
    limit = {"position": [-POSITION, POSITION], "velocity": VELOCITY, "acceleration": ACCELERATION}
    return {"limits": {name: dict(limit) for name in names}}


@dataclass
class CommandWatch:
    """Looks at every command of one node, in the order of their coming.

    A command is to be reached in one control period. So from one to the next no joint goes further than
    its velocity times a period; over any time no further than its velocity times that time; and between
    commands that are a period apart, the step changes by no more than acceleration times period squared.

    Args:
        names: of the joints.
        period_s: of the control.
    """

    names: tuple[str, ...]
    period_s: float
    commands: int = 0
    compared: int = 0
    outside: list[str] = field(default_factory=list)
    _before: tuple[float, list[float]] | None = None
    _steps: list[float] | None = None
    _slowest: list[tuple[float, float]] = field(default_factory=list)

    def take(self, message: Any, info: dict[str, int]) -> None:
        """Look at a command; `info` says when it was sent."""
        self.commands += 1
        fault = self._malformed(message)
        if fault:
            self._note(fault)
            return
        positions, sent_s = list(message.points[0].positions), 1e-9 * info["source_timestamp"]
        for name, position in zip(self.names, positions, strict=True):
            if abs(position) > POSITION + ROUNDING:
                self._note(f"{name}: position {position}")
        self._over_time(sent_s, positions)
        if self._before is not None:
            self._from_before(sent_s, positions, *self._before)
        self._before = sent_s, positions

    def _malformed(self, message: Any) -> str:
        if tuple(message.joint_names) != self.names or len(message.points) != 1:
            return f"joints {list(message.joint_names)[:4]}, {len(message.points)} points"
        point = message.points[0]
        if len(point.positions) != len(self.names) or not all(map(math.isfinite, point.positions)):
            return f"positions {list(point.positions)[:4]}"
        if len(point.velocities) or len(point.accelerations) or len(point.effort):
            return "more than positions"
        reached_s = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        return "" if abs(reached_s - self.period_s) < 1e-6 else f"time_from_start {reached_s}"

    def _from_before(
        self, sent_s: float, positions: list[float], before_s: float, before: list[float]
    ) -> None:
        steps = [now - then for now, then in zip(positions, before, strict=True)]
        if max(map(abs, steps)) > VELOCITY * self.period_s + ROUNDING:
            self._note(f"steps {steps}, faster than {VELOCITY}")
        apart = sent_s - before_s > self.period_s + APART_S
        if apart and self._steps is not None:
            self.compared += 1
            changes = [abs(now - then) for now, then in zip(steps, self._steps, strict=True)]
            if max(changes) > ACCELERATION * self.period_s**2 + ROUNDING:
                apart_s = f"{sent_s - before_s:.3f} s apart"
                self._note(f"steps {steps} after {self._steps}, {apart_s}, more than {ACCELERATION}")
        self._steps = steps if apart else None

    def _over_time(self, sent_s: float, positions: list[float]) -> None:
        """Compare with every position before, by the one that leaves the least room in each direction."""
        ends = [(now - VELOCITY * sent_s, -now - VELOCITY * sent_s) for now in positions]
        if self._slowest:
            room = VELOCITY * (2 * self.period_s + JITTER_S)
            for name, now, least in zip(self.names, ends, self._slowest, strict=True):
                if any(end - start > room for end, start in zip(now, least, strict=True)):
                    self._note(f"{name}: faster than {VELOCITY} over several commands")
                    self._slowest = []
                    break
        least_before = self._slowest or ends
        self._slowest = [
            (min(now[0], least[0]), min(now[1], least[1]))
            for now, least in zip(ends, least_before, strict=True)
        ]

    def _note(self, fault: str) -> None:
        self.outside.append(f"command {self.commands}: {fault}")
