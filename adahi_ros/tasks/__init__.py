"""Simulated worlds, their experts and demonstrations.

The registries are plain dicts: a new task is a class that implements `base.Task`, a class that
implements `base.Expert`, and an entry in each.
"""

from __future__ import annotations

from adahi_ros.tasks.ball import BallBalancing, BallExpert
from adahi_ros.tasks.base import Expert, Task, TaskSpec

TASKS: dict[str, type[Task]] = {"ball": BallBalancing}
EXPERTS: dict[str, type[Expert]] = {"ball": BallExpert}

__all__ = ["EXPERTS", "TASKS", "Expert", "Task", "TaskSpec", "make", "make_expert"]


def make(name: str) -> Task:
    """Return a new task by its registry name.

    Raises:
        ValueError: no such task; the message names those there are.
    """
    if name not in TASKS:
        raise ValueError(f"task: '{name}', expected one of {', '.join(sorted(TASKS))}")
    return TASKS[name]()


def make_expert(name: str) -> Expert:
    """Return a new expert for the task of this registry name.

    Raises:
        ValueError: no such expert; the message names those there are.
    """
    if name not in EXPERTS:
        raise ValueError(f"expert: '{name}', expected one of {', '.join(sorted(EXPERTS))}")
    return EXPERTS[name]()
