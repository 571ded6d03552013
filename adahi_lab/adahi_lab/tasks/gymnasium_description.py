# SPDX-License-Identifier: Apache-2.0
"""The YAML file of a Gymnasium environment as a task, and its checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from adahi_ros.core.schema import Listed, Schema, Text, above, load, must
from adahi_ros.core.texts import abridged


def _are_different(names: tuple[str, ...]) -> bool:
    return bool(names) and len(set(names)) == len(names)


Names = Annotated[Listed[Text], must("be a list of texts, at least one name and none twice", _are_different)]


@dataclass(frozen=True)
class Description(Schema):
    """The content of a task's YAML file.

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
        kwargs: for `gymnasium.make`.
        modules: imported first, those that register the environment.
        joints: from joint names to the entries that are their positions (rad or m).
        goal: entries that are the goal: constant in an episode, and no part of the state.
        command_names: what the action commands; empty where it is the joints.
    """

    name: Text
    environment: Text
    frame_id: Text
    control_rate_hz: Annotated[float, above(0.0, sys.float_info.max)]
    max_steps: Annotated[int, must("be an integer above 0", lambda steps: steps > 0)]
    observation: Names
    action: Names
    command_field: Text
    success: Any
    success_text: Text
    subtask: Text
    expert: Annotated[str, must("be module:name", lambda name: name.count(":") == 1)]
    kwargs: dict[Text, Any] = field(default_factory=dict)
    modules: Listed[Text] = ()
    joints: dict[Text, Text] = field(default_factory=dict)
    goal: Listed[Text] = ()
    command_names: Listed[Text] = ()

    def __post_init__(self) -> None:
        roles = {"joints": list(self.joints.values()), "goal": list(self.goal)}
        for role, entries in roles.items():
            for entry in entries:
                if entry not in self.observation:
                    raise ValueError(f"{role}: {entry!r}, must be one of {', '.join(self.observation)}")
        entries = roles["joints"] + roles["goal"]
        if len(set(entries)) < len(entries):
            raise ValueError(f"joints, goal: {entries}, must name no entry twice")
        criterion(self.success)


Criterion = Callable[[bool, Mapping[str, object], float], bool]
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
        ValueError: something in it is missing, unknown, of the wrong type or out of range; it names the file.
        FileNotFoundError: no such file.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{abridged(str(path))}: no such file, must describe a task")
    return load(Description, path)
