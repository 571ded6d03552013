"""The table of holds: what lasts, what waits, and what only a press ends."""

from __future__ import annotations

import pytest

from adahi_ros.safety.holds import TABLE, Event, Hold, Holds, State

LASTING = {
    Hold.SHARED: (Event.COMMANDED_TWICE, Event.COMMANDED_ALONE),
    Hold.MEASURED: (Event.MEASURED_TWICE, Event.MEASURED_ONCE),
    Hold.JUMPED: (Event.JUMPS, Event.STEADY),
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
