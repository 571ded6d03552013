"""Numbers in another unit, or of another joint, are noticed; an arm outside of what was learnt is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.core.learnt_units import beyond, unlike, unlike_in
from adahi_ros.core.signature import Feature, Quantity, Ranges

JOINTS = ("pan", "lift", "elbow", "flex", "roll", "gripper")
LOW = np.array([-45.0, -103.0, -40.0, 20.0, -60.0, 1.0])  # degrees, and 0 to 100, of an SO-101 that picks
HIGH = np.array([45.0, 30.0, 98.0, 100.0, 40.0, 60.0])
LEARNT = Ranges(tuple(LOW), tuple(HIGH))
ALLOWED = np.array([110.0, 100.0, 96.8, 95.0, 157.0, 100.0])
ALL_BUT_GRIPPER = np.array([1.0] * 5 + [0.0])
RAD = math.pi / 180.0


def robot(low: np.ndarray = -ALLOWED, high: np.ndarray = ALLOWED, units: tuple[int, ...] = ()) -> Quantity:
    return Quantity(JOINTS, units or (0, 0, 0, 0, 0, 1), low, high)


def said(values: np.ndarray, learnt: Ranges = LEARNT, units: tuple[int, ...] = ()) -> str:
    return unlike(robot(units=units), learnt, np.atleast_2d(values))


def some(count: int, beside: float = 0.0, seed: int = 3) -> np.ndarray:
    """Return values (count, 6) as far beside the range as said, in its widths."""
    wide = beside * (HIGH - LOW)
    return np.random.default_rng(seed).uniform(LOW - wide, HIGH + wide, (count, len(LOW)))


def test_an_arm_within_or_a_little_outside_of_what_was_learnt_is_normal() -> None:
    for beside in (0.0, 0.1, 0.25):
        assert {said(row) for row in some(1000, beside)} == {""}


def test_an_arm_at_zero_is_normal() -> None:
    assert said(np.zeros(6)) == ""


def test_the_issue_is_named_by_entry_value_range_and_unit() -> None:
    learnt = Ranges((-60.0, -10.0), (-20.0, 10.0))
    two = Quantity(("position.shoulder_lift", "position.roll"), (0, 0), *np.full((2, 2), np.nan))
    values = np.array([[-0.7, 0.1]])
    assert unlike(two, learnt, values) == (
        "position.shoulder_lift is -0.7; the policy learnt -60 to -20: rad instead of degrees?"
    )
    assert unlike_in((Feature("a", 1), Feature("state", 2)), LEARNT, {"state": two}, {}) == ""
    both = Ranges((0.0, *learnt.minimum), (1.0, *learnt.maximum))
    found = unlike_in((Feature("a", 1), Feature("state", 2)), both, {"state": two}, {"state": values})
    assert found.startswith("state: position.shoulder_lift is -0.7; ")


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (RAD, "rad instead of degrees"),
        (1.0 / RAD, "degrees instead of rad"),
        (0.01, "0 to 1 instead of 0 to 100"),
        (100.0, "0 to 100 instead of 0 to 1"),
        (0.001, "m instead of mm"),
        (1000.0, "mm instead of m"),
    ],
)
def test_another_unit_of_the_joints_is_noticed_and_named(factor: float, reason: str) -> None:
    found = [said(np.where(ALL_BUT_GRIPPER, factor * row, row)) for row in some(300)]
    assert all(found)
    named = np.mean([reason in each for each in found])
    assert named > 0.9 or factor == 100.0  # then `degrees instead of rad` is as likely


def test_another_unit_is_often_noticed_though_the_gripper_has_its_own() -> None:
    units = (0,) * 6  # one source of a contract without `apply`
    wires = np.where(ALL_BUT_GRIPPER, RAD, math.pi / 100) * some(300)
    assert np.mean(["rad instead of degrees" in said(wire, units=units) for wire in wires]) > 0.5


def test_swapped_joints_are_noticed_where_their_ranges_differ() -> None:
    for row in some(300):
        row[1], row[2] = 90.0, -95.0
        assert said(row).endswith("swapped with elbow?") or said(row).endswith("swapped with lift?")


def test_what_nothing_explains_is_noticed_only_far_away() -> None:
    ticks = np.array([2048.0, 900.0, 3100.0, 2800.0, 2048.0, 2000.0])  # of a servo
    assert said(ticks)
    assert said(np.array([-150.0, -100.0, 95.0, 70.0, 170.0, 2.0])) == ""


def test_a_joint_that_hardly_moved_may_be_elsewhere() -> None:
    still = Ranges((*LEARNT.minimum[:4], 88.0, 1.0), (*LEARNT.maximum[:4], 90.0, 60.0))
    for roll in (-90.0, 0.0, 45.0):
        assert said(np.array([0.0, -100.0, 95.0, 70.0, roll, 2.0]), still) == ""


def test_a_few_wild_samples_of_many_are_not_judged_by_their_caller_alone() -> None:
    rows = np.quantile(np.vstack([some(98), np.full((2, 6), 3000.0)]), (0.1, 0.5, 0.9), axis=0)
    assert said(rows) == ""
    assert said(RAD * rows, units=(0,) * 6) != ""


def test_samples_of_a_motion_show_a_unit_that_one_sample_does_not() -> None:
    around_zero = Ranges((-90.0,) * 6, (90.0,) * 6)
    motion = np.array([[-60.0] * 6, [0.0] * 6, [50.0] * 6])
    assert said(motion, around_zero) == said(motion[:1] * RAD, around_zero) == ""
    assert said(motion * RAD, around_zero).endswith("rad instead of degrees?")
    noise = 0.05 * np.array([[-1.0] * 6, [0.0] * 6, [1.0] * 6])
    assert said(noise, around_zero) == ""  # it stands at zero


def test_unknown_and_constant_zero_ranges_say_nothing() -> None:
    assert said(some(1)[0], Ranges()) == ""
    assert said(some(1)[0], Ranges((math.nan,) * 6, (math.nan,) * 6)) == ""
    assert said(some(1)[0], Ranges((0.0,) * 6, (0.0,) * 6)) == ""
    assert said(np.full(6, math.nan)) == ""
    assert said(RAD * some(1)[0], Ranges(q01=LEARNT.minimum, q99=LEARNT.maximum), (0,) * 6) != ""


def test_limits_may_be_wider_or_somewhat_narrower_than_what_was_learnt() -> None:
    for share in (4.0, 1.0, 0.7, 0.5):
        assert beyond(robot(-share * ALLOWED, share * ALLOWED), LEARNT) == ""
    assert beyond(robot(np.full(6, math.nan), np.full(6, math.nan)), LEARNT) == ""


def test_limits_in_another_unit_are_noticed() -> None:
    assert beyond(robot(-RAD * ALLOWED, RAD * ALLOWED, (0,) * 6), LEARNT) == (
        "flex: the policy learnt 20 to 100, the robot's limits allow -1.658 to 1.658: rad instead of degrees?"
    )
    ones = np.where(ALL_BUT_GRIPPER, ALLOWED, 1.0)
    found = beyond(robot(np.where(ALL_BUT_GRIPPER, -ALLOWED, 0.0), ones), LEARNT)
    assert found.startswith("gripper: the policy learnt 1 to 60, the robot's limits allow 0 to 1: ")
    assert "0 to 1 instead of 0 to 100" in found
