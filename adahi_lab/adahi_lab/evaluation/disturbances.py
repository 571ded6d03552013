# SPDX-License-Identifier: Apache-2.0
"""Worlds around a task, which change what happens in it: here noise on what a robot executes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adahi_lab.evaluation.rollout import pushed_at
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_ros.core.randomness import EpisodeStreams

MOST = 1.0  # of half an action's range


class WorldAround:
    """A world that passes everything on to another one. Implements `World`.

    Args:
        world: a task, or another world around one.
    """

    def __init__(self, world: Any) -> None:
        self.spec = world.spec
        self._world = world

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `World`."""
        self._world.reset(seed, episodes)

    @property
    def observation(self) -> np.ndarray:
        """See `World`."""
        observation: np.ndarray = self._world.observation
        return observation

    @property
    def goal(self) -> np.ndarray:
        """See `World`."""
        goal: np.ndarray = self._world.goal
        return goal

    @property
    def done(self) -> np.ndarray:
        """See `World`."""
        done: np.ndarray = self._world.done
        return done

    @property
    def success(self) -> np.ndarray:
        """See `Task`."""
        success: np.ndarray = self._world.success
        return success

    @property
    def completed(self) -> np.ndarray:
        """See `Task`."""
        completed: np.ndarray = self._world.completed
        return completed

    @property
    def fulfilled(self) -> np.ndarray:
        """See `Task`."""
        fulfilled: np.ndarray = self._world.fulfilled
        return fulfilled

    @property
    def pushed_at(self) -> int | None:
        """See `rollout.pushed_at`."""
        return pushed_at(self._world)

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        self._world.step(action)


class DisturbedWorld(WorldAround):
    """A world that executes each action with noise, which the robot does not know.

    Args:
        world: a task, or another world around one.
        action_noise: standard deviation, as a share of half the range of each action.

    Raises:
        ValueError: it is out of range, or the task has images for the target.
    """

    def __init__(self, world: Any, action_noise: float) -> None:
        super().__init__(world)
        if not 0.0 <= action_noise <= MOST:
            raise ValueError(f"action_noise: {action_noise}, must be from 0 to {MOST:g}")
        if self.spec.images_for_target:
            allowed = f"must be 0 for {self.spec.name}, which has images"
            raise ValueError(f"action_noise: {action_noise}, {allowed}")
        self._scale = action_noise * (self.spec.action_high - self.spec.action_low) / 2.0

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `World`."""
        super().reset(seed, episodes)
        width = UNIFORMS_PER_DRAW * self.spec.action_dim
        self._draws = EpisodeStreams(seed, f"{self.spec.name}/disturbance", episodes, width)

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        super().step(action + self._scale * bell_noise(self._draws.next()))
