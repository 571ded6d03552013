"""A task that is moved by commands: which of them belongs to which step, and what happens where none does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adahi_ros.contract.times import NANOSECONDS
from adahi_ros.tasks.base import Task
from adahi_ros.tasks.demonstrations import Demonstrator


class Motion(NamedTuple):
    """What a control period executes.

    Attributes:
        action: (A,).
        late_s: age of the newest command where that is too old, and the robot holds still; else None.
    """

    action: np.ndarray
    late_s: float | None = None


class CommandedTask:
    """Episode after episode of a task, moved by commands, or by the task's expert.

    In lockstep the world waits for the command to its present state. Else it waits for the first command of
    an episode alone, and then executes the newest one, period by period. Times are stamps in ns, all by one
    clock; 0 is none.

    Args:
        task: is reset.
        seed: of its draws, and of the expert's noise.
        episode: number of the first.
        episodes: how many to run; 0 for no end.
        lockstep: as above.
        max_command_age_s: a command to an observation that is older is not executed; not in lockstep.
        now_ns: no command to an observation before it moves anything.
        demonstrator: acts in the place of commands; None where these come from elsewhere.

    Attributes:
        task: that is moved.
        episode, step: numbers of the present ones.
        over: the last episode is.
    """

    def __init__(
        self,
        task: Task,
        seed: int,
        episode: int,
        episodes: int,
        lockstep: bool,
        max_command_age_s: float,
        now_ns: int,
        demonstrator: Demonstrator | None = None,
    ) -> None:
        self.task = task
        self.episode = episode
        self.over = False
        self._seed = seed
        self._left = episodes
        self._lockstep = lockstep
        self._max_command_age_s = max_command_age_s
        self._demonstrator = demonstrator
        self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self.task.reset(self._seed, [self.episode])
        if self._demonstrator is not None:
            self._demonstrator.reset(self._seed, [self.episode])
        self.step = 0
        self._command: tuple[int, np.ndarray] | None = None  # the newest, and the stamp that it goes by
        self._begun_ns = now_ns
        self._first_ns = self._last_ns = 0  # when the present state was shown

    @property
    def listens(self) -> bool:
        """Whether a command may belong to anything: a state has been shown, and the end has not come."""
        return not self.over and self._last_ns > 0

    def show(self, now_ns: int) -> np.ndarray | None:
        """Note that the present state is shown, once more perhaps.

        Returns:
            (A,), what the expert wants; None where commands come from elsewhere.
        """
        self._last_ns = now_ns
        self._first_ns = self._first_ns or now_ns
        if self._demonstrator is None:
            return None
        wanted, executed = self._demonstrator.act(self.task)
        self._command = now_ns, executed[0]
        return wanted[0]

    def take(self, action: np.ndarray, stamp_ns: int | None, now_ns: int) -> bool:
        """Take a command.

        Args:
            action: (A,).
            stamp_ns: of the state that it belongs to; 0 where it names none, None where it cannot name one.
            now_ns: when it came.

        Returns:
            Whether the world is to move by it now: in lockstep, where it belongs to the present state.

        Raises:
            ValueError: its state is not there yet; the message names the field.
        """
        ahead_s = ((stamp_ns or 0) - self._last_ns) / NANOSECONDS
        if ahead_s > 0:
            raise ValueError(f"header.stamp: {ahead_s:.3f} s after the newest state, must be that of a state")
        if self._lockstep:
            return stamp_ns is None or 0 < self._first_ns <= stamp_ns <= self._last_ns
        goes_by_ns = stamp_ns or now_ns
        if goes_by_ns >= (self._begun_ns if self._command is None else self._command[0]):
            self._command = goes_by_ns, action
        return False

    def motion(self, now_ns: int) -> Motion | None:
        """Return what this control period executes; None where the episode's first command has not come."""
        if self._command is None:
            return None
        stamp_ns, action = self._command
        age_s = (now_ns - stamp_ns) / NANOSECONDS
        if self._demonstrator is None and age_s > self._max_command_age_s:
            return Motion(standing_still(self.task), age_s)
        return Motion(action)

    def advance(self, action: np.ndarray) -> bool:
        """Let a control period go by; return whether the episode is over.

        Args:
            action: (A,).
        """
        self.task.step(action[None])
        self.step += 1
        self._first_ns = 0
        return bool(self.task.done[0])

    @property
    def success(self) -> bool:
        """Whether the present episode has met its criterion."""
        return bool(self.task.success[0])

    def begin_next(self, now_ns: int) -> bool:
        """Begin the next episode; return whether there is one."""
        self.over = self._left == 1
        if not self.over:
            self._left = max(0, self._left - 1)
            self.episode += 1
            self._begin(now_ns)
        return not self.over


def standing_still(task: Task) -> np.ndarray:
    """Return the joints' own positions where these are commanded, else no motion, (A,)."""
    spec, joints = task.spec, task.joint_positions[0]
    return joints if spec.command_field == "positions" else np.zeros(spec.action_dim)
