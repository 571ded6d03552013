"""Of a draft the longest beginning that is near to the target's plan stands; the rest is the target's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test.papers.still_target import NO_DRAWS, outcome_of, scaled

from adahi_lab.papers.heisd.prefix import Prefix
from adahi_ros.core.proposal import Proposal

SCALE = np.array([1.0, 10.0, 0.1], np.float32)


def verdict(off: np.ndarray, within: float = 0.3, horizon: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return actions (T, 3), and what is accepted, of a draft so far off (C, 3) a plan of zeros."""
    target = Proposal(np.zeros((1, horizon, 3), np.float32))
    draft = Proposal((off * SCALE)[None].astype(np.float32))
    outcome = scaled(Prefix(within), SCALE).verify(draft, target, NO_DRAWS)
    return outcome.actions[0], outcome.accepted[0]


def test_what_comes_after_the_first_that_is_far_is_the_targets() -> None:
    off = np.full((4, 3), 0.1)
    off[2, 1] = 0.4
    actions, accepted = verdict(off)
    assert accepted.tolist() == [True, True, False, False]
    np.testing.assert_allclose(actions[:2], off[:2] * SCALE, rtol=1e-6)
    np.testing.assert_array_equal(actions[2:], 0.0)


@given(st.integers(0, 2**32 - 1), st.integers(0, 8), st.floats(0.0, 2.0))
def test_what_is_executed_is_never_further_off_than_allowed(seed: int, count: int, within: float) -> None:
    draw = np.random.default_rng(seed)
    draft = (draw.normal(size=(4, count, 3)) * SCALE).astype(np.float32)
    plan = Proposal((0.3 * draw.normal(size=(4, 5, 3)) * SCALE).astype(np.float32))
    outcome = scaled(Prefix(within), SCALE).verify(Proposal(draft), plan, np.zeros((4, 0, 2)))
    assert outcome.actions.shape == plan.actions.shape
    assert (np.abs(outcome.actions - plan.actions) <= within * SCALE * (1 + 1e-6)).all()
    assert (np.diff(outcome.accepted.astype(int), axis=1) <= 0).all()
    for row, accepted in enumerate(outcome.accepted):
        kept = int(accepted.sum())
        np.testing.assert_array_equal(outcome.actions[row, :kept], draft[row, :kept])
        np.testing.assert_array_equal(outcome.actions[row, kept:], plan.actions[row, kept:])


def test_a_robot_that_proposes_nothing_gets_the_targets_plan() -> None:
    actions, accepted = verdict(np.zeros((0, 3)))
    assert accepted.tolist() == [False]
    np.testing.assert_array_equal(actions, 0.0)


@pytest.mark.parametrize(("count", "far", "stands"), [(4, 2, 2), (4, 0, 0), (3, 9, 3), (6, 9, 4)])
def test_a_robot_hears_what_stands_and_gets_the_rest(count: int, far: int, stands: int) -> None:
    drafted = np.full((count, 2), 0.1, np.float32)
    drafted[far:] = 0.9
    outcome, _ = outcome_of("prefix", Proposal(drafted[None]))
    assert outcome.verification is not None
    assert outcome.verification.accepted.sum() == stands
    expected = np.zeros((4, 2), np.float32)
    expected[:stands] = drafted[:stands]
    np.testing.assert_array_equal(outcome.verification.actions[0], expected)
