"""What a controller's own state says of it."""

from __future__ import annotations

import math

import pytest

from adahi_ros.safety.controller_report import SILENT_LOOKS, SILENT_S, STATES, ControllerReport

JOINTS, PERIOD_S = ("pan", "tilt"), 0.05


def report() -> ControllerReport:
    return ControllerReport("/arm", JOINTS)


def test_a_controller_with_all_joints_at_full_speed_has_no_fault() -> None:
    found = report()
    found.take(["other", *JOINTS], 1.0, 0.0, 0.0)
    assert found.fault == ""


def test_a_joint_that_the_controller_lacks_is_named() -> None:
    found = report()
    found.take(["pan"], 0.5, 9.0, 0.0)
    assert found.fault == "/arm has no joint tilt; it has pan"
    found.take(JOINTS, 1.0, None, 0.0)
    assert found.fault == ""


@pytest.mark.parametrize(
    ("scalings", "share"),
    [
        ([0.5], "50%"),
        ([1.05], "105%"),
        ([1.005], ""),
        ([1.0, 0.0], "0%"),
        ([0.3, math.nan], "nan%"),
        ([0.0, 0.0], ""),
    ],
)
def test_another_speed_than_full_is_a_fault_of_those_that_scale(scalings: list[float], share: str) -> None:
    found = report()
    for scaling in scalings:
        found.take(JOINTS, scaling, 0.0, 0.0)
    assert found.fault == (share and f"/arm runs at {share} of its speed, must be 100 %")


@pytest.mark.parametrize(("ahead_s", "after"), [(0.02, 1), (-0.03, STATES), (0.005, None), (-0.015, None)])
def test_a_clock_ahead_counts_at_once_and_one_behind_after_many(ahead_s: float, after: int | None) -> None:
    found, faults = report(), []
    for _ in range(2 * STATES):
        found.take(JOINTS, 1.0, ahead_s, 0.0)
        faults.append(found.fault)
    way = "ahead" if ahead_s > 0.0 else "behind"
    said = f"/arm has a clock that is {1e3 * abs(ahead_s):.0f} ms {way}; use chrony"
    assert faults == [
        said if after is not None and number >= after else "" for number in range(1, 2 * STATES + 1)
    ]


def test_late_states_are_no_clock_behind_where_one_was_in_time() -> None:
    found = report()
    for number in range(STATES):
        found.take(JOINTS, 1.0, 0.0 if number == 7 else -1.0, 0.0)
    assert found.fault == ""


def test_a_controller_that_publishes_no_more_is_silent() -> None:
    found, silent = report(), []
    assert not found.silent(9.0)  # it never published
    for number in range(3):
        found.take(JOINTS, 1.0, 0.0, number * PERIOD_S)
    last_s = 2 * PERIOD_S
    for look in range(1, 20):
        silent.append(
            (found.silent(last_s + look * PERIOD_S), look * PERIOD_S > SILENT_S, look > SILENT_LOOKS)
        )
    assert [each for each, _, _ in silent] == [late and looked for _, late, looked in silent]
    found.take(JOINTS, 1.0, 0.0, 2.0)
    assert not found.silent(2.0)


def test_a_controller_is_not_silent_while_this_process_stood_still() -> None:
    found = report()
    found.take(JOINTS, 1.0, 0.0, 0.0)
    assert [found.silent(60.0) for _ in range(SILENT_LOOKS + 1)] == [False] * SILENT_LOOKS + [True]


def test_a_slow_publisher_is_silent_later() -> None:
    found = report()
    for number in range(3):
        found.take(JOINTS, 1.0, 0.0, float(number))
    assert not any(found.silent(2.0 + look / 10) for look in range(50))
    assert found.silent(7.1)


def test_without_a_time_to_compare_silence_means_nothing() -> None:
    found = report()
    found.take(JOINTS, 1.0, None, 0.0)
    assert not any(found.silent(9.0) for _ in range(20))
