# SPDX-License-Identifier: Apache-2.0
"""Any Gymnasium environment with Box observations and actions as a task, described by a YAML file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import numpy as np

from adahi_lab.faults import faults_of
from adahi_lab.tasks.gymnasium_description import Description, criterion, load_description
from adahi_lab.tasks.offscreen import choose_renderer
from adahi_lab.tasks.task_interface import Expert, SimulatedTask, Task, TaskSpec, checked_action
from adahi_ros.core.randomness import step_uniforms

SEEDS = 2**31  # an episode's seed for the environment is below


class GymnasiumTask(SimulatedTask):
    """E environments of one kind. Implements `adahi_lab.tasks.task_interface.Task`.

    Each episode has a separate, separately seeded environment. Joint velocities are differences of joint
    positions over the control period, because environments rarely name them. A finished episode stands still;
    an episode that the environment ends without success has failed.

    Args:
        description: content of the file.

    Raises:
        ValueError: the environment is missing or not as described; names field and value.
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self._met = criterion(description.success)
        self._envs = [_make_env(description)]
        space = _checked_box(self._envs[0].action_space, "action", description.action)
        if not (np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high))):
            raise ValueError(f"environment: {description.environment!r}, must have bounded actions")
        _checked_box(self._envs[0].observation_space, "observation", description.observation)
        index = {entry: number for number, entry in enumerate(description.observation)}
        self._joints = [index[entry] for entry in description.joints.values()]
        self._goal = [index[entry] for entry in description.goal]
        self._state = [number for number in index.values() if number not in {*self._joints, *self._goal}]
        self.spec = TaskSpec(
            name=description.name,
            joint_names=tuple(description.joints),
            state_names=tuple(description.observation[number] for number in self._state),
            frame_id=description.frame_id,
            goal_dim=len(self._goal),
            action_names=description.action,
            action_low=space.low.astype(np.float64),
            action_high=space.high.astype(np.float64),
            control_rate_hz=float(description.control_rate_hz),
            max_steps=description.max_steps,
            success_text=description.success_text,
            subtask_names=(description.subtask,),
            command_field=description.command_field,
            command_names=description.command_names,
        )
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; E is how many there are."""
        count = len(episodes)
        self._envs += [_make_env(self.description) for _ in range(count - len(self._envs))]
        stream = f"{self.spec.name}/reset"
        starts = []
        for env, episode in zip(self._envs[:count], episodes, strict=True):
            draw = step_uniforms(seed, stream, int(episode), 0, 1)[0]
            starts.append(env.reset(seed=int(draw * SEEDS))[0])
        self._observed = np.stack(starts).astype(np.float64)
        self._before = self._observed
        self._start_goal = self._observed[:, self._goal]
        self._begin(count)
        self._return = np.zeros(count)
        self._ended = np.zeros(count, dtype=bool)
        self._met_now = np.zeros(count, dtype=bool)

    @property
    def joint_positions(self) -> np.ndarray:
        """(E, J) float64, rad or m."""
        return self._observed[:, self._joints]

    @property
    def joint_velocities(self) -> np.ndarray:
        """(E, J) float64, over the last control period, rad/s or m/s."""
        moved: np.ndarray = (self._observed - self._before)[:, self._joints]
        return moved * self.spec.control_rate_hz

    @property
    def state(self) -> np.ndarray:
        """(E, S) float64, the entries that are neither joint positions nor goal."""
        return self._observed[:, self._state]

    @property
    def goal(self) -> np.ndarray:
        """(E, G) float64, as it was at the start."""
        return self._start_goal.copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: the criterion is met now."""
        return self._met_now[:, None].copy()

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: the environment has ended the episode without success."""
        failed: np.ndarray = self._ended & ~self._success
        return failed

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, A), clipped to the action limits.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = checked_action(self.spec, len(self._steps), action)
        self._before = self._observed
        self._observed = self._observed.copy()
        for row in np.flatnonzero(~self.done):
            env = self._envs[row]
            command = action[row].astype(env.action_space.dtype)
            observed, reward, terminated, truncated, info = env.step(command)
            self._observed[row] = observed
            self._return[row] += float(reward)
            self._steps[row] += 1
            self._ended[row] = terminated or truncated
            self._met_now[row] = self._met(bool(terminated), info, float(self._return[row]))
        self._success |= self._met_now


class FunctionExpert:
    """A function from the task to actions as an `Expert`."""

    def __init__(self, function: Callable[[Task], np.ndarray]) -> None:
        self._function = function

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def act(self, task: Task) -> np.ndarray:
        """(E, A)."""
        return self._function(task)


def described_task(path: Path) -> GymnasiumTask:
    """Return the task that a YAML file describes.

    Raises:
        ValueError: a fault in the file, or the environment is not as it says.
        FileNotFoundError: no such file.
    """
    description = load_description(path)
    _warn_of_code(path, description.modules)
    with faults_of(path):
        return GymnasiumTask(description)


def described_expert(path: Path) -> Expert:
    """Return the expert that a task's YAML file names.

    Raises:
        ValueError: a fault in the file, or there is no expert of this name.
        FileNotFoundError: no such file.
    """
    named = load_description(path).expert
    module, _, name = named.partition(":")
    _warn_of_code(path, (module,))
    with faults_of(path):
        try:
            found = getattr(import_module(module), name)
            expert: Expert = found() if isinstance(found, type) else FunctionExpert(found)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"expert: {named!r}, must be module:name ({error})") from error
        except TypeError as error:
            raise ValueError(f"expert: {named!r}, must need no arguments ({error})") from error
    return expert


def _warn_of_code(path: Path, modules: Sequence[str]) -> None:
    """Warn on stderr about modules outside this package that a file runs."""
    foreign = [module for module in modules if module.partition(".")[0] != "adahi_ros"]
    if foreign:
        warnings.warn(f"{path}: imports and runs the code of {', '.join(foreign)}", stacklevel=3)


def _make_env(description: Description) -> gym.Env[np.ndarray, np.ndarray]:
    choose_renderer()
    for module in description.modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ValueError(f"modules: {module!r}, must be importable ({error})") from None
    try:
        # -1: no limit but the task's own.
        return gym.make(description.environment, max_episode_steps=-1, **description.kwargs)
    except (gym.error.Error, TypeError) as error:
        raise ValueError(
            f"environment, kwargs: {description.environment!r} with {description.kwargs}, must be what "
            f"gymnasium.make takes ({error})"
        ) from error


def _checked_box(space: gym.Space[object], role: str, names: Sequence[str]) -> gym.spaces.Box:
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"environment: {role} space {space}, must be a Box with one dimension")
    if space.shape != (len(names),):
        raise ValueError(f"{role}: {len(names)} names, must be {space.shape[0]} as the environment has")
    return space
