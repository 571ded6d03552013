# SPDX-License-Identifier: Apache-2.0
"""Simulated worlds, their experts and demonstrations.

A new task is a class that implements `Task`, a class that implements `Expert`, and an entry in
`TASKS`, or an entry point of another package; or, for a Gymnasium environment, a file config/tasks/NAME.yaml.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from adahi_lab.tasks.task_interface import Expert, Task
from adahi_ros.core.assets import asset
from adahi_ros.core.registry import Registry, at_place
from adahi_ros.core.schema import shown
from adahi_ros.core.texts import nearest


@dataclass(frozen=True)
class Registered:
    """Where a task and its expert are, as "module:class".

    Imported when made, because importing a simulator takes seconds.

    Attributes:
        task: for demonstrations and training.
        expert: of the task.
        evaluated: the same task with the starts of a benchmark, which no training may see; empty for none.
        listed: among `names`; else a view of another task, without a calibration of its own.
    """

    task: str
    expert: str
    evaluated: str = ""
    listed: bool = True


def _shipped(module: str, task: str, expert: str = "", evaluated: str = "") -> Registered:
    """Return the location of a task of this folder; its expert is beside it, or at "module:class"."""
    place = f"{__name__}.{module}:{task}"
    acts = f"{__name__}.{expert}" if ":" in expert else f"{place}Expert"
    return Registered(place, acts, f"{__name__}.{module}:{evaluated}" if evaluated else "")


def _view(*place: str) -> Registered:
    return replace(_shipped(*place), listed=False)


METAWORLD = "metaworld:MetaWorldExpert"
TASKS: Registry[Registered] = Registry(
    "adahi_lab.tasks",
    {
        "ball": _shipped("ball", "BallBalancing", "ball:BallExpert"),
        "ball_camera": _shipped("camera", "BallCamera"),
        "ball_instructed": _shipped("instructed", "BallInstructed"),
        "ball_seen": _shipped("camera", "BallSeen"),
        "kitchen": _shipped("kitchen", "Kitchen", "kitchen_expert:KitchenExpert"),
        "kitchen_camera": _shipped("camera", "KitchenCamera"),
        "kitchen_instructed": _shipped("kitchen_instructed", "KitchenInstructed"),
        "libero_goal": _shipped(
            "libero.goal", "LiberoGoal", "libero.expert:LiberoGoalExpert", "LiberoGoalStates"
        ),
        "metaworld": _shipped("metaworld", "MetaWorld", METAWORLD),
        "metaworld_10": _shipped("metaworld", "MetaWorld10", METAWORLD),
        "metaworld_50": _shipped("metaworld", "MetaWorld50", METAWORLD),
        "metaworld_given": _view("metaworld", "MetaWorldGiven", METAWORLD),
        "metaworld_reworded": _view("metaworld", "MetaWorldReworded", METAWORLD),
        "metaworld_seen": _view("metaworld_camera", "MetaWorldSeen"),
        "ogbench_puzzle": _view("ogbench", "OGBenchPuzzle"),
        "swarm": _shipped("swarm", "Swarm"),
        "swarm_instructed": _shipped("instructed", "SwarmInstructed", "swarm:SwarmExpert"),
    },
)
DESCRIBED = ".yaml"


def names() -> list[str]:
    """Return the names of all listed tasks: those of `TASKS`, and those described in config/tasks."""
    listed = [name for name in TASKS if getattr(TASKS.shipped.get(name), "listed", True)]
    return sorted([*listed, *(path.stem for path in asset("config/tasks").glob(f"*{DESCRIBED}"))])


def make(name: str) -> Task:
    """Return a new task by its name, or by a file that describes it (see gymnasium_description.py).

    Raises:
        ValueError: no such task (the message lists all), or a fault in the file or the package.
        FileNotFoundError: no such file.
    """
    if name in TASKS:
        task: Task = at_place(TASKS[name].task)()
        return task
    from adahi_lab.tasks.gymnasium_task import described_task

    return described_task(_description(name))


def make_evaluated(name: str) -> Task:
    """Return a new task as an evaluation runs it: from a benchmark's own starts, where the task has them.

    Raises:
        ValueError: see `make`.
        FileNotFoundError: likewise.
    """
    if name in TASKS and TASKS[name].evaluated:
        task: Task = at_place(TASKS[name].evaluated)()
        return task
    return make(name)


def make_expert(name: str) -> Expert:
    """Return a new expert for the task of this name, or of this file.

    Raises:
        ValueError: no such task (the message lists all), or a fault in the file or the package.
        FileNotFoundError: no such file.
    """
    if name in TASKS:
        expert: Expert = at_place(TASKS[name].expert)()
        return expert
    from adahi_lab.tasks.gymnasium_task import described_expert

    return described_expert(_description(name))


def goal_is_for_target(name: str) -> bool:
    """Whether only the target gets the goal of the task with this name or file.

    All policies of a robot that is not simulated here, and so has no task, get the goal.
    """
    known = name in TASKS or name in names() or (name.endswith(DESCRIBED) and os.path.isfile(name))
    return known and make(name).spec.goal_for_target


def _description(name: str) -> Path:
    if name.endswith(DESCRIBED):
        return Path(name)
    if name not in names():
        question = nearest(name, names())
        raise ValueError(
            f"task: {shown(name)}{question}, expected one of {', '.join(names())} or a file NAME{DESCRIBED}"
        )
    return asset(f"config/tasks/{name}{DESCRIBED}")
