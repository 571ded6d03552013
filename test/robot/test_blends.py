"""Plans that overlap, blended: what several replies make of the action for one step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.plan import BLENDS, ENSEMBLE_RATE, LATEST, Plan
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.interface import Actor
from adahi_ros.robot.controller import Controller

STEP = 5
VALUES = st.lists(st.floats(-10.0, 10.0, width=32), min_size=1, max_size=6)
NAMES = st.sampled_from(sorted(BLENDS))


def plan_of(values: list[float], name: str) -> Plan:
    """Return a plan of one robot whose replies, one asked for at each step, say these values for STEP."""
    plan = Plan(1, 1, BLENDS[name])
    for requested, value in enumerate(values):
        plan.splice(np.full((1, STEP + 1 - requested, 1), value, np.float32), requested, requested)
    return plan


@given(VALUES)
def test_the_latest_reply_replaces_the_others(values: list[float]) -> None:
    np.testing.assert_array_equal(plan_of(values, LATEST).at(STEP), [[np.float32(values[-1])]])


def test_a_crossfade_goes_over_from_the_present_step_but_not_with_goals() -> None:
    plan = Plan(1, 2, BLENDS["crossfade"], at_once=[1])
    plan.splice(np.zeros((1, 5, 2), np.float32), 0, 0)
    plan.forget_before(1)
    plan.splice(np.full((1, 4, 2), 3.0, np.float32), 1, 1)
    np.testing.assert_allclose(plan.ahead(1, 4)[0], [[1.0, 3.0], [2.0, 3.0], [3.0, 3.0], [3.0, 3.0]])


@given(VALUES)
def test_an_ensemble_weighs_all_replies_and_the_oldest_most(values: list[float]) -> None:
    weights = np.exp(-ENSEMBLE_RATE * np.arange(len(values)))
    expected = np.average(values, weights=weights)
    np.testing.assert_allclose(plan_of(values, "temporal_ensemble").at(STEP), [[expected]], atol=1e-4)


@given(VALUES, NAMES, st.integers(0, 5))
def test_a_reply_that_comes_again_changes_nothing(values: list[float], name: str, again: int) -> None:
    plan, again = plan_of(values, name), min(again, len(values) - 1)
    before = plan.at(STEP)
    plan.splice(np.full((1, STEP + 1 - again, 1), values[again], np.float32), again, again)
    np.testing.assert_array_equal(plan.at(STEP), before)
    assert plan.age(STEP).tolist() == [STEP + 1 - len(values)]


class Still(ActionRange, Actor):
    """Of a robot that goes on by its plans: O 1, A 1, T 3."""

    def __init__(self) -> None:
        super().__init__(np.full(1, -100.0), np.full(1, 100.0))
        self.signature = Signature(1, 3, 1, (Feature(OBSERVATION, 1),), ())
        self.digest, self.draws, self.action_scale = "still", 0, np.ones(1, np.float32)


@pytest.mark.parametrize(("blend", "done"), [(LATEST, [0.0, 3.0]), ("crossfade", [0.0, 1.0])])
def test_a_reply_within_the_step_is_blended_before_it_is_done(blend: str, done: list[float]) -> None:
    made = Controller(Still(), ControllerConfig(ThresholdedGate("always")), "plan", blend=blend)
    executed = []
    for value in (0.0, 3.0):
        reply = Verdict(np.full((1, 3, 1), value, np.float32), np.zeros((1, 0), dtype=bool))
        step = made.begin({OBSERVATION: np.zeros((1, 1), np.float32)})
        executed.append(float(made.finish(step, reply)[0, 0]))
    assert executed == done
