# SPDX-License-Identifier: Apache-2.0
"""The loop over a world: episodes side by side, from their start to the end of the last one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION


class Resettable(Protocol):
    """A world, or who acts in it or looks at it."""

    def reset(self, seed: int, episodes: list[int]) -> None:
        """Start the episodes with these numbers."""


class World(Resettable, Protocol):
    """The interface of a task, or of a recording instead of one, for the loop."""

    @property
    def observation(self) -> np.ndarray:
        """(E, O) float32."""

    @property
    def goal(self) -> np.ndarray:
        """(E, G)."""

    @property
    def done(self) -> np.ndarray:
        """(E,) bool."""

    def step(self, action: np.ndarray) -> None:
        """Advance every episode by one control period with actions (E, A)."""


def episodes(world: World, seed: int, numbers: Sequence[int], *beside: Resettable) -> Iterator[np.ndarray]:
    """Start episodes; return an iterator over their steps, until all are done.

    Args:
        world: is reset at once. For each step, the caller advances it by one.
        seed: of its draws.
        numbers: of the E episodes.
        *beside: who acts in the world or looks at it, reset after it.

    Returns:
        An iterator over (E,) bool: which episodes are not done at a step.
    """
    for each in (world, *beside):
        each.reset(seed, list(numbers))
    return _steps(world)


def _steps(world: World) -> Iterator[np.ndarray]:
    while not world.done.all():
        yield ~world.done


def for_target(world: World) -> dict[str, np.ndarray]:
    """Return what a target sees otherwise than a robot, or alone, from a world, by name: (E, size)."""
    of_world = {IMAGE_FEATURES: IMAGE_FEATURES, OBSERVATION: "true_observation", GOAL: "true_goal"}
    return {name: getattr(world, of) for name, of in of_world.items() if hasattr(type(world), of)}


def seen_by_target(world: World) -> dict[str, np.ndarray]:
    """Return all inputs of a target from a world, by name: (E, size)."""
    return {OBSERVATION: world.observation, GOAL: world.goal, **for_target(world)}
