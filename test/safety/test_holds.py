"""The table of holds: what lasts, what waits, and what only a press ends."""

from __future__ import annotations

import pytest

from adahi_ros.safety.holds import TABLE, Event, Hold, Holds, State

LASTING = {
    Hold.SHARED: (Event.COMMANDED_TWICE, Event.COMMANDED_ALONE),
    Hold.MEASURED: (Event.MEASURED_TWICE, Event.MEASURED_ONCE),
    Hold.JUMPED: (Event.JUMPS, Event.STEADY),
    Hold.UNLIKE: (Event.UNLIKE, Event.LIKE),
    Hold.DRIVER: (Event.DRIVER_FAULT, Event.DRIVER_RUNS),
}
PRESSES = (Event.PRESS, Event.AGAIN, Event.ENABLE)


@pytest.mark.parametrize("press", PRESSES)
@pytest.mark.parametrize("hold", LASTING)
def test_a_fault_holds_until_it_has_ended_and_a_press_follows(hold: Hold, press: Event) -> None:
    begins, ends = LASTING[hold]
    holds = Holds()
    holds.happen(begins, "a fault")
    holds.happen(press)
    assert holds[hold] is State.LASTS
    assert holds.text(hold) == "a fault"
    holds.happen(ends)
    assert holds[hold] is State.PRESS
    assert holds.text(hold) == "a fault; press enable afresh"
    for other in set(Event) - {*PRESSES, begins, Event.DRIVER_UNKNOWN}:
        holds.happen(other)
        assert holds[hold] is State.PRESS, other
    holds.happen(press)
    assert holds[hold] is State.CLEAR
    assert holds.text(hold) == ""


@pytest.mark.parametrize("hold", LASTING)
def test_the_end_of_a_fault_that_never_began_changes_nothing(hold: Hold) -> None:
    holds = Holds()
    before = holds[hold]
    holds.happen(LASTING[hold][1])
    assert holds[hold] is before is State.CLEAR


def test_every_hold_begins_and_ends_by_some_event() -> None:
    for hold, rows in TABLE.items():
        after = {row[2] for row in rows}
        assert State.CLEAR in after, hold
        assert after - {State.CLEAR, State.GRANTED}, hold
    assert set(TABLE) == set(Hold)


def test_a_node_that_starts_is_held_until_it_is_active_and_someone_presses() -> None:
    holds = Holds()
    assert holds[Hold.DEACTIVATED] is State.WAITS
    assert holds[Hold.STARTED] is State.PRESS
    assert holds[Hold.DISABLED] is State.WAITS


def test_an_activation_begins_with_a_fresh_observation() -> None:
    holds = Holds()
    holds.happen(Event.NOT_OBSERVED)
    holds.happen(Event.ACTIVATE)
    assert holds[Hold.STALE] is State.CLEAR


def test_a_stop_alone_is_nothing_else_that_needs_a_press() -> None:
    holds = Holds()
    holds.happen(Event.ENABLE)
    assert not holds.needs_press(ignored=())
    holds.happen(Event.DISABLE)
    assert holds[Hold.STOPPED] is State.PRESS
    assert not holds.needs_press(ignored=())
    holds.happen(Event.JUMPS)
    assert holds.needs_press(ignored=())
    assert not holds.needs_press(ignored={Hold.JUMPED})
    holds.happen(Event.STEADY)
    assert holds.needs_press(ignored=())
