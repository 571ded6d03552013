"""Worlds whose goal is for the target alone: what the robot sees says nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks import goal_is_for_target, names
from adahi_lab.tasks.instructed import BallInstructed, SwarmInstructed
from adahi_lab.tasks.kitchen import SUBTASKS
from adahi_lab.tasks.kitchen_instructed import ORDERED, KitchenInstructed, KitchenInstructedExpert
from adahi_lab.tasks.task_interface import Task

INSTRUCTED = (
    "ball_instructed",
    "kitchen_instructed",
    "libero_goal",
    "metaworld",
    "metaworld_10",
    "metaworld_50",
    "swarm_instructed",
)
EPISODES = range(2000)


@pytest.mark.parametrize("name", [*names(), "a robot that is not simulated"])
def test_these_tell_their_goal_to_the_target_alone_and_no_others(name: str) -> None:
    assert goal_is_for_target(name) == (name in INSTRUCTED)


@pytest.mark.parametrize("task", [BallInstructed(), SwarmInstructed()])
def test_observations_follow_actions_whatever_the_goal(task: Task) -> None:
    seen = []
    for turn in (0.0, 0.3):
        task.reset(2, [0, 1])
        cosine, sine = np.cos(turn), np.sin(turn)
        rotation = np.array([[cosine, -sine], [sine, cosine]])
        for name in ("_goal", "_target"):
            if hasattr(task, name):
                setattr(task, name, getattr(task, name) @ rotation.T)
        observed = [task.observation]
        for step in range(15):
            task.step(np.full((2, task.spec.action_dim), 0.1 * np.sin(step)))
            observed.append(task.observation)
        seen.append((task.goal, np.stack(observed)))
    assert np.abs(seen[0][0] - seen[1][0]).max() > 0.01
    np.testing.assert_array_equal(seen[0][1], seen[1][1])


class Instructed:
    """A kitchen of the test's own: which sub-tasks are in place is set from outside, step by step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, orders: list[list[int]]) -> None:
        self.task = KitchenInstructed()
        self.task.reset(0, range(len(orders)))
        self.task._orders = np.array(orders)
        self._in_place = np.zeros((len(orders), len(SUBTASKS)), dtype=bool)
        monkeypatch.setattr(self.task, "_in_place", lambda: self._in_place)

    def do(self, *subtasks: int | None) -> None:
        """Have a sub-task of each episode be in place from the next step on; None for no other."""
        self._in_place = self._in_place.copy()
        for row, subtask in enumerate(subtasks):
            if subtask is not None:
                self._in_place[row, subtask] = True
        self.task.step(np.zeros((len(subtasks), 9)))


def test_sub_tasks_count_in_the_instructed_order_and_no_other_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instructed = Instructed(monkeypatch, [[2, 0, 3], [2, 0, 3], [2, 0, 3], [1, 2, 3]])
    task = instructed.task
    instructed.do(2, 0, 2, None)
    np.testing.assert_array_equal(task.completed[:, 0], [True, False, True, False])
    np.testing.assert_array_equal(task.failed, [False, True, False, False])
    instructed.do(0, 2, 1, None)
    np.testing.assert_array_equal(task.failed, [False, True, True, False])
    instructed.do(3, 3, 3, None)
    np.testing.assert_array_equal(task.success, [True, False, False, False])
    np.testing.assert_array_equal(task.done, [True, True, True, False])
    np.testing.assert_array_equal(task.completed.sum(axis=1), [3, 0, 1, 0])


def test_the_instruction_is_in_the_goal_and_nowhere_in_what_is_observed() -> None:
    task, expert = KitchenInstructed(), KitchenInstructedExpert()
    for each in (task, expert):
        each.reset(1, range(3))
    seen = task.observation
    task._orders = (task._orders + 1) % len(SUBTASKS)
    np.testing.assert_array_equal(task.observation, seen)
    assert task.goal.shape == (3, ORDERED * len(SUBTASKS)) == (3, task.spec.goal_dim)
    expert.act(task)
    np.testing.assert_array_equal(expert.orders, task._orders)


@pytest.fixture(scope="module")
def orders() -> np.ndarray:
    task = KitchenInstructed()
    task.reset(0, range(400))
    return task.goal.reshape(400, ORDERED, -1).argmax(axis=2)
