from __future__ import annotations

import warnings
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from adahi_lab.tasks import TASKS, make, make_expert
from adahi_lab.tasks.ball import BallExpert
from adahi_lab.tasks.gym_env import TaskEnv
from adahi_lab.tasks.task_interface import Task

every_task = pytest.mark.parametrize("task", sorted(TASKS.shipped))


def environment_id(task: str) -> str:
    return f"adahi_lab.tasks.gym_env:adahi_ros/{TASKS[task].task.partition(':')[2]}-v0"


def test_the_ball_is_there_by_its_name() -> None:
    assert environment_id("ball").endswith("adahi_ros/BallBalancing-v0")
    spec = gymnasium.make(environment_id("ball")).spec
    assert spec is not None
    assert spec.kwargs["task"] == "ball"


def test_any_task_is_there_by_the_name_that_make_takes() -> None:
    env = gymnasium.make("adahi_lab.tasks.gym_env:adahi_ros/Task-v0", task="swarm")
    assert isinstance(env.unwrapped, TaskEnv)
    assert env.unwrapped.task.spec.name == "swarm"


@every_task
def test_gymnasium_finds_nothing_wrong(task: str, seeing: Callable[[str], Task]) -> None:
    seeing(task)
    env = gymnasium.make(environment_id(task), render_mode="rgb_array")
    with warnings.catch_warnings():
        # Radians and metres are meant; only advice to normalise and to bound them is let through.
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(symmetric and normalized|infinity).*")
        check_env(env.unwrapped)


# The kitchen's camera draws for long.
@pytest.mark.parametrize("task", sorted(TASKS.shipped.keys() - {"kitchen_camera"}))
def test_an_episode_is_that_of_the_task(task: str) -> None:
    env = gymnasium.make(environment_id(task))
    observation, info = env.reset(seed=5, options={"episode": 3})
    assert (info["seed"], info["episode"]) == (5, 3)
    world, expert = make(task), make_expert(task)
    world.reset(5, [3])
    expert.reset(5, [3])
    terminated = truncated = False
    rewards = []
    while not (terminated or truncated):
        np.testing.assert_array_equal(
            observation, np.concatenate([world.observation[0], world.goal[0]], dtype="f4")
        )
        action = expert.act(world)
        world.step(action)
        observation, reward, terminated, truncated, info = env.step(action[0])
        rewards.append(float(reward))
    assert terminated
    assert info["success"]
    assert rewards[-1] == sum(rewards) == 1.0
    assert world.done[0]


def test_resets_count_the_episodes_of_a_seed() -> None:
    env = TaskEnv("ball")
    first, _ = env.reset(seed=1)
    second, info = env.reset()
    assert info["episode"] == 1
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)
    np.testing.assert_array_equal(env.reset()[0], second)


def test_running_out_of_steps_truncates_and_leaving_the_plate_terminates() -> None:
    env = TaskEnv("ball")
    env.reset(seed=0)
    expert = BallExpert()
    expert.reset(0, [0])
    for step in range(env.task.spec.max_steps):
        # Balances on the far side of the post, never on the goal.
        away = -0.15 * env.task.goal[0] / np.linalg.norm(env.task.goal[0])
        pull = 6.0 * (away - env.task.state[0, :2]) - 4.0 * env.task.state[0, 2:]
        _, reward, terminated, truncated, _ = env.step(np.array([-pull[1], pull[0]]) / 7.0)
        assert reward == 0.0
        assert not terminated
        assert truncated == (step == env.task.spec.max_steps - 1)
    env.reset(seed=0)
    for _ in range(env.task.spec.max_steps):
        _, _, terminated, truncated, info = env.step(np.array([0.2, 0.2]))
        if terminated:
            break
    assert terminated
    assert not truncated
    assert not info["success"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="task: 'bowl'"):
        TaskEnv("bowl")
    with pytest.raises(ValueError, match="render_mode: 'human'"):
        TaskEnv("ball", render_mode="human")
    env = TaskEnv("ball")
    with pytest.raises(ValueError, match="options: episode is -1"):
        env.reset(seed=0, options={"episode": -1})
    with pytest.raises(ValueError, match="action: roll_command_rad is nan"):
        env.step(np.array([np.nan, 0.0]))
