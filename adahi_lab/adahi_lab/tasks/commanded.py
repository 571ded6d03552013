# SPDX-License-Identifier: Apache-2.0
"""A task moved by commands: assigns commands to steps, and handles steps without one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adahi_lab.tasks.demonstrations import Demonstrator
from adahi_lab.tasks.task_interface import Task
from adahi_lab.tasks.trajectory_controller import TrajectoryController
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.command_curve import Curve


class Motion(NamedTuple):
    """The motion of a control period.

    Attributes:
        action: (A,).
        late_s: age of the newest command if that is too old and the robot is held; else None.
        velocities: (A,) of the trajectory controller's set point; None without a controller.
    """

    action: np.ndarray
    late_s: float | None = None
    velocities: np.ndarray | None = None


class CommandedTask:
    """Episode after episode of a task, moved by commands, or by the task's expert.

    In lockstep the world waits for the command to its current state. Otherwise it waits only for the first
    command of an episode, and then executes the newest one in each period; positions go through a trajectory
    controller, and each period executes its set point at the period's end. Times are stamps in ns of one
    clock; 0 is none.

    Args:
        task: is reset.
        seed: of its draws, and of the expert's noise.
        episode: number of the first.
        episodes: how many to run; 0 for no end.
        lockstep: as above.
        max_command_age_s: a command with an older stamp is not executed; without a stamp, the age counts from
            receipt. Not in lockstep.
        now_ns: commands to earlier observations are ignored.
        demonstrator: acts instead of commands; None where commands come from outside.

    Attributes:
        task: moved by the commands.
        episode, step: current numbers.
        over: whether the last episode is over.
        controller: of the current episode; None in lockstep, in a demonstration, and for commands other than
            positions.
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
        self.controller: TrajectoryController | None = None
        self._period_s = 1.0 / task.spec.control_rate_hz
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
        self._command: tuple[int, np.ndarray] | None = None  # the newest, with the stamp that orders it
        by_positions = self.task.spec.command_field == "positions"
        if by_positions and not self._lockstep and self._demonstrator is None:
            self.controller = TrajectoryController(self.task.joint_positions[0])
        self._started_ns = now_ns
        self._first_ns = self._last_ns = 0  # when the current state was published

    @property
    def listens(self) -> bool:
        """Whether commands are accepted: a state has been published, and the end has not come."""
        return not self.over and self._last_ns > 0

    def show(self, now_ns: int) -> np.ndarray | None:
        """Note that the current state is published, perhaps again.

        Returns:
            (A,), the expert's action; None where commands come from outside.
        """
        self._last_ns = now_ns
        self._first_ns = self._first_ns or now_ns
        if self._demonstrator is None:
            return None
        wanted, executed = self._demonstrator.act(self.task)
        self._command = now_ns, executed[0]
        return wanted[0]

    def take(
        self,
        action: np.ndarray,
        stamp_ns: int | None,
        now_ns: int,
        curve: Curve | None = None,
    ) -> bool:
        """Take a command.

        Args:
            action: (A,).
            stamp_ns: of its state in lockstep, else the start of its time; 0 where it has none, None where
                its kind cannot have one.
            now_ns: time of arrival.
            curve: of a trajectory, see `TrajectoryController.receive`; None to reach the action in a period.

        Returns:
            Whether the world now moves with it: in lockstep, if it belongs to the current state.

        Raises:
            ValueError: its stamp is in the future, or its time is over; the message names the field.
        """
        if self._lockstep:
            ahead_s = ((stamp_ns or 0) - self._last_ns) / NANOSECONDS
            if ahead_s > 0:
                raise ValueError(
                    f"header.stamp: {ahead_s:.3f} s after the newest state, must be that of a state"
                )
            return stamp_ns is None or 0 < self._first_ns <= stamp_ns <= self._last_ns
        ahead_s = ((stamp_ns or 0) - now_ns) / NANOSECONDS
        if ahead_s > self._max_command_age_s:
            raise ValueError(
                f"header.stamp: {ahead_s:.3f} s in the future, must be at most {self._max_command_age_s:g} s"
            )
        starts_ns = min(stamp_ns or now_ns, now_ns)
        if starts_ns >= (self._started_ns if self._command is None else self._command[0]):
            self._command = starts_ns, action  # also a refused one begins the episode
            if self.controller is not None:
                stamp_s = self._seconds(stamp_ns) if stamp_ns else 0.0
                if curve is None:
                    unknown = np.full((1, len(action)), np.nan)
                    curve = Curve(np.array([self._period_s]), action[None], unknown)
                self.controller.receive(curve, stamp_s, self._seconds(now_ns))
        return False

    def _seconds(self, time_ns: int) -> float:
        """Return a time for the controller, near 0 to keep precision; 0 itself means at receipt."""
        return (time_ns - self._started_ns) / NANOSECONDS + 1.0

    def motion(self, now_ns: int) -> Motion | None:
        """Return the motion of this control period; None before the episode's first command."""
        if self._command is None:
            return None
        stamp_ns, action = self._command
        age_s = (now_ns - stamp_ns) / NANOSECONDS
        if self._demonstrator is None and age_s > self._max_command_age_s:
            still = standing_still(self.task)
            if self.controller is None:
                return Motion(still, age_s)
            self.controller.hold(still, self._seconds(now_ns))
            return Motion(still, age_s, np.zeros(len(still)))
        if self.controller is None:
            return Motion(action)
        reached = self.controller.sample(self._seconds(now_ns) + self._period_s)
        return Motion(reached.positions, None, reached.velocities)

    def advance(self, action: np.ndarray) -> bool:
        """Advance by a control period; return whether the episode is over.

        Args:
            action: (A,).
        """
        self.task.step(action[None])
        self.step += 1
        self._first_ns = 0
        return bool(self.task.done[0])

    @property
    def success(self) -> bool:
        """Whether the current episode has met its criterion."""
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
    """Return the joints' positions for position commands, else zeros, (A,)."""
    spec, joints = task.spec, task.joint_positions[0]
    return joints if spec.command_field == "positions" else np.zeros(spec.action_dim)
