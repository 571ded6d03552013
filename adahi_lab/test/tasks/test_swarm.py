from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_lab.tasks.swarm import Swarm, SwarmExpert, SwarmParameters

STILL = SwarmParameters(wind_m_s2=0.0)
DRONES = STILL.drones
ACTIONS = 2 * DRONES


def place(task: Swarm, position: np.ndarray, velocity: np.ndarray | float = 0.0) -> None:
    """Put the drones (N, 2) of every episode somewhere; the tasks themselves only start at random."""
    task._position = np.tile(position, (len(task.done), 1, 1))
    task._velocity = np.broadcast_to(velocity, task._position.shape).copy()


def fly(task: Swarm, command: np.ndarray, steps: int) -> None:
    for _ in range(steps):
        task.step(command)


def corners(half_side: float) -> np.ndarray:
    """(4, 2), one drone in each corner of a square."""
    return half_side * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


@pytest.mark.parametrize("drones", [2, 7])
def test_numbers_of_drones_that_do_not_fit_are_refused(drones: int) -> None:
    with pytest.raises(ValueError, match=f"drones: {drones}, expected 3 to 6"):
        SwarmParameters(drones=drones)


def test_each_drone_follows_its_own_command_with_a_first_order_lag() -> None:
    task = Swarm(STILL)
    place(task, corners(1.0))
    command = np.zeros((1, ACTIONS))
    command[0, :2] = 0.3, -0.2
    steps = 5
    fly(task, command, steps)
    velocity = task.state[0, ACTIONS:].reshape(DRONES, 2)
    share = 1.0 - np.exp(-steps / STILL.control_rate_hz / STILL.velocity_lag_s)
    np.testing.assert_allclose(velocity[0], share * command[0, :2], rtol=0.03)
    assert np.all(velocity[1:] == 0.0)


def test_drones_that_touch_fail_the_episode_for_good_and_stop() -> None:
    task = Swarm(STILL)
    position = corners(1.0)
    position[1] = position[0] - [2.0 * STILL.drone_radius_m + 0.1, 0.0]
    place(task, position)
    command = np.zeros((1, ACTIONS))
    command[0, 2] = 0.5  # the second drone flies to the first
    fly(task, command, 20)
    assert task.collided.tolist() == [[True, True, False, False]]
    assert task.failed[0]
    assert task.done[0]
    distance = np.linalg.norm(task.state[0, :2] - task.state[0, 2:4])
    assert 0.0 < 2.0 * STILL.drone_radius_m - distance < 0.01
    before = task.state
    task.step(-command)
    np.testing.assert_array_equal(task.state, before)


def test_a_drone_that_leaves_the_arena_fails_the_episode_for_good() -> None:
    task = Swarm(STILL)
    place(task, corners(1.5))
    fly(task, np.eye(1, ACTIONS), 40)  # the first drone flies outwards
    assert task.failed[0]
    assert task.done[0]
    assert not task.collided.any()
    assert 0.0 < task.state[0, 0] - STILL.half_side_m < 0.02


def test_success_takes_all_drones_on_their_targets_at_once_and_is_latched() -> None:
    task = Swarm(STILL)
    target = task.goal[0].reshape(DRONES, 2)
    still = np.zeros((1, ACTIONS))
    one_away = target.copy()
    one_away[2] *= 0.5
    place(task, one_away)
    fly(task, still, STILL.hold_steps + 3)
    assert task.completed.tolist() == [[True, True, False, True]]
    assert task.fulfilled.tolist() == [[True, True, False, True]]
    assert not task.success[0]
    others_away = 0.5 * target
    others_away[2] = target[2]
    place(task, others_away)
    fly(task, still, STILL.hold_steps)
    assert task.completed.all(), "each drone has been there"
    assert not task.success[0], "but not together"
    place(task, target)
    for step in range(STILL.hold_steps):
        assert not task.success[0], f"after {step} steps"
        task.step(still)
    assert task.success[0]
    assert task.done[0]
    assert not task.failed[0]
    task.step(np.ones((1, ACTIONS)))
    assert task.success[0]


def test_flying_straight_to_the_targets_ends_in_collisions() -> None:
    task = Swarm()
    task.reset(0, range(200))
    for _ in range(task.spec.max_steps):
        task.step(2.0 * (task.goal - task.state[:, :ACTIONS]))
    assert task.collided.any(axis=1).mean() > 0.5
    assert task.success.mean() < 0.5


def test_the_expert_succeeds_and_goes_both_ways(drive: Callable[..., np.ndarray]) -> None:
    task, expert = Swarm(), SwarmExpert()
    path = drive(task, expert, 11, list(range(200)), SwarmParameters().max_steps)
    assert task.success.mean() >= 0.98
    position = path[:, :, :ACTIONS].reshape(len(path), 200, DRONES, 2)
    before, after = position[:-1], position[1:]
    swept = (before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]).sum(axis=0)  # about the centre
    np.testing.assert_array_equal(np.sign(swept), np.tile(expert.ways[:, None], (1, DRONES)))
    assert 60 < np.sum(expert.ways > 0) < 140
