from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from adahi_lab.tasks.kitchen import SUBTASKS, Kitchen
from adahi_lab.tasks.kitchen_world import KitchenWorld, load_world

SLIDE = SUBTASKS.index("slide cabinet")


@pytest.fixture(scope="module")
def world() -> KitchenWorld:
    return load_world(SUBTASKS)


@pytest.fixture(scope="module")
def quiet(world: KitchenWorld) -> KitchenWorld:
    """The world seen without noise."""
    return dataclasses.replace(
        world,
        position_noise=np.zeros_like(world.position_noise),
        velocity_noise=np.zeros_like(world.velocity_noise),
    )


def actions(seed: int, steps: int, count: int) -> np.ndarray:
    """(steps, count, 9), the same for an episode whatever the count."""
    return np.stack(
        [np.random.default_rng((seed, e)).uniform(-2.0, 2.0, (steps, 9)) for e in range(count)], axis=1
    )


def put(task: Kitchen, episode: int, name: str) -> None:
    """Put what a sub-task is about to its goal; the task itself never does."""
    task._physics.positions(task._states)[episode, task.world.goal_indices[name]] = task.world.goals[name]


def stand(task: Kitchen, steps: int = 1) -> None:
    for _ in range(steps):
        task.step(np.zeros((len(task.done), 9)))


def test_it_agrees_with_the_library_step_for_step(quiet: KitchenWorld) -> None:
    from gymnasium_robotics.envs.franka_kitchen.kitchen_env import KitchenEnv

    task = Kitchen(quiet)
    task.reset(4, [2])
    library = KitchenEnv(list(SUBTASKS), robot_noise_ratio=0.0, object_noise_ratio=0.0)
    library.reset()
    library.robot_env.set_state(task.true_positions[0], np.zeros(29))
    library.robot_env._get_obs()  # it steers by the robot's positions that it saw last
    for command in 0.5 * actions(1, 20, 1):
        task.step(command)
        seen, _, _, _, info = library.step(command[0] / task.spec.action_high)
        # Not to the bit: the library's solver starts where it stopped, this one anew.
        np.testing.assert_allclose(task.observation[0], seen["observation"], atol=1e-5)
        done = [name in info["episode_task_completions"] for name in SUBTASKS]
        np.testing.assert_array_equal(task.completed[0], done)


def test_completed_is_latched_and_fulfilled_is_not() -> None:
    task = Kitchen()
    task.reset(0, [0, 1])
    put(task, 1, "slide cabinet")
    stand(task)
    expected = np.zeros((2, 4), dtype=bool)
    expected[1, SLIDE] = True
    np.testing.assert_array_equal(task.completed, expected)
    np.testing.assert_array_equal(task.fulfilled, expected)
    task._physics.positions(task._states)[1, task.world.goal_indices["slide cabinet"]] = 0.0
    stand(task)
    np.testing.assert_array_equal(task.completed, expected)
    assert not task.fulfilled.any()
    assert not task.success.any()


def test_success_takes_all_four_and_then_nothing_moves() -> None:
    task = Kitchen()
    task.reset(0, [0, 1])
    for name in SUBTASKS:
        assert not task.success.any()
        put(task, 0, name)
        stand(task)
    assert task.success.tolist() == [True, False]
    assert task.done.tolist() == [True, False]
    before, others = task.observation, task.true_positions[1]
    task.step(np.ones((2, 9)))
    np.testing.assert_array_equal(task.observation[0], before[0])
    assert not np.array_equal(task.true_positions[1], others)


def test_one_that_diverges_has_failed_and_the_others_go_on() -> None:
    task, alone = Kitchen(), Kitchen()
    task.reset(0, [0, 1])
    alone.reset(0, [1])
    task._physics.velocities(task._states)[0] = 1e12
    last = task.true_positions[0]
    stand(task, 2)
    stand(alone, 2)
    assert task.failed.tolist() == [True, False]
    assert task.done.tolist() == [True, False]
    np.testing.assert_array_equal(task.true_positions[0], last)
    np.testing.assert_array_equal(task.observation[1], alone.observation[0])


def test_without_opengl_it_says_so_and_all_else_works() -> None:
    program = (
        "from adahi_lab.tasks.kitchen import Kitchen\n"
        "from adahi_lab.tasks.kitchen_camera import KitchenView\n"
        "import numpy as np\n"
        "task = Kitchen()\n"
        "task.step(np.zeros((1, 9)))\n"
        "try:\n    KitchenView().photograph(task, np.array([0]))\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MUJOCO_GL": "disable"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot draw, there is no OpenGL here" in run.stdout
    assert "MUJOCO_GL" in run.stdout
