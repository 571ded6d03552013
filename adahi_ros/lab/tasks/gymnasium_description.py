# SPDX-License-Identifier: Apache-2.0
"""What the YAML file of a Gymnasium environment as a task says, and its checks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from adahi_ros.core.yaml_files import read_yaml


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
            value = getattr(self, name)
            if not 0 < value <= sys.float_info.max:
                raise ValueError(f"{name}: {value}, must be finite and above 0")
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
        criterion(self.success)
        if self.expert.count(":") != 1:
            raise ValueError(f"expert: {self.expert!r}, must be module:name")


Criterion = Callable[[bool, Mapping[str, Any], float], bool]
"""From terminated, info and return so far to whether the criterion is met now."""


def criterion(success: str | dict[str, Any]) -> Criterion:
    """Return the criterion that a description names.

    Raises:
        ValueError: it names none.
    """
    if success == "terminated":
        return lambda terminated, info, total: terminated
    if isinstance(success, dict) and len(success) == 1:
        ((kind, value),) = success.items()
        if kind == "info" and isinstance(value, str):
            return lambda terminated, info, total: bool(info.get(value, False))
        if kind == "return_above" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return lambda terminated, info, total: total > value
    raise ValueError(f"success: {success!r}, must be terminated, {{info: KEY}} or {{return_above: NUMBER}}")


def load_description(path: Path) -> Description:
    """Read a task's YAML file.

    Raises:
        DescriptionError: something in it is missing, unknown, of the wrong type or out of range.
        FileNotFoundError: no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, must describe a task")
    with faults_of(path):
        values = read_yaml(path)
        _check(values)
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return Description(**{**values, **lists})


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Make what is wrong in here a `DescriptionError` that names the file."""
    try:
        yield
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
    "str | dict[str, Any]": (lambda value: True, ""),  # `criterion` says what is allowed
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
