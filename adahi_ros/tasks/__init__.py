"""Simulated worlds, their experts and demonstrations.

A new task is a class that implements `base.Task`, a class that implements `base.Expert`, and an
entry in `TASKS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from adahi_ros.tasks.base import Expert, Task, TaskSpec


@dataclass(frozen=True)
class Registered:
    """Where a task and its expert are, as "module:class": imported when made, for a simulator takes seconds."""

    task: str
    expert: str


TASKS: dict[str, Registered] = {
    "ball": Registered("adahi_ros.tasks.ball:BallBalancing", "adahi_ros.tasks.ball:BallExpert"),
    "kitchen": Registered("adahi_ros.tasks.kitchen:Kitchen", "adahi_ros.tasks.kitchen_expert:KitchenExpert"),
    "swarm": Registered("adahi_ros.tasks.swarm:Swarm", "adahi_ros.tasks.swarm:SwarmExpert"),
}

__all__ = ["TASKS", "Expert", "Task", "TaskSpec", "make", "make_expert"]


def _registered(name: str) -> Registered:
    if name not in TASKS:
        raise ValueError(f"task: '{name}', expected one of {', '.join(sorted(TASKS))}")
    return TASKS[name]


def make(name: str) -> Task:
    """Return a new task by its registry name.

    Raises:
        ValueError: no such task; the message names those there are.
    """
    module, _, kind = _registered(name).task.partition(":")
    task: Task = getattr(import_module(module), kind)()
    return task


def make_expert(name: str) -> Expert:
    """Return a new expert for the task of this registry name.

    Raises:
        ValueError: no such task; the message names those there are.
    """
    module, _, kind = _registered(name).expert.partition(":")
    expert: Expert = getattr(import_module(module), kind)()
    return expert
