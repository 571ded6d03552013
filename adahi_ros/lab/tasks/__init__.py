# SPDX-License-Identifier: Apache-2.0
"""Simulated worlds, their experts and demonstrations.

A new task is a class that implements `base.Task`, a class that implements `base.Expert`, and an
entry in `TASKS`, or an entry point of another package; or, where a Gymnasium environment does it, a file
config/tasks/NAME.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from adahi_ros.core.assets import asset
from adahi_ros.core.registry import Registry
from adahi_ros.lab.tasks.task_interface import Expert, Task, TaskSpec


@dataclass(frozen=True)
class Registered:
    """Where a task and its expert are, as "module:class".

    Imported when made, for a simulator takes seconds.
    """

    task: str
    expert: str


TASKS: Registry[Registered] = Registry(
    "adahi_ros.tasks",
    {
        "ball": Registered("adahi_ros.lab.tasks.ball:BallBalancing", "adahi_ros.lab.tasks.ball:BallExpert"),
        "ball_camera": Registered(
            "adahi_ros.lab.tasks.camera:BallCamera", "adahi_ros.lab.tasks.camera:BallCameraExpert"
        ),
        "ball_instructed": Registered(
            "adahi_ros.lab.tasks.instructed:BallInstructed",
            "adahi_ros.lab.tasks.instructed:BallInstructedExpert",
        ),
        "ball_seen": Registered(
            "adahi_ros.lab.tasks.camera:BallSeen", "adahi_ros.lab.tasks.camera:BallSeenExpert"
        ),
        "kitchen": Registered(
            "adahi_ros.lab.tasks.kitchen:Kitchen", "adahi_ros.lab.tasks.kitchen_expert:KitchenExpert"
        ),
        "kitchen_camera": Registered(
            "adahi_ros.lab.tasks.camera:KitchenCamera", "adahi_ros.lab.tasks.camera:KitchenCameraExpert"
        ),
        "kitchen_instructed": Registered(
            "adahi_ros.lab.tasks.kitchen_instructed:KitchenInstructed",
            "adahi_ros.lab.tasks.kitchen_instructed:KitchenInstructedExpert",
        ),
        "metaworld": Registered(
            "adahi_ros.lab.tasks.metaworld:MetaWorld", "adahi_ros.lab.tasks.metaworld_expert:MetaWorldExpert"
        ),
        "metaworld_10": Registered(
            "adahi_ros.lab.tasks.metaworld:MetaWorld10",
            "adahi_ros.lab.tasks.metaworld_expert:MetaWorldExpert",
        ),
        "metaworld_50": Registered(
            "adahi_ros.lab.tasks.metaworld:MetaWorld50",
            "adahi_ros.lab.tasks.metaworld_expert:MetaWorldExpert",
        ),
        "swarm": Registered("adahi_ros.lab.tasks.swarm:Swarm", "adahi_ros.lab.tasks.swarm:SwarmExpert"),
        "swarm_instructed": Registered(
            "adahi_ros.lab.tasks.instructed:SwarmInstructed", "adahi_ros.lab.tasks.swarm:SwarmExpert"
        ),
    },
)

DESCRIBED = ".yaml"

__all__ = [
    "TASKS",
    "Expert",
    "Registered",
    "Task",
    "TaskSpec",
    "goal_is_for_target",
    "make",
    "make_expert",
    "names",
]


def names() -> list[str]:
    """Return the names of the tasks there are: those of `TASKS`, and those described in config/tasks."""
    return sorted([*TASKS, *(path.stem for path in asset("config/tasks").glob(f"*{DESCRIBED}"))])


def make(name: str) -> Task:
    """Return a new task by its name, or by a file that describes it (see gymnasium_description.py).

    Raises:
        ValueError: no such task; the message names those there are. Or a fault in the file, or the package.
        FileNotFoundError: no such file.
    """
    if name in TASKS:
        task: Task = _load(TASKS[name].task)()
        return task
    from adahi_ros.lab.tasks.gymnasium_task import described_task

    return described_task(_description(name))


def make_expert(name: str) -> Expert:
    """Return a new expert for the task of this name, or of this file.

    Raises:
        ValueError: no such task; the message names those there are. Or a fault in the file, or the package.
        FileNotFoundError: no such file.
    """
    if name in TASKS:
        expert: Expert = _load(TASKS[name].expert)()
        return expert
    from adahi_ros.lab.tasks.gymnasium_task import described_expert

    return described_expert(_description(name))


def goal_is_for_target(name: str) -> bool:
    """Whether the task of this name, or of this file, tells its goal to the target alone.

    A robot that is not simulated here, which has no task, tells all that it knows to all of its policies.
    """
    known = name in names() or (name.endswith(DESCRIBED) and Path(name).is_file())
    return known and make(name).spec.goal_for_target


def _load(place: str) -> Any:
    """Import the class at "module:class"."""
    module, _, kind = place.partition(":")
    return getattr(import_module(module), kind)


def _description(name: str) -> Path:
    if name.endswith(DESCRIBED):
        return Path(name)
    if name not in names():
        raise ValueError(f"task: '{name}', expected one of {', '.join(names())} or a file NAME{DESCRIBED}")
    return asset(f"config/tasks/{name}{DESCRIBED}")
