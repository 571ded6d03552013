# SPDX-License-Identifier: Apache-2.0
"""The interface of a simulated task: many episodes of one world, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adahi_ros.contract.contract import COMMAND_FIELDS


@dataclass(frozen=True)
class TaskSpec:
    """The fixed properties of a task.

    The observation is `joint_positions` (J) followed by `state` (S), so O = J + S: the first comes
        from the robot's joints, the second from sensors of the task.

    Attributes:
        name: registry name.
        joint_names: the J joints, in the order of `joint_positions`.
        state_names: the S entries of the task's state, with units where they have one.
        frame_id: coordinate frame of state and goal (REP-105).
        goal_dim: G, 0 without a goal.
        action_names: the A entries of the action, with units.
        action_low: (A,) smallest action.
        action_high: (A,) largest action.
        control_rate_hz: control steps per second.
        max_steps: an episode's length at most.
        success_text: the criterion, for people.
        subtask_names: the P parts that make a success together, at least one.
        command_field: type of an action for a controller: `positions`, `velocities`, `accelerations` or
            `effort` of a `trajectory_msgs/JointTrajectoryPoint`.
        command_names: names of the A commanded entries in this message; empty for the joints.
        goal_for_target: only the target gets the goal; no policy on the robot may read it.
        images_for_target: only the target gets a camera's images; they are no part of the observation. The
            task then has `image_features`, (E, F) float32, a verifier's features of them.

    Raises:
        ValueError: the command does not fit the action.
    """

    name: str
    joint_names: tuple[str, ...]
    state_names: tuple[str, ...]
    frame_id: str
    goal_dim: int
    action_names: tuple[str, ...]
    action_low: np.ndarray
    action_high: np.ndarray
    control_rate_hz: float
    max_steps: int
    success_text: str
    subtask_names: tuple[str, ...]
    command_field: str = "positions"
    command_names: tuple[str, ...] = ()
    goal_for_target: bool = False
    images_for_target: bool = False

    def __post_init__(self) -> None:
        if self.command_field not in COMMAND_FIELDS:
            raise ValueError(
                f"command_field: {self.command_field!r}, must be one of {', '.join(COMMAND_FIELDS)}"
            )
        if len(self.commanded) != self.action_dim:
            raise ValueError(f"command_names: {self.commanded}, must be {self.action_dim} names")

    @property
    def commanded(self) -> tuple[str, ...]:
        """The names of the A commanded entries."""
        return self.command_names or self.joint_names

    @property
    def observation_dim(self) -> int:
        return len(self.joint_names) + len(self.state_names)

    @property
    def action_dim(self) -> int:
        return len(self.action_names)


def checked_action(spec: TaskSpec, episodes: int, action: np.ndarray) -> np.ndarray:
    """Return an action for so many episodes, (E, A) float64, clipped to the action limits.

    Raises:
        ValueError: wrong shape, or not finite.
    """
    action = np.asarray(action, dtype=np.float64)
    expected = (episodes, spec.action_dim)
    if action.shape != expected:
        raise ValueError(f"action: shape {action.shape}, expected {expected}")
    if not np.all(np.isfinite(action)):
        row, column = np.argwhere(~np.isfinite(action))[0]
        name = spec.action_names[column]
        raise ValueError(f"action: {name} is {action[row, column]} at row {row}, expected finite numbers")
    return np.clip(action, spec.action_low, spec.action_high)


class Task(Protocol):
    """E episodes of one world, stepped together.

    Every random draw comes from streams addressed by (seed, episode, step), so episode 7 of seed 0
    is the same alone, among others, and on any machine of the same arithmetic.
    """

    spec: TaskSpec

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are."""

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, J) float64, rad or m."""

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, J) float64, rad/s or m/s."""

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64."""

    @property
    def goal(self) -> np.ndarray:
        """(E, G) float64."""

    @property
    def observation(self) -> np.ndarray:
        """(E, O) float32: joint positions, then state."""

    def step(self, action: np.ndarray) -> None:
        """Advance every episode by one control period.

        Args:
            action: (E, A), clipped to the action limits.

        Raises:
            ValueError: wrong shape, or not finite.
        """

    @property
    def completed(self) -> np.ndarray:
        """(E, P) bool, latched: which sub-tasks have been completed."""

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, P) bool: which sub-tasks are fulfilled now; a completed one may be undone."""

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched: the criterion has been met, which takes every sub-task completed."""

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: the criterion cannot be met any more."""

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: succeeded, failed, or out of steps; the episode then stands still."""


class SimulatedTask(Task):
    """A base of tasks without joints and with one criterion; see `Task`."""

    def _begin(self, count: int) -> None:
        """Start so many episodes: nothing has happened in them yet."""
        self._steps = np.zeros(count, dtype=np.int64)
        self._success = np.zeros(count, dtype=bool)
        self._failed = np.zeros(count, dtype=bool)

    @property
    def steps(self) -> np.ndarray:
        """(E,) int64, control steps taken."""
        return self._steps.copy()

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, 0) float64: there are no joints."""
        return np.zeros((len(self._steps), 0))

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, 0) float64: there are no joints."""
        return np.zeros((len(self._steps), 0))

    @property
    def observation(self) -> np.ndarray:
        """(E, O) float32: joint positions, then state."""
        return np.concatenate([self.joint_positions, self.state], axis=1).astype(np.float32)

    @property
    def completed(self) -> np.ndarray:
        """(E, 1) bool, latched: the criterion has been met."""
        return self.success[:, None]

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        return self._success.copy()

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: the criterion cannot be met any more."""
        return self._failed.copy()

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: succeeded, failed, or out of steps."""
        done: np.ndarray = self.success | self.failed | (self._steps >= self.spec.max_steps)
        return done


def has_camera(task: Task) -> bool:
    """Whether it has a camera, instead of the state or for the target only.

    The task then has `images`, (E, H, W, 3) uint8, and `encoder_name`, of their encoder.
    """
    return hasattr(type(task), "images")


class Expert(Protocol):
    """Acts well in a task; may keep state per episode, such as a side to pass on."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers."""

    def act(self, task: Task) -> np.ndarray:
        """(E, A) float64, for the task as it is now."""
