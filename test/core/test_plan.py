"""Late, doubled, out of order: of two actions for one step, the one asked for later is executed."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.core.plan import Plan

B, A, LAST = 3, 2, 12


@st.composite
def splices(draw: st.DrawFn) -> tuple[np.ndarray, int, int, np.ndarray]:
    """Actions (M, T, A) for some of three robots, their first step, when asked for, and for whom."""
    requested = draw(st.integers(0, LAST))
    first = requested + draw(st.integers(0, 3))
    horizon = draw(st.integers(0, 5))
    rows = np.array(draw(st.lists(st.booleans(), min_size=B, max_size=B)))
    # What a robot's target says at one step is always the same, so an action tells who asked, and when.
    encoded = np.float32(100 * requested + np.arange(first, first + horizon))
    actions = np.broadcast_to(encoded[None, :, None], (B, horizon, A)) + np.float32(0.25) * np.arange(A)
    return actions[rows].astype(np.float32), first, requested, rows


ARRIVALS = st.lists(splices(), max_size=12)


def spliced(arrivals: list[tuple[np.ndarray, int, int, np.ndarray]]) -> Plan:
    plan = Plan(B, A)
    for arrival in arrivals:
        plan.splice(*arrival)
    return plan


def requested_by(arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], robot: int, step: int) -> int:
    """Return when the newest action of a robot for a step was asked for; -1 without one."""
    return max(
        (
            requested
            for actions, first, requested, rows in arrivals
            if rows[robot] and first <= step < first + actions.shape[1]
        ),
        default=-1,
    )


def agrees(plan: Plan, arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], since: int) -> None:
    """Check a plan from a step on against the newest of everything that has come."""
    for step in range(since, LAST + 10):
        newest = [requested_by(arrivals, robot, step) for robot in range(B)]
        assert plan.age(step).tolist() == [np.inf if at < 0 else step - at for at in newest]
        nothing = [np.nan, np.nan]
        rows = [[100 * at + step, 100 * at + step + 0.25] if at >= 0 else nothing for at in newest]
        expected = np.array(rows, np.float32)
        np.testing.assert_array_equal(plan.at(step), expected)


@given(ARRIVALS, st.randoms(use_true_random=False))
def test_order_and_repetition_of_what_comes_do_not_matter(
    arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], random: Random
) -> None:
    shuffled = [*arrivals, *arrivals[: len(arrivals) // 2]]
    random.shuffle(shuffled)
    agrees(spliced(shuffled), arrivals, 0)


@given(ARRIVALS, ARRIVALS, st.integers(0, LAST))
def test_what_is_over_is_forgotten_and_what_comes_late_for_it_too(
    before: list[tuple[np.ndarray, int, int, np.ndarray]],
    after: list[tuple[np.ndarray, int, int, np.ndarray]],
    now: int,
) -> None:
    plan = spliced(before)
    plan.forget_before(now)
    for arrival in after:
        plan.splice(*arrival)
    agrees(plan, [*before, *after], now)
    for step in range(now):
        assert np.isinf(plan.age(step)).all()
        assert not plan.left(step).any()
        assert np.isnan(plan.at(step)).all()


@given(ARRIVALS, st.integers(0, LAST))
def test_the_latest_request_that_was_replied_to_is_known(
    arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], step: int
) -> None:
    for robot, since in enumerate(spliced(arrivals).since(step)):
        newest = max((encoded for _, _, encoded, rows in arrivals if rows[robot]), default=None)
        assert since == (np.inf if newest is None else step - newest)


@given(ARRIVALS, st.integers(0, LAST), st.integers(0, LAST + 10))
def test_at_age_and_left_agree(
    arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], now: int, step: int
) -> None:
    plan = spliced(arrivals)
    plan.forget_before(now)
    left = plan.left(step)
    for robot in range(B):
        for ahead in range(left[robot]):
            assert np.isfinite(plan.age(step + ahead)[robot])
        assert np.isinf(plan.age(step + left[robot])[robot])
    np.testing.assert_array_equal(np.isnan(plan.at(step)).any(axis=1), left == 0)


def test_an_action_given_out_stays_as_it_was() -> None:
    plan = Plan(1, 1)
    plan.splice(np.ones((1, 2, 1), np.float32), 0, 0)
    given_out = plan.at(0)
    given_out[:] = 9.0
    assert plan.at(0).tolist() == [[1.0]]
    before = plan.at(1)
    plan.splice(np.full((1, 1, 1), 5.0, np.float32), 1, 1)
    assert before.tolist() == [[1.0]]
    assert plan.at(1).tolist() == [[5.0]]


def test_of_two_replies_to_one_step_the_later_one_is_taken() -> None:
    """So a verdict corrects the draft that it is about."""
    plan = Plan(1, 1)
    for value in (1.0, 2.0):
        plan.splice(np.full((1, 1, 1), value, np.float32), 0, 0)
    assert plan.at(0).tolist() == [[2.0]]


@given(ARRIVALS, st.integers(0, LAST), st.integers(0, 4))
def test_what_comes_is_what_is_planned_as_far_as_it_goes(
    arrivals: list[tuple[np.ndarray, int, int, np.ndarray]], step: int, count: int
) -> None:
    plan = spliced(arrivals)
    coming = plan.coming(step, count)
    assert coming.shape == (B, count, A)
    for ahead in range(count):
        planned = np.where(plan.left(step)[:, None] > ahead, plan.at(step + ahead), np.float32(np.nan))
        np.testing.assert_array_equal(coming[:, ahead], planned)
