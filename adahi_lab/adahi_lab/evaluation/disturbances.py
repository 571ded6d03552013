# SPDX-License-Identifier: Apache-2.0
"""Worlds around a task, which change what happens in it: here noise on what a robot does and sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adahi_lab.evaluation.rollout import pushed_at
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_ros.core.randomness import EpisodeStreams

MOST = 1.0  # of half an action's range
MOST_M = 1.0  # of a measured place


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
    """A world that executes actions with noise, and that robots see with noise, but the target without.

    Args:
        world: a task, or another world around one.
        action_noise: standard deviation, as a share of half the range of each action.
        sensor_noise_m: standard deviation of each place in metres that a robot observes, drawn at each step.

    Raises:
        ValueError: one is out of range, the task has images for the target, or it has no place in metres.
    """

    def __init__(self, world: Any, action_noise: float = 0.0, sensor_noise_m: float = 0.0) -> None:
        super().__init__(world)
        spec, noises = self.spec, {"action_noise": action_noise, "sensor_noise_m": sensor_noise_m}
        places = [name.endswith("_m") for name in (*spec.joint_names, *spec.state_names)]
        for (name, noise), most in zip(noises.items(), (MOST, MOST_M), strict=True):
            if not 0.0 <= noise <= most:
                raise ValueError(f"{name}: {noise}, must be from 0 to {most:g}")
            if noise and spec.images_for_target:
                raise ValueError(f"{name}: {noise}, must be 0 for {spec.name}, which has images")
        if sensor_noise_m and not any(places):
            allowed = f"must be 0 for {spec.name}: no place in metres"
            raise ValueError(f"sensor_noise_m: {sensor_noise_m}, {allowed}")
        self._scale = action_noise * (spec.action_high - spec.action_low) / 2.0
        self._sensor_scale = (sensor_noise_m * np.array(places)).astype(np.float32)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """See `World`."""
        super().reset(seed, episodes)
        self._draws, self._sensor_draws = (
            EpisodeStreams(seed, f"{self.spec.name}/{name}", episodes, UNIFORMS_PER_DRAW * size)
            for name, size in (("disturbance", self.spec.action_dim), ("sensor", len(self._sensor_scale)))
        )
        self._error = self._sensor_scale * bell_noise(self._sensor_draws.next())

    @property
    def observation(self) -> np.ndarray:
        """See `World`; what the robots see."""
        seen: np.ndarray = (self.true_observation + self._error).astype(np.float32)
        return seen

    @property
    def true_observation(self) -> np.ndarray:
        """(E, O) float32, what the target sees; see `for_target`."""
        return super().observation

    def step(self, action: np.ndarray) -> None:
        """See `World`."""
        super().step(action + self._scale * bell_noise(self._draws.next()))
        self._error = self._sensor_scale * bell_noise(self._sensor_draws.next())
