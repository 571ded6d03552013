from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from adahi_lab.tasks.demonstrations import collect_parallel
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


def test_the_spec_fits_what_the_task_shows() -> None:
    for drones in (3, 4, 6):
        task = Swarm(SwarmParameters(drones=drones))
        task.reset(0, range(5))
        spec = task.spec
        assert task.joint_positions.shape == task.joint_velocities.shape == (5, 0)
        assert task.state.shape == task.observation.shape == (5, spec.observation_dim) == (5, 4 * drones)
        assert task.goal.shape == (5, spec.goal_dim) == (5, 2 * drones)
        assert task.completed.shape == task.fulfilled.shape == (5, len(spec.subtask_names)) == (5, drones)
        assert spec.action_low.shape == spec.action_high.shape == (spec.action_dim,)
        assert spec.commanded == ("drone_1_x", "drone_1_y", "drone_2_x", "drone_2_y", *spec.commanded[4:])


@pytest.mark.parametrize("drones", [2, 7])
def test_numbers_of_drones_that_do_not_fit_are_refused(drones: int) -> None:
    with pytest.raises(ValueError, match=f"drones: {drones}, expected 3 to 6"):
        SwarmParameters(drones=drones)


def test_without_wind_and_command_a_hovering_drone_stays_where_it_is() -> None:
    task = Swarm(STILL)
    place(task, corners(1.0))
    before = task.state
    fly(task, np.zeros((1, ACTIONS)), 20)
    np.testing.assert_array_equal(task.state, before)


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


def test_a_drone_accelerates_no_harder_than_it_can() -> None:
    world = dataclasses.replace(STILL, max_acceleration_m_s2=1.0)
    task = Swarm(world)
    place(task, corners(1.0))
    command = np.zeros((1, ACTIONS))
    command[0, 0] = world.max_speed_m_s
    for step in range(1, 5):
        task.step(command)
        np.testing.assert_allclose(task.state[0, ACTIONS], step / world.control_rate_hz)


@pytest.mark.parametrize("command", [[9.0, 0.0], [9.0, 9.0], [1.2, -1.2]])
def test_commands_beyond_the_fastest_keep_their_direction(command: list[float]) -> None:
    excessive, allowed = np.clip(command, -STILL.max_speed_m_s, STILL.max_speed_m_s), Swarm(STILL)
    allowed_command = excessive * STILL.max_speed_m_s / np.linalg.norm(excessive)
    task = Swarm(STILL)
    for each, wanted in ((task, command), (allowed, allowed_command)):
        place(each, corners(1.0))
        for _ in range(5):
            each.step(np.tile(wanted, (1, DRONES)))
    np.testing.assert_allclose(task.state, allowed.state, atol=1e-12)


def test_wind_pushes_every_drone_on_its_own_and_as_hard_as_specified() -> None:
    world = SwarmParameters(wind_m_s2=0.8, velocity_lag_s=1e9)
    task = Swarm(world)
    task.reset(0, range(2000))
    place(task, corners(1.0))
    speeds = []
    for _ in range(2):
        before = task.state[:, ACTIONS:]
        task.step(np.zeros((2000, ACTIONS)))
        speeds.append((task.state[:, ACTIONS:] - before) * world.control_rate_hz)
    gusts = np.concatenate(speeds, axis=1)
    np.testing.assert_allclose(gusts.mean(axis=0), 0.0, atol=0.08)
    np.testing.assert_allclose(gusts.std(axis=0), 0.8, rtol=0.08)
    correlation = np.corrcoef(gusts.T) - np.eye(gusts.shape[1])
    assert np.abs(correlation).max() < 0.1


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


def test_drones_that_only_pass_closely_do_not_fail() -> None:
    task = Swarm(STILL)
    position = corners(1.0)
    position[1] = position[0] - [2.0 * STILL.drone_radius_m + 0.01, 0.6]
    place(task, position)
    fly(task, np.eye(1, ACTIONS, 3), 20)  # the second drone flies past the first
    assert task.state[0, 3] > task.state[0, 1]
    assert not task.failed[0]


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


def test_a_drone_that_leaves_its_target_starts_its_hold_again() -> None:
    task = Swarm(STILL)
    target = task.goal[0].reshape(DRONES, 2)
    still = np.zeros((1, ACTIONS))
    for place_at, held in ((target, 1), (0.5 * target, 0), (target, 1)):
        place(task, place_at)
        task.step(still)
        assert task.held_steps.tolist() == [[held] * DRONES]


def test_a_target_counts_up_to_its_tolerance() -> None:
    task = Swarm(STILL)
    target = task.goal[0].reshape(DRONES, 2)
    for away, near in ((0.99, True), (1.01, False)):
        place(task, target + np.array([0.0, away * STILL.target_tolerance_m]))
        assert task.fulfilled.tolist() == [[near] * DRONES]


@pytest.mark.parametrize("drones", [3, 4, 6])
def test_drones_start_apart_inside_the_arena_and_opposite_their_targets(drones: int) -> None:
    task = Swarm(SwarmParameters(drones=drones))
    task.reset(0, range(500))
    position = task.state[:, : 2 * drones].reshape(500, drones, 2)
    target = task.goal.reshape(500, drones, 2)
    assert np.all(np.abs(np.concatenate([position, target])) < task.parameters.half_side_m)
    assert np.all(np.sum(position * target, axis=2) < 0.0), "the centre lies between"
    for places in (position, target):
        for i, j in itertools.combinations(range(drones), 2):
            apart = np.linalg.norm(places[:, i] - places[:, j], axis=1)
            assert apart.min() > 2.0 * task.parameters.drone_radius_m + 0.1
    assert not task.done.any()


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


@pytest.mark.parametrize("drones", [3, 5, 6])
def test_the_expert_flies_swarms_of_other_sizes(drones: int, drive: Callable[..., np.ndarray]) -> None:
    task, expert = Swarm(SwarmParameters(drones=drones)), SwarmExpert()
    drive(task, expert, 4, list(range(100)), SwarmParameters().max_steps)
    assert task.success.mean() >= 0.95


def test_the_expert_succeeds_in_spite_of_the_noise_of_demonstrations() -> None:
    recorded = collect_parallel("swarm", episodes=200, seed=5, action_noise=0.1, workers=1)
    assert recorded.failed <= 0.03 * recorded.attempted
