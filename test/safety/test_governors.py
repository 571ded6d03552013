"""One entry of a commanded position, beside the envelope that uses it."""

from __future__ import annotations

import math

import pytest

from adahi_ros.safety.governors import PositionGovernor
from adahi_ros.safety.limits import Limits

STEP, SPEED, ACCELERATION, INTERVAL_S = 0.2, 1.0, 5.0, 0.1
LIMIT = {
    "position_low": -3.0,
    "position_high": 3.0,
    "velocity": SPEED,
    "acceleration": ACCELERATION,
    "max_step": STEP,
}


def governor(at: float, speed: float = 0.0, **limit: float) -> PositionGovernor:
    """Return a governor that was commanded to a position, at a speed of -1, 0 or 1."""
    made = PositionGovernor(Limits.from_fields(["a"], {"a": {**LIMIT, **limit}}), 0, INTERVAL_S)
    made.begin(at - 0.15 * speed)
    if speed:
        made.admit(at + speed, at - 0.15 * speed, INTERVAL_S, set())
        made.admit(at + speed, at - 0.1 * speed, INTERVAL_S, set())
    return made


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize(
    ("speed", "off", "strays"),
    [
        (0.0, STEP - 0.01, False),
        (0.0, STEP + 0.01, True),
        # Within an interval it brakes from 1 to .5, and moves by .05 more.
        (1.0, STEP - 0.06, False),
        (1.0, STEP - 0.04, True),
        (1.0, -STEP + 0.01, False),
        (1.0, -STEP - 0.01, True),
    ],
)
def test_it_strays_where_it_is_now_or_soon_too_far_from_its_command(
    side: float, speed: float, off: float, strays: bool
) -> None:
    made = governor(1.0, side * speed)
    commanded = made.admit(1.0 + side * speed, 1.0, 0.0, set())
    assert made.strays(commanded - side * off, INTERVAL_S) is strays


def test_where_position_or_command_is_unknown_nothing_strays() -> None:
    assert not governor(1.0).strays(math.nan, INTERVAL_S)
    made = governor(1.0)
    made.reset()
    assert not made.strays(5.0, INTERVAL_S)


@pytest.mark.parametrize(("measured", "at"), [(0.3, 0.3), (math.nan, 1.0)])
def test_it_begins_at_rest_where_it_is_measured_or_was_commanded(measured: float, at: float) -> None:
    made = governor(1.0)
    made.begin(measured)
    assert made.at_rest
    assert made.hold(math.nan, INTERVAL_S) == at
    moving = governor(1.0, 1.0)
    assert not moving.at_rest
    moving.begin(measured)
    assert moving.at_rest


def test_a_reached_command_has_no_speed_left() -> None:
    made = governor(1.0, 1.0)
    made.slow(0.5, reached=True, unknown=False)
    assert made.at_rest
    made = governor(1.0, 1.0)
    made.slow(0.5, reached=False, unknown=False)
    assert not made.at_rest


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_outside_it_goes_no_further_from_where_it_is_measured(side: float) -> None:
    made = governor(side * 3.5)
    at = made.admit(0.0, side * 4.0, INTERVAL_S, set())
    assert at == side * 3.5


def test_what_is_unlimited_is_reached_in_no_time() -> None:
    made = governor(0.0, velocity=math.inf, acceleration=math.inf, max_step=math.inf)
    assert made.admit(2.5, 0.0, 0.0, set()) == 2.5
