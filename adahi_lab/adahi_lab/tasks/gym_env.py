# SPDX-License-Identifier: Apache-2.0
"""Any task as a Gymnasium environment, one episode at a time: adahi_ros/CLASS-v0 for each shipped one.

import gymnasium
import adahi_lab.tasks.gym_env  # registers
env = gymnasium.make("adahi_ros/BallBalancing-v0", render_mode="rgb_array")
env = gymnasium.make("adahi_ros/Task-v0", task="inverted_pendulum")  # whatever `make` takes
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from adahi_lab.tasks import TASKS, make


class TaskEnv(gym.Env[np.ndarray, np.ndarray]):
    """One episode of a task.

    Observation: a flat box of O + G float32, the task's observation and then its goal. Action: a box
    with the task's limits and units. Reward: 1 at the step that meets the criterion, else 0.
    Terminated: met or failed for good. Truncated: out of steps.

    `reset(seed=s)` starts episode 0 of seed s, and every later `reset()` the next one.
    So (seed, number) identifies episodes as everywhere in this package; `options={"episode": k}` selects one.

    Args:
        task: what `make` takes.
        render_mode: "rgb_array", or None to draw nothing.

    Raises:
        ValueError: no such task or render mode.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (Gymnasium's)

    def __init__(self, task: str, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode: '{render_mode}', expected 'rgb_array' or None")
        self.task = make(task)
        self.render_mode = render_mode
        spec = self.task.spec
        self.metadata = {**self.metadata, "render_fps": round(spec.control_rate_hz)}
        self.observation_space = gym.spaces.Box(
            -np.inf, np.inf, (spec.observation_dim + spec.goal_dim,), np.float32
        )
        self.action_space = gym.spaces.Box(
            spec.action_low.astype(np.float32), spec.action_high.astype(np.float32), dtype=np.float32
        )
        self._seed: int | None = None
        self._episode = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Raises:
            ValueError: `options` has an episode that is not a number from 0.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._episode = seed, 0
        elif self._seed is None:
            self._seed = int(self.np_random.integers(2**31))
        else:
            self._episode += 1
        episode = (options or {}).get("episode", self._episode)
        if not isinstance(episode, int) or episode < 0:
            raise ValueError(f"options: episode is {episode!r}, expected a number from 0")
        self._episode = episode
        self.task.reset(self._seed, [episode])
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance by one control period.

        Raises:
            ValueError: the action has the wrong shape or is not finite.
        """
        succeeded_before = bool(self.task.success[0])
        self.task.step(np.asarray(action, dtype=np.float64)[None])
        success, failed = bool(self.task.success[0]), bool(self.task.failed[0])
        terminated = success or failed
        truncated = bool(self.task.done[0]) and not terminated
        reward = float(success and not succeeded_before)
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> np.ndarray | None:
        """Return the picture, (height, width, 3) uint8, or None without a render mode."""
        return None if self.render_mode is None else self.task.render(0)

    def _observation(self) -> np.ndarray:
        return np.concatenate([self.task.observation[0], self.task.goal[0].astype(np.float32)])

    def _info(self) -> dict[str, object]:
        return {"seed": self._seed, "episode": self._episode, "success": bool(self.task.success[0])}


gym.register("adahi_ros/Task-v0", entry_point="adahi_lab.tasks.gym_env:TaskEnv")
for _name in TASKS.shipped:
    gym.register(
        f"adahi_ros/{TASKS[_name].task.partition(':')[2]}-v0",
        entry_point="adahi_lab.tasks.gym_env:TaskEnv",
        kwargs={"task": _name},
    )
