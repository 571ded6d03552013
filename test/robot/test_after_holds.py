"""A robot whose plans are outdated after a hold, with the guard between loop and arm, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.safety.commands import Outgoing
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission
from test.robot.conftest import PERIOD_S, Robot
from test.robot.simulated import SimulatedLink, planned

HORIZON = 8


class Guarded:
    """A `Commander` with a guard, in the link's time."""

    def __init__(self, link: SimulatedLink, size: int) -> None:
        self._link = link
        names = [f"joint_{place}" for place in range(size)]
        self.permission = Permission(False, 0.5)
        envelope = Envelope(Limits.from_fields(names, {}), "positions", PERIOD_S)
        self.guard = Guard(envelope, GuardConfig(PERIOD_S, 0.5), self.permission, link.now_s)
        self.guard.start(link.now_s)

    def observed(self) -> None:
        self.guard.observed(self._link.now_s)

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        if action is None:
            self.guard.withhold(self._link.now_s)
            return Outgoing()
        return Outgoing(action=self.guard.act(action.astype(float), None, self._link.now_s))

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        return outgoing.action

    def repeat(self, observation: Observation) -> None:
        self.guard.repeat(self._link.now_s)

    def resumes(self) -> bool:
        return self.guard.resumes(self._link.now_s)

    def commanded(self) -> None:
        return None


class Held(Robot):
    """A robot that executes plans, and is held without one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.guarded = Guarded(self.link, self.policy.signature.action_dim)
        self.loop._commands = self.guarded

    def step(self, steps: range) -> list[StepRecord]:
        for step in steps:
            self.see(1, step)
            self.pass_time(PERIOD_S)
            self.guarded.guard.brake_if_held(self.link.now_s)
        return [self.record_of(step) for step in steps]

    def stop(self) -> None:
        """The operator stops the robot for a while."""
        self.guarded.permission.set_enabled(False, self.link.now_s)
        for _ in range(10):
            self.guarded.guard.brake_if_held(self.link.now_s)
            self.link.now_s += 0.01
        self.guarded.permission.set_enabled(True, self.link.now_s)

    def stand(self) -> None:
        """No observation arrives for too long."""
        for _ in range(20):
            self.pass_time(PERIOD_S)
            self.guarded.guard.brake_if_held(self.link.now_s)


@pytest.fixture
def held(fixed_policy: Callable[..., Any]) -> Held:
    robot = Held(fixed_policy([[0.7, 0.1, 0.1, 0.1], [0.25] * 4]), "always", limit=0, plans=HORIZON)
    robot.connect()
    return robot


def numbers(records: list[StepRecord]) -> list[set[float]]:
    return [set(record.action) for record in records]


def plans(first: int, steps: range) -> list[set[float]]:
    """Return the actions that a plan per step means, each of the step before."""
    return [{planned(first + place, step)} for place, step in enumerate(steps)]


@pytest.mark.parametrize("cause", [Held.stop, Held.stand])
def test_a_robot_without_a_plan_gets_one_after_a_hold(held: Held, cause: Callable[[Held], None]) -> None:
    cause(held)
    records = held.step(range(4))
    assert [record.reason for record in records] == [Reason.FALLBACK_LIMIT] + [Reason.NONE] * 3
    assert numbers(records)[1:] == plans(1, range(1, 4))


@pytest.mark.parametrize("cause", [Held.stop, Held.stand])
def test_a_hold_costs_the_plan_from_before_and_one_step(held: Held, cause: Callable[[Held], None]) -> None:
    held.step(range(3))
    cause(held)
    records = held.step(range(3, 7))
    assert [record.reason for record in records] == [Reason.FALLBACK_LIMIT] + [Reason.NONE] * 3
    assert numbers(records)[1:] == plans(4, range(4, 7))
