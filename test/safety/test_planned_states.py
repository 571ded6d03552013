"""Which states of a plan are checked for collisions, and how long the arm may go on without an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.safety.planned_states import VALID, PlannedStates, StateCheck

PATIENCE_S, LASTS_S = 0.2, 1.0


def plan(states: PlannedStates, *places: float, now_s: float = 0.0) -> None:
    """Plan places of one joint, .1 s apart."""
    times_s = now_s + 0.1 * np.arange(1, len(places) + 1)
    states.plan(times_s, np.array(places)[:, None])


@pytest.fixture
def states() -> PlannedStates:
    return PlannedStates(1.0, 0.05, LASTS_S, PATIENCE_S)


def test_states_are_checked_in_order_and_once_where_they_are_near(states: PlannedStates) -> None:
    plan(states, 0.0, 0.04, 0.2, 0.22)
    asked = []
    while (state := states.unknown(0.0)) is not None:
        asked.append(state[0])
        states.checked(StateCheck(state, 0.0, ""))
    assert asked == [0.0, 0.2]
    assert states.validity(0.05) == VALID


def test_one_state_that_touches_something_holds_the_arm(states: PlannedStates) -> None:
    plan(states, 0.0, 0.2)
    states.checked(StateCheck(np.array([0.2]), 0.0, "hand touches table"))
    assert states.validity(0.0) == "hand touches table"
    plan(states, 0.0, -0.2)
    assert states.validity(0.0) == VALID


def test_without_an_answer_the_arm_goes_on_for_as_long_as_it_may(states: PlannedStates) -> None:
    assert states.validity(0.0) == VALID  # nothing is planned
    plan(states, *np.arange(20))
    assert states.validity(PATIENCE_S) == VALID
    assert states.validity(PATIENCE_S + 0.01) == "MoveIt did not answer for 0.2 s"
    patient = PlannedStates(1.0, 0.05, LASTS_S, math.inf)
    assert patient.validity(0.0) == VALID
    plan(patient, *np.arange(20))
    assert patient.validity(1.5) == VALID


def test_a_check_counts_for_a_while(states: PlannedStates) -> None:
    plan(states, *[0.0] * 30)
    states.checked(StateCheck(np.array([0.0]), 0.0, ""))
    assert states.unknown(0.5 * LASTS_S) is None
    assert states.unknown(0.5 * LASTS_S + 0.01) is not None
    assert states.validity(LASTS_S) == VALID
    assert states.validity(LASTS_S + PATIENCE_S + 0.01) != VALID


def test_states_that_are_passed_or_far_ahead_are_not_checked(states: PlannedStates) -> None:
    plan(states, *np.arange(20))
    first = states.unknown(0.25)
    assert first is not None
    assert first[0] == 2.0
    for place in range(2, 12):
        states.checked(StateCheck(np.array([float(place)]), 0.25, ""))
    assert states.unknown(0.25) is None


def test_another_arm_begins_with_nothing_known(states: PlannedStates) -> None:
    plan(states, 0.0)
    states.checked(StateCheck(np.array([0.0]), 0.0, ""))
    states.plan(np.array([0.1]), np.zeros((1, 2)))
    assert states.unknown(0.0) is not None
