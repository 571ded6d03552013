from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_lab.tasks.ball import GRAVITY, ROLLING_SHARE, BallBalancing, BallExpert, BallParameters

STILL = BallParameters(disturbance_m_s2=0.0, rolling_damping_per_s=0.0)


def place(
    task: BallBalancing, position: list[float], velocity: list[float], tilt: list[float] | None = None
) -> None:
    """Put the ball of every episode somewhere; the tasks themselves only start at random."""
    count = len(task.done)
    task._position = np.tile(np.array(position), (count, 1))
    task._velocity = np.tile(np.array(velocity), (count, 1))
    task._tilt = np.tile(np.array(tilt or [0.0, 0.0]), (count, 1))


@pytest.mark.parametrize(
    ("tilt", "direction"), [([0.0, 0.1], [1.0, 0.0]), ([0.1, 0.0], [0.0, -1.0]), ([-0.2, 0.0], [0.0, 1.0])]
)
def test_a_ball_rolls_freely_with_five_sevenths_of_the_slope(
    tilt: list[float], direction: list[float]
) -> None:
    task = BallBalancing(STILL)
    place(task, [0.1, 0.1], [0.0, 0.0], tilt)
    steps = 5
    for _ in range(steps):
        task.step(np.array([tilt]))
    expected = ROLLING_SHARE * GRAVITY * np.sin(np.abs(tilt).max()) * np.array(direction)
    np.testing.assert_allclose(task.state[0, 2:] / (steps / 20.0), expected, atol=1e-9)


def test_success_needs_the_whole_hold_in_a_row_and_is_latched() -> None:
    task = BallBalancing(STILL)
    goal = task.goal[0].tolist()
    place(task, goal, [0.0, 0.0])
    for _ in range(STILL.hold_steps - 1):
        task.step(np.zeros((1, 2)))
    place(task, [0.0, 0.2], [0.0, 0.0])  # away for one step: the count starts again
    task.step(np.zeros((1, 2)))
    assert task.held_steps[0] == 0
    place(task, goal, [0.0, 0.0])
    for step in range(STILL.hold_steps):
        assert not task.success[0], f"after {step} steps"
        task.step(np.zeros((1, 2)))
    assert task.success[0]
    assert task.done[0]
    task.step(np.full((1, 2), 0.2))
    assert task.success[0]


def test_a_ball_that_leaves_the_plate_fails_for_good_and_stays_at_the_edge() -> None:
    task = BallBalancing()
    task.reset(0, range(4))
    for _ in range(100):
        task.step(np.tile([0.0, 0.2], (4, 1)))
    assert task.failed.all()
    assert task.done.all()
    assert not task.success.any()
    assert np.all(np.abs(task.state[:, :2]).max(axis=1) == task.parameters.half_side_m)
    assert np.all(task.state[:, 2:] == 0.0)


def test_the_expert_succeeds_and_goes_both_ways(drive: Callable[..., np.ndarray]) -> None:
    task, expert = BallBalancing(), BallExpert()
    path = drive(task, expert, 11, list(range(200)), BallParameters().max_steps)
    assert task.success.mean() >= 0.98
    ahead = task.goal / np.linalg.norm(task.goal, axis=1, keepdims=True)
    left = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
    passing = np.abs(np.sum(path[:, :, 2:4] * ahead, axis=2)).argmin(axis=0)  # level with the post
    side = np.sign(np.sum(path[passing, np.arange(200), 2:4] * left, axis=1))
    np.testing.assert_array_equal(side, expert.sides)
    assert 60 < np.sum(side > 0) < 140
