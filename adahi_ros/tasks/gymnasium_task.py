"""Any Gymnasium environment with Box observations and actions as a task, described by a YAML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import yaml

from adahi_ros.randomness import step_uniforms
from adahi_ros.tasks.base import Expert, Task, TaskSpec

SEEDS = 2**31  # an episode's seed for the environment is below


class DescriptionError(ValueError):
    """A description that makes no task; the message names file, field, value and what was allowed."""


@dataclass(frozen=True)
class Description:
    """What a task's YAML file says.

    Attributes:
        name: of the task, its checkpoints and its parameter file.
        environment: id of a Gymnasium environment.
        frame_id: coordinate frame of state and goal (REP-105).
        control_rate_hz: control steps per second of simulated time.
        max_steps: an episode's length at most; replaces the environment's own limit.
        observation: names of the environment's observation entries, with units.
        action: names of its action entries, with units.
        command_field: what an action is to a controller, see `TaskSpec`.
        success: "terminated" where the environment ends an episode that succeeded; {info: KEY} where
            it says so in `info[KEY]`; {return_above: NUMBER} where the sum of rewards must exceed one.
        success_text: the criterion, for people.
        subtask: the same in a word or two.
        expert: "module:name" of a class that implements `Expert`, or of a function from the task to
            actions, (E, A).
        kwargs: for `gymnasium.make`; `render_mode: rgb_array` is what pictures need.
        modules: imported first, those that register the environment.
        joints: from joint names to the entries that are their positions (rad or m).
        goal: entries that are the goal: constant in an episode, and no part of the state.
        command_names: what the action commands; empty where it is the joints.
    """

    name: str
    environment: str
    frame_id: str
    control_rate_hz: float
    max_steps: int
    observation: tuple[str, ...]
    action: tuple[str, ...]
    command_field: str
    success: str | dict[str, Any]
    success_text: str
    subtask: str
    expert: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    joints: dict[str, str] = field(default_factory=dict)
    goal: tuple[str, ...] = ()
    command_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("control_rate_hz", "max_steps"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: {getattr(self, name)}, must be above 0")
        for name in ("observation", "action"):
            names = getattr(self, name)
            if not names or len(set(names)) < len(names):
                raise ValueError(f"{name}: {list(names)}, must be at least one name and none twice")
        roles = {"joints": list(self.joints.values()), "goal": list(self.goal)}
        for role, entries in roles.items():
            for entry in entries:
                if entry not in self.observation:
                    raise ValueError(f"{role}: {entry!r}, must be one of {', '.join(self.observation)}")
        entries = roles["joints"] + roles["goal"]
        if len(set(entries)) < len(entries):
            raise ValueError(f"joints, goal: {entries}, must name no entry twice")
        _met(self.success)
        if self.expert.count(":") != 1:
            raise ValueError(f"expert: {self.expert!r}, must be module:name")


Criterion = Callable[[bool, Mapping[str, Any], float], bool]
"""From terminated, info and return so far to whether the criterion is met now."""


def _met(success: str | dict[str, Any]) -> Criterion:
    if success == "terminated":
        return lambda terminated, info, total: terminated
    if isinstance(success, dict) and len(success) == 1:
        ((kind, value),) = success.items()
        if kind == "info" and isinstance(value, str):
            return lambda terminated, info, total: bool(info.get(value, False))
        if kind == "return_above" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return lambda terminated, info, total: total > value
    raise ValueError(f"success: {success!r}, must be terminated, {{info: KEY}} or {{return_above: NUMBER}}")


class GymnasiumTask:
    """E environments of one kind. Implements `adahi_ros.tasks.base.Task`.

    Each episode has an environment of its own, seeded for it alone. Joint velocities are differences
    of joint positions over the control period, for environments rarely say which entries they are. An
    episode that is done stands still from then on; one that the environment ends without success has
    failed.

    Args:
        description: what the file says.

    Raises:
        ValueError: the environment is not there or is not as described; names field and value.
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self._met = _met(description.success)
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
        self._steps = np.zeros(count, dtype=np.int64)
        self._return = np.zeros(count)
        self._ended = np.zeros(count, dtype=bool)
        self._met_now = np.zeros(count, dtype=bool)
        self._success = np.zeros(count, dtype=bool)

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
    def observation(self) -> np.ndarray:
        """(E, O) float32: joint positions, then state."""
        return self._observed[:, self._joints + self._state].astype(np.float32)

    @property
    def completed(self) -> np.ndarray:
        """(E, 1) bool, latched."""
        return self._success[:, None].copy()

    @property
    def fulfilled(self) -> np.ndarray:
        """(E, 1) bool: the criterion is met now."""
        return self._met_now[:, None].copy()

    @property
    def success(self) -> np.ndarray:
        """(E,) bool, latched."""
        return self._success.copy()

    @property
    def failed(self) -> np.ndarray:
        """(E,) bool, latched: the environment has ended the episode without success."""
        failed: np.ndarray = self._ended & ~self._success
        return failed

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: succeeded, failed, or out of steps."""
        done: np.ndarray = self._success | self._ended | (self._steps >= self.spec.max_steps)
        return done

    def step(self, action: np.ndarray) -> None:
        """Advance every episode that is not done by one control period.

        Args:
            action: (E, A), clipped to the action limits.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        action = self._checked(action)
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

    def render(self, index: int = 0) -> np.ndarray:
        """Return the environment's own picture of one episode, (height, width, 3) uint8.

        Raises:
            ValueError: the environment was made to draw none.
        """
        picture = self._envs[: len(self._steps)][index].render()
        if not isinstance(picture, np.ndarray):
            raise ValueError("kwargs: must have render_mode: rgb_array for pictures")
        return picture

    def _checked(self, action: np.ndarray) -> np.ndarray:
        action = np.asarray(action, dtype=np.float64)
        expected = (len(self._steps), self.spec.action_dim)
        if action.shape != expected:
            raise ValueError(f"action: shape {action.shape}, expected {expected}")
        if not np.all(np.isfinite(action)):
            row, column = np.argwhere(~np.isfinite(action))[0]
            name = self.spec.action_names[column]
            raise ValueError(f"action: {name} is {action[row, column]} at row {row}, expected finite numbers")
        return np.clip(action, self.spec.action_low, self.spec.action_high)


