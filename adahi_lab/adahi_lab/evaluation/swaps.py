# SPDX-License-Identifier: Apache-2.0
"""Worlds with goals that change within the episode: at a step, or all the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_lab.evaluation.disturbances import WorldAround
from adahi_lab.tasks import make_evaluated

FASTEST_M_S = 1.0  # of a goal that moves
OTHER_EPISODES = 1_000_000  # added to a number: the episode that the new goal is from


@dataclass(frozen=True)
class Swap:
    """When goals, which only the target knows, are replaced by those of other episodes.

    The task has a method `swap_goals`, with a seed and the numbers of those episodes. Only what is done
    afterwards counts as a success. An episode that has failed stays so.

    Attributes:
        step: the first control step after the change.
        push: whether the verifier's notice of a goal makes robots drop their plans and send a request.

    Raises:
        ValueError: there is no such step.
    """

    step: int
    push: bool = True

    def __post_init__(self) -> None:
        if self.step < 1:
            raise ValueError(f"swap: {self.step}, must be at least 1")


class SwappedWorld(WorldAround):
    """A task that changes. Implements `World`; successes are those after the change.

    Args:
        task: registry name.
        swap: the change.

    Raises:
        ValueError: the task cannot change so, or its episodes are too short.
    """

    def __init__(self, task: str, swap: Swap) -> None:
        world: Any = make_evaluated(task)
        change = getattr(world, "swap_goals", None)
        if change is None:
            raise ValueError(f"swap: {swap.step}, must be left out for {task}: its goal cannot change")
        if swap.step >= world.spec.max_steps:
            allowed = f"below {world.spec.max_steps}, the longest episode of {task}"
            raise ValueError(f"swap: {swap.step}, must be {allowed}")
        super().__init__(world)
        self._change: Callable[[int, Sequence[int]], None] = change
        self._swap = swap
        self.reset(0, [0])
        self._change(0, self._others)  # raises errors before a run

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `World`."""
        self._seed = seed
        self._others = [episode + OTHER_EPISODES for episode in episodes]
        self._steps = 0
        super().reset(seed, episodes)

    @property
    def pushed_at(self) -> int | None:
        """The control step of the change, if the verifier publishes a notice."""
        return self._swap.step if self._swap.push else None

    @property
    def done(self) -> np.ndarray:
        """See `World`; before the change only failed episodes are done."""
        ended: np.ndarray = self._world.done if self._steps >= self._swap.step else self._world.failed
        return ended

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        super().step(action)
        self._steps += 1
        if self._steps == self._swap.step:
            self._change(self._seed, self._others)


class DriftingWorld(WorldAround):
    """A world with goals that move round the middle all the time, at one speed. Implements `World`.

    Args:
        world: a task with a method `move_goals`, or another world around one.
        speed_m_s: of the goals.

    Raises:
        ValueError: the task's goals cannot move, or not so fast.
    """

    def __init__(self, world: Any, speed_m_s: float) -> None:
        super().__init__(world)
        if not hasattr(world, "move_goals"):
            raise ValueError(f"drift: {speed_m_s}, must be 0 for {world.spec.name}: its goals cannot move")
        if not 0.0 <= speed_m_s <= FASTEST_M_S:
            raise ValueError(f"drift: {speed_m_s}, must be from 0 to {FASTEST_M_S:g}")
        self._distance_m = speed_m_s / self.spec.control_rate_hz

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        self._world.move_goals(self._distance_m)
        super().step(action)
