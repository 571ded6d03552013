from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from adahi_lab.tasks.task_interface import Expert, Task


def _drive(task: Task, expert: Expert, seed: int, episodes: Sequence[int], steps: int) -> np.ndarray:
    task.reset(seed, episodes)
    expert.reset(seed, episodes)
    rows = []
    for _ in range(steps):
        task.step(expert.act(task))
        rows.append(np.concatenate([task.joint_positions, task.state, task.goal], axis=1))
    return np.stack(rows)


@pytest.fixture(scope="session")
def drive() -> Callable[..., np.ndarray]:
    """From a task and its expert, seed, episodes and steps to what was seen while the expert acted.

    (steps, E, J + S + G): joint positions and state in float64, and the goal.
    """
    return _drive