class FunctionExpert:
    """A function from the task to actions as an `Expert`."""

    def __init__(self, function: Callable[[Task], np.ndarray]) -> None:
        self._function = function

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def act(self, task: Task) -> np.ndarray:
        """(E, A)."""
        return self._function(task)


def load_description(path: Path) -> Description:
    """Read a task's YAML file.

    Raises:
        DescriptionError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, must describe a task")
    with _faults_of(path):
        values = yaml.safe_load(path.read_text())
        _check(values)
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return Description(**{**values, **lists})


def described_task(path: Path) -> GymnasiumTask:
    """Return the task that a YAML file describes.

    Raises:
        DescriptionError: a fault in the file, or the environment is not as it says.
        FileNotFoundError: no such file.
    """
    description = load_description(path)
    with _faults_of(path):
        return GymnasiumTask(description)


def described_expert(path: Path) -> Expert:
    """Return the expert that a task's YAML file names.

    Raises:
        DescriptionError: a fault in the file, or there is no expert of this name.
        FileNotFoundError: no such file.
    """
    named = load_description(path).expert
    module, _, name = named.partition(":")
    with _faults_of(path):
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"expert: {named!r}, must be module:name ({error})") from error
    expert: Expert = found() if isinstance(found, type) else FunctionExpert(found)
    return expert


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except yaml.YAMLError as error:
        raise DescriptionError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise DescriptionError(f"{path}: {error}") from error


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


# By the annotations of `Description`.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (_is_text, "a text"),
    "int": (lambda value: _is_number(value, int), "an integer"),
    "float": (lambda value: _is_number(value, int, float), "a number"),
    "tuple[str, ...]": (
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
        "a list of texts",
    ),
    "dict[str, str]": (
        lambda value: isinstance(value, dict) and all(map(_is_text, [*value, *value.values()])),
        "a mapping of texts to texts",
    ),
    "dict[str, Any]": (
        lambda value: isinstance(value, dict) and all(map(_is_text, value)),
        "a mapping with texts as keys",
    ),
    "str | dict[str, Any]": (lambda value: True, ""),  # `_met` says what is allowed
}


def _check(values: Any) -> None:
    """Check that values are the fields of a description, each of its type."""
    if not isinstance(values, dict):
        raise ValueError(f"task: {values!r}, must be a mapping")
    known = {entry.name: entry for entry in fields(Description)}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{name}: unknown, must be one of {', '.join(sorted(known))}")
        allowed, words = _KINDS[str(known[name].type)]
        if not allowed(value):
            raise ValueError(f"{name}: {value!r}, must be {words}")
    for name, entry in known.items():
        if name not in values and entry.default is MISSING and entry.default_factory is MISSING:
            raise ValueError(f"{name}: missing")


def _make_env(description: Description) -> gym.Env[np.ndarray, np.ndarray]:
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


def _checked_box(space: gym.Space[Any], role: str, names: Sequence[str]) -> gym.spaces.Box:
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"environment: {role} space {space}, must be a Box with one dimension")
    if space.shape != (len(names),):
        raise ValueError(f"{role}: {len(names)} names, must be {space.shape[0]} as the environment has")
    return space
