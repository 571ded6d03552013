"""What holds of the episodes of every world that is simulated here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.episodes import episodes

TASKS = ("ball", "ball_instructed", "swarm", "swarm_instructed")  # whose episodes take milliseconds


def shown(task: Any) -> list[np.ndarray]:
    """Return all that a task shows."""
    names = ("observation", "joint_velocities", "completed", "success", "failed", "held_steps")
    return [getattr(task, name) for name in names if hasattr(task, name)]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 33])
def test_an_episode_is_the_same_to_the_bit_alone_and_in_a_batch(
    count: int, name: str, drive: Callable[..., np.ndarray]
) -> None:
    episodes, steps = list(range(10, 10 + count)), make(name).spec.max_steps
    batch = drive(make(name), make_expert(name), 3, episodes, steps)
    for index in {0, count // 2, count - 1}:
        alone = drive(make(name), make_expert(name), 3, [episodes[index]], steps)
        np.testing.assert_array_equal(batch[:, index], alone[:, 0])


@pytest.mark.parametrize("name", ["ball", "metaworld", "swarm"])
def test_nothing_moves_once_an_episode_is_done(name: str, drive: Callable[..., np.ndarray]) -> None:
    task = make(name)
    drive(task, make_expert(name), 0, [0, 1, 2], task.spec.max_steps)
    assert task.done.all()
    before = shown(task)
    for _ in range(5):
        task.step(np.tile(task.spec.action_high, (3, 1)))
    for old, new in zip(before, shown(task), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", ["ball", "kitchen"])
def test_actions_beyond_the_limits_are_clipped(name: str) -> None:
    ends = []
    for scale in (1.0, 3.0):
        task = make(name)
        for _ in range(3):
            task.step(scale * task.spec.action_high[None])
        ends.append(task.observation)
    np.testing.assert_array_equal(ends[0], ends[1])


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("ball", "pitch_command_rad"),
        ("inverted_pendulum", "cart_force_hN"),
        ("kitchen", "panda_finger_joint2_velocity_command_m_s"),
        ("metaworld", "gripper_command"),
        ("swarm", "drone_4_vy_command_m_s"),
    ],
)
def test_bad_actions_are_refused_and_move_nothing(name: str, entry: str) -> None:
    task = make(name)
    task.reset(0, [0, 1])
    before, good = task.observation, np.zeros((2, task.spec.action_dim))
    nan, infinite = good.copy(), good.copy()
    nan[1, -1], infinite[0, -1] = np.nan, np.inf
    for action, message in (
        (good[:, 1:], rf"action: shape \(2, {good.shape[1] - 1}\), expected \(2, {good.shape[1]}\)"),
        (good[0], rf"action: shape \({good.shape[1]},\), expected \(2, {good.shape[1]}\)"),
        (nan, f"action: {entry} is nan at row 1"),
        (infinite, f"action: {entry} is inf at row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            task.step(action)
    np.testing.assert_array_equal(task.observation, before)


@pytest.mark.parametrize("name", ["ball", "kitchen", "swarm"])
def test_the_expert_refuses_a_task_of_another_size(name: str) -> None:
    task = make(name)
    task.reset(0, range(3))
    with pytest.raises(ValueError, match="task: 3 episodes, the expert was reset for 1"):
        make_expert(name).act(task)


class _Lookers:
    """Notes what it is started with."""

    started: tuple[int, list[int]] | None = None

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        self.started = seed, list(episodes)


def test_the_loop_starts_all_at_once_and_goes_on_until_the_last_episode_is_done() -> None:
    task, beside = make("ball"), _Lookers()
    steps = episodes(task, 3, range(4, 7), beside)
    assert beside.started == (3, [4, 5, 6])  # before the first step
    taken = []
    for active in steps:
        assert (active == ~task.done).all()
        taken.append(active)
        task.step(task.spec.action_high * np.ones((3, 1)))  # the ball rolls off
    assert task.done.all()
    assert task.steps.tolist() == np.sum(taken, axis=0).tolist()  # type: ignore[attr-defined]
