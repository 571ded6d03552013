from __future__ import annotations

import dataclasses
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


def test_a_resting_ball_on_a_level_plate_stays_at_rest() -> None:
    task = BallBalancing(STILL)
    place(task, [0.1, -0.07], [0.0, 0.0])
    for _ in range(20):
        task.step(np.zeros((1, 2)))
    np.testing.assert_array_equal(task.state, [[0.1, -0.07, 0.0, 0.0]])


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


def test_friction_takes_energy_and_nothing_gives_it_back_on_a_level_plate() -> None:
    task = BallBalancing(dataclasses.replace(STILL, rolling_damping_per_s=0.1))
    place(task, [-0.2, 0.01], [0.4, 0.0])  # towards the post, a little off its middle
    speeds = [0.4]
    for _ in range(16):
        task.step(np.zeros((1, 2)))
        speeds.append(float(np.linalg.norm(task.state[0, 2:])))
        assert np.linalg.norm(task.state[0, :2]) >= 0.05 - 1e-9, "inside the post"
    assert np.all(np.diff(speeds) < 0.0)
    assert task.state[0, 2] < 0.0, "it bounced off the post"


def test_the_plate_follows_with_a_first_order_lag_and_a_limited_rate() -> None:
    world = dataclasses.replace(STILL, max_tilt_rate_rad_s=1.0)
    task = BallBalancing(world)
    task.reset(0, [0, 1])
    place(task, [0.15, 0.15], [0.0, 0.0])
    task.step(np.array([[0.01, 0.0], [0.2, -0.2]]))
    assert task.joint_velocities[1].tolist() == [1.0, -1.0]
    np.testing.assert_allclose(task.joint_positions[1], [0.05, -0.05])
    task.step(np.array([[0.01, 0.0], [-0.2, 0.2]]))
    assert task.joint_velocities[1].tolist() == [-1.0, 1.0]
    lag = 0.01 * (1.0 - np.exp(-0.1 / world.tilt_lag_s))
    np.testing.assert_allclose(task.joint_positions[0, 0], lag, rtol=0.05)


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


def test_starts_and_goals_are_on_the_plate_with_the_post_between_them() -> None:
    task = BallBalancing()
    task.reset(0, range(500))
    position, goal = task.state[:, :2], task.goal
    assert np.all(np.abs(np.concatenate([position, goal])) < task.parameters.half_side_m)
    assert np.all(np.sum(position * goal, axis=1) < 0.0)
    assert np.all(np.linalg.norm(goal, axis=1) > task.parameters.goal_tolerance_m + 0.05)
    quadrants = {tuple(row) for row in (goal > 0.0).tolist()}
    assert len(quadrants) == 4
    assert not task.done.any()


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
