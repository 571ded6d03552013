# SPDX-License-Identifier: Apache-2.0
"""Worlds in which the goal changes within the episode, as if an operator assigned another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adahi_ros.lab.tasks import make
from adahi_ros.lab.tasks.task_interface import Task

OTHER_EPISODES = 1_000_000  # added to a number: the episode that the new goal is from


class SwappableTask(Task, Protocol):
    """A task with a goal for the target alone that can change within an episode."""

    def swap_goals(self, seed: int, episodes: Sequence[int]) -> None:
        """Replace the goals by those of other episodes with these numbers.

        Only what is done afterwards counts as a success. An episode that has failed stays so.
        """


@dataclass(frozen=True)
class Swap:
    """When the goals change.

    Attributes:
        step: the first control step with the new goal.
        push: whether the verifier's notice makes robots drop their plans and send a request.

    Raises:
        ValueError: there is no such step.
    """

    step: int
    push: bool = True

    def __post_init__(self) -> None:
        if self.step < 1:
            raise ValueError(f"swap: {self.step}, must be at least 1")


class SwappedWorld:
    """A task with goals that change. Implements `World`; successes are those after the change.

    Args:
        task: registry name.
        swap: when the goals change.

    Raises:
        ValueError: the task's goal cannot change, or its episodes are too short.
    """

    def __init__(self, task: str, swap: Swap) -> None:
        world: Any = make(task)
        if not hasattr(world, "swap_goals"):
            raise ValueError(f"swap: {swap.step}, must be left out for {task}: its goal cannot change")
        if swap.step >= world.spec.max_steps:
            allowed = f"below {world.spec.max_steps}, the longest episode of {task}"
            raise ValueError(f"swap: {swap.step}, must be {allowed}")
        self.spec = world.spec
        self._world: SwappableTask = world
        self._swap = swap
        self.reset(0, [0])
        world.swap_goals(0, self._others)  # raises errors before a run

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `World`."""
        self._seed = seed
        self._others = [episode + OTHER_EPISODES for episode in episodes]
        self._steps = 0
        self._world.reset(seed, episodes)

    @property
    def pushed_at(self) -> int | None:
        """The control step of the change, if the verifier publishes a notice."""
        return self._swap.step if self._swap.push else None

    @property
    def observation(self) -> np.ndarray:
        """See `World`."""
        return self._world.observation

    @property
    def goal(self) -> np.ndarray:
        """See `World`."""
        return self._world.goal

    @property
    def done(self) -> np.ndarray:
        """See `World`; before the change only failed episodes are done, the others still get a goal."""
        return self._world.done if self._steps >= self._swap.step else self._world.failed

    @property
    def success(self) -> np.ndarray:
        """See `Task`."""
        return self._world.success

    @property
    def completed(self) -> np.ndarray:
        """See `Task`."""
        return self._world.completed

    @property
    def fulfilled(self) -> np.ndarray:
        """See `Task`."""
        return self._world.fulfilled

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        self._world.step(action)
        self._steps += 1
        if self._steps == self._swap.step:
            self._world.swap_goals(self._seed, self._others)
