"""Motions that nobody commands, and the clock that jumps beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.tasks.motions import FASTEST_HZ, Motions, ahead_s

MOTIONS = Motions(seed=3, joints=2, state_dim=4, goal_dim=3, amplitude=0.1, rate_hz=30.0, episode_steps=300)


def test_seed_episode_and_step_determine_what_is_shown() -> None:
    shown = MOTIONS.at(5, 7)
    assert [part.shape for part in shown] == [(2,), (4,), (3,)]
    for again, part in zip(MOTIONS.at(5, 7), shown, strict=True):
        np.testing.assert_array_equal(again, part)
    for other in (MOTIONS.at(6, 7), replace(MOTIONS, seed=4).at(5, 7)):
        assert all(np.all(there != here) for there, here in zip(other, shown, strict=True))


def test_the_goal_stays_and_all_else_moves_within_the_amplitude() -> None:
    rows = [MOTIONS.at(0, step) for step in range(300)]
    seen = np.array([[*positions, *state] for positions, state, _ in rows])
    assert np.all(np.abs(seen) <= 0.1)
    assert np.all(np.ptp(seen, axis=0) > 0.15)  # ten seconds have two periods of the slowest
    assert np.all(np.abs(np.diff(seen, axis=0)) <= 0.1 * 2 * np.pi * FASTEST_HZ / 30.0)
    assert len({tuple(goal) for _, _, goal in rows}) == 1
    assert np.all(np.abs(rows[0][2]) <= 0.1)


def test_episodes_have_their_steps() -> None:
    assert [MOTIONS.numbers(shown) for shown in (0, 299, 300)] == [(0, 0), (0, 299), (1, 0)]


@pytest.mark.parametrize(
    ("passed_s", "ahead"), [(0.0, 0.0), (2.9, 0.0), (3.0, -7.0), (5.9, -7.0), (6.0, 0.0)]
)
def test_the_clock_jumps_there_and_back(passed_s: float, ahead: float) -> None:
    assert ahead_s(passed_s, -7.0, 3.0) == ahead
