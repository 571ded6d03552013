"""A period that grows by one and halves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_ros.core.signature import Observations
from adahi_ros.gates.adaptive import AdaptiveAgeGate
from adahi_ros.gates.interface import GateContext, PlanContext

HORIZON = 16


def follow(gate: AdaptiveAgeGate, jumps: list[float], horizon: int = HORIZON) -> list[int]:
    """Ask whenever the score is above 1; plans lie so far from the one before; return the ages of asking."""
    ages, value, age, step = [], 0.0, 0.0, 1
    plans = iter(jumps)
    gate.score(context(0, np.inf, value, 0))
    while True:
        age += 1
        left = horizon - int(age)
        if gate.score(context(step, age, value, left))[0] > 1.0:
            ages.append(int(age))
            jump = next(plans, None)
            if jump is None:
                return ages
            value, age = value + jump, 0.0
        step += 1


def context(step: int, age: float, value: float, left: int) -> GateContext:
    nothing, one = np.zeros(1), np.zeros((1, 2))
    course = PlanContext(one, one, np.full((1, max(left, 1), 2), value), np.array([left]))
    observations = Observations({}, {})
    ages = np.array([age])
    return GateContext(step, {}, observations, None, nothing, ages, nothing, None, course, step == 0)


def test_the_period_grows_by_one_while_plans_agree_and_otherwise_halves() -> None:
    gate = AdaptiveAgeGate(tolerance=0.5, first=4)
    assert follow(gate, [0.1, -0.4, 0.1, 2.0, 0.2, 0.2]) == [4, 5, 6, 7, 3, 4, 5]  # 7 / 2


def test_the_period_stays_from_one_step_to_where_plans_can_be_compared() -> None:
    assert max(follow(AdaptiveAgeGate(), [0.0] * 40)) == HORIZON - 2
    assert follow(AdaptiveAgeGate(), [9.0] * 6)[-2:] == [1, 1]
    assert follow(AdaptiveAgeGate(), [0.0] * 6, horizon=4) == [2] * 7


def test_without_a_plan_it_asks_and_an_episode_begins_again() -> None:
    gate = AdaptiveAgeGate(first=3)
    assert np.isinf(gate.score(context(0, np.inf, 0.0, 0))).all()
    follow(gate, [0.0] * 5)
    assert gate.period[0] == 8
    gate.score(context(0, np.inf, 0.0, 0))
    assert gate.period[0] == 3


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"tolerance": 0.0}, "tolerance: 0.0, must be above 0 and finite"),
        ({"first": 0.5}, "first: 0.5, must be at least 1 and finite"),
    ],
)
def test_what_cannot_be_is_reported(arguments: dict[str, float], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        AdaptiveAgeGate(**arguments)
