# SPDX-License-Identifier: Apache-2.0
"""The expert of Meta-World: the library's scripted policies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from adahi_ros.lab.tasks.metaworld import MetaWorld
from adahi_ros.lab.tasks.metaworld_world import load_library
from adahi_ros.lab.tasks.task_interface import Task

GAIN = 2.0  # on their motions, which are meant for a hand that nothing disturbs


class MetaWorldExpert:
    """Does what each episode asks for. Implements `Expert`; remembers nothing.

    Raises:
        ValueError: Meta-World is not installed; the message says how to.
    """

    def __init__(self) -> None:
        self._kinds = load_library()[1]
        self._policies: dict[str, Any] = {}

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Remembers nothing."""

    def act(self, task: Task) -> np.ndarray:
        """Return the hand's velocities and the grippers, (E, 4).

        Raises:
            ValueError: the task is another one.
        """
        if not isinstance(task, MetaWorld):
            raise ValueError(f"task: {task.spec.name!r}, must be one of Meta-World's")
        read = task.library_observations
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they say that what they want will be clipped
            acts = [
                self._policy(errand.policy).get_action(row)
                for errand, row in zip(task.errands, read, strict=True)
            ]
        wanted = np.array(acts, dtype=np.float64) * (GAIN, GAIN, GAIN, 1.0)
        return np.clip(wanted, -1.0, 1.0) * task.spec.action_high

    def _policy(self, name: str) -> Any:
        if name not in self._policies:
            self._policies[name] = self._kinds[name]()
        return self._policies[name]
