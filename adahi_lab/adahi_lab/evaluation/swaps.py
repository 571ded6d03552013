# SPDX-License-Identifier: Apache-2.0
"""Worlds that change within the episode: an operator assigns another goal, or somebody moves the thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from adahi_lab.evaluation.disturbances import WorldAround
from adahi_lab.tasks import make_evaluated

OTHER_EPISODES = 1_000_000  # added to a number: the episode that the new goal is from


@dataclass(frozen=True)
class Swap:
    """What changes, and when.

    Attributes:
        step: the first control step after the change.
        push: whether the verifier's notice of a goal makes robots drop their plans and send a request.
        what: `goal`, which only the target knows; or `thing`, which the robot sees at another place. The task
            has a method `swap_goals` or `displace`, with a seed and the numbers of the episodes that the new
            goals or places are from. Only what is done afterwards counts as a success. An episode that has
            failed stays so.

    Raises:
        ValueError: there is no such step.
    """

    step: int
    push: bool = True
    what: Literal["goal", "thing"] = "goal"

    def __post_init__(self) -> None:
        if self.step < 1:
            raise ValueError(f"{self.field}: {self.step}, must be at least 1")

    @property
    def field(self) -> str:
        """Its name in errors."""
        return "swap" if self.what == "goal" else "displace"


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
        change = getattr(world, "swap_goals" if swap.what == "goal" else "displace", None)
        if change is None:
            reason = f"its {swap.what} cannot change"
            raise ValueError(f"{swap.field}: {swap.step}, must be left out for {task}: {reason}")
        if swap.step >= world.spec.max_steps:
            allowed = f"below {world.spec.max_steps}, the longest episode of {task}"
            raise ValueError(f"{swap.field}: {swap.step}, must be {allowed}")
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
        return self._swap.step if self._swap.push and self._swap.what == "goal" else None

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
