# SPDX-License-Identifier: Apache-2.0
"""The Franka kitchen with an instruction that only the target gets: sub-tasks in a given order.

No observation shows the next sub-task, so a policy on the robot cannot know it. A sub-task out of turn ends
the episode, so doing everything in any order fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_lab.tasks.kitchen import SUBTASKS, Kitchen
from adahi_lab.tasks.kitchen_expert import KitchenExpert
from adahi_lab.tasks.kitchen_world import KitchenWorld
from adahi_lab.tasks.task_interface import Task
from adahi_ros.core.randomness import EpisodeStreams

ORDERED = 3  # sub-tasks of an instruction
LONGEST = 200  # steps


class KitchenInstructed(Kitchen):
    """E kitchens side by side, each with its own instruction. Implements `Task`.

    Goal: one-hot vectors over `SUBTASKS` of the three sub-tasks in order. A sub-task completed out of turn
    fails the episode.

    Args:
        world: default: FrankaKitchen-v1's, with the sub-tasks `SUBTASKS`.
    """

    def __init__(self, world: KitchenWorld | None = None) -> None:
        super().__init__(world)
        self.spec = replace(
            self.spec,
            name="kitchen_instructed",
            goal_dim=ORDERED * len(SUBTASKS),
            max_steps=LONGEST,
            success_text=f"{ORDERED} of {', '.join(SUBTASKS)}, in the instructed order, and no other",
            subtask_names=tuple(f"instructed sub-task {number}" for number in range(1, ORDERED + 1)),
            goal_for_target=True,
        )

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers as `Kitchen` does, and draw an instruction for each."""
        super().reset(seed, episodes)
        draws = EpisodeStreams(seed, "kitchen_instructed/order", episodes, len(SUBTASKS)).next()
        self._orders = np.argsort(draws, axis=1)[:, :ORDERED]
        self._turns = np.zeros(len(episodes), dtype=np.int64)  # number of completed sub-tasks

    @property
    def goal(self) -> np.ndarray:
        """(E, 12) float64, the instruction; see the class."""
        return np.eye(len(SUBTASKS))[self._orders].reshape(len(self._orders), -1)

    @property
    def completed(self) -> np.ndarray:
        """(E, 3) bool, latched: which instructed sub-tasks have been completed, each in its turn."""
        completed: np.ndarray = np.arange(ORDERED) < self._turns[:, None]
        return completed

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 3) bool: which instructed sub-tasks are within the tolerance of their goals now."""
        return np.take_along_axis(self._in_place(), self._orders, axis=1)

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        success: np.ndarray = self._turns == ORDERED
        return success

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period; see `Kitchen.step`."""
        before, active = self._completed.copy(), ~self.done
        super().step(action)
        newly = self._completed & ~before
        turn = (
            np.arange(len(SUBTASKS)) == self._orders[np.arange(len(before)), self._turns % ORDERED][:, None]
        )
        self._failed |= active & np.any(newly & ~turn, axis=1)
        self._turns += active & ~self._failed & np.any(newly & turn, axis=1)


class KitchenInstructedExpert(KitchenExpert):
    """Does the instructed sub-tasks in their order."""

    def act(self, task: Task) -> np.ndarray:
        """Return the commanded joint velocities, (E, 9) rad/s and m/s; raises as `KitchenExpert.act`."""
        goal = task.goal
        if len(goal) == len(self.orders):
            self.orders = goal.reshape(len(goal), -1, len(SUBTASKS)).argmax(axis=2)
        return super().act(task)
