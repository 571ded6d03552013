# SPDX-License-Identifier: Apache-2.0
"""A simulated world in real time at the robot's end, with any client, and its logs.

The rules are those of `robot_simulator_node` (`CommandedTask`): an episode begins with its first command;
then every control period executes the newest command, and holds the robot still where that is older than
`MAX_COMMAND_AGE_S`. Clients that are ROS nodes drive that node, others the `RealTimeWorld` here. Both write
an `EpisodeLog` per episode, so one place counts what is compared.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from adahi_lab.history import History
from adahi_lab.tasks import make
from adahi_lab.tasks.commanded import CommandedTask, Motion
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.core.signature import GOAL, OBSERVATION, Signature

MAX_COMMAND_AGE_S = 0.15
CUT_STEPS = (5, 30)  # an outage begins in one of these


@dataclass(frozen=True)
class Drive:
    """The task of a client at the robot's end, stored as JSON.

    Attributes:
        task: of the world, a key of `adahi_lab.tasks.TASKS`.
        target: DIRECTORY/NAME of the target policy; clients read its signature.
        seed: of the world's draws, and of the times of cuts.
        first_episode: number of the first.
        episodes: how many, one after the other.
        outage_s: duration of one cut of the link per episode; 0 for none.
        address, port: of the server; ROS nodes find theirs by themselves.
        settings: of the client.
        judged: vla-eval steps the world (`judged_world.py`).
        restart: socket of a server that is killed, and back after `outage_s`, instead of the cut
            (`restarted_server.py`); empty for none.
    """

    task: str
    target: str
    seed: int
    first_episode: int
    episodes: int
    outage_s: float = 0.0
    address: str = ""
    port: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    judged: bool = False
    restart: str = ""

    @classmethod
    def load(cls, path: Path) -> Drive:
        """Read what `save` wrote."""
        return cls(**json.loads(path.read_text()))

    def save(self, path: Path) -> None:
        """Write it."""
        path.write_text(json.dumps(asdict(self)))


@dataclass
class EpisodeLog:
    """The log of one episode.

    Attributes:
        episode: its number.
        success: whether it met its criterion.
        start_s: time from its beginning to its first command.
        joints: (n, J) measured positions of the joints at the beginning of each control period.
        moved: for each period, whether a new command has come since the last.
        still: periods in which the newest command was too old, and the robot was held still.
        calls: requested plans.
        bytes_up, bytes_down: traffic of the link, whole Ethernet frames; 0 without a link.
        asked_speed, asked_acceleration: the largest that commands asked of a trajectory controller, in units
            of the joints per s and s^2; 0 where no positions are commanded.
        lasted_s: from the first observation to the end, where a judge says so; else 0.
    """

    episode: int
    success: bool = False
    start_s: float = 0.0
    joints: list[list[float]] = field(default_factory=list)
    moved: list[bool] = field(default_factory=list)
    still: int = 0
    calls: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    asked_speed: float = 0.0
    asked_acceleration: float = 0.0
    lasted_s: float = 0.0


def save_logs(logs: list[EpisodeLog], path: Path) -> None:
    """Write logs as JSON."""
    path.write_text(json.dumps([asdict(log) for log in logs]))


def load_logs(path: Path) -> list[EpisodeLog]:
    """Read what `save_logs` wrote."""
    return [EpisodeLog(**values) for values in json.loads(path.read_text())]


class Link(Protocol):
    """The interface of a world's link."""

    def carried(self) -> tuple[int, int] | None:
        """Return its traffic so far in bytes, up and down; None without a link."""

    def cut(self, for_s: float) -> None:
        """Cut the link for this many seconds."""


def cut_step(seed: int, episode: int) -> int:
    """Return the step at which an outage begins."""
    drawn = step_uniforms(seed, "closed_loop/outage", episode, 0, 1)[0]
    first, last = CUT_STEPS
    return first + int(drawn * (last - first))


class RecordedTask(CommandedTask):
    """A task moved by commands in real time; it logs the results, and cuts the link when due.

    Args:
        arguments: as `CommandedTask`.
        link: of the world.
        outage_s: duration of one cut per episode, at a step that depends on seed and episode; 0 for none.
        clock: seconds.

    Attributes:
        logs: of the finished episodes.
        log: of the current one.
    """

    def __init__(
        self,
        *arguments: Any,
        link: Link,
        outage_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logs: list[EpisodeLog] = []
        self._link, self._outage_s, self._clock = link, outage_s, clock
        super().__init__(*arguments)
        self._open()

    def _open(self) -> None:
        self.log = EpisodeLog(self.episode)
        self._moved = False
        self._opened_s = self._clock()
        self._carried = self._link.carried() or (0, 0)
        self._cut_at = cut_step(self._seed, self.episode) if self._outage_s else -1

    def take(self, *command: Any, **how: Any) -> bool:
        """See `CommandedTask`."""
        before = self._command
        moves = super().take(*command, **how)
        if self._command is not before:
            self._moved = True
            if before is None:
                self.log.start_s = self._clock() - self._opened_s
        return moves

    def motion(self, now_ns: int) -> Motion | None:
        """See `CommandedTask`; call once per control period."""
        motion = super().motion(now_ns)
        self.log.still += motion is not None and motion.late_s is not None
        return motion

    def advance(self, action: np.ndarray) -> bool:
        """See `CommandedTask`; an outage ends with its episode."""
        self.log.joints.append(self.task.joint_positions[0].tolist())
        self.log.moved.append(self._moved)
        self._moved = False
        if self.step == self._cut_at:
            self._link.cut(self._outage_s)
        over = super().advance(action)
        if over:
            carried = self._link.carried() or (0, 0)
            self.log.bytes_up, self.log.bytes_down = (
                now - before for now, before in zip(carried, self._carried, strict=True)
            )
            self.log.success = self.success
            if self.controller is not None:
                self.log.asked_speed = float(self.controller.peak_speed.max())
                self.log.asked_acceleration = float(self.controller.peak_acceleration.max())
            self.logs.append(self.log)
            if self._outage_s:
                self._link.cut(0.0)
        return over

    def begin_next(self, now_ns: int) -> bool:
        """See `CommandedTask`."""
        going_on = super().begin_next(now_ns)
        if going_on:
            self._open()
        return going_on


class RealTimeWorld:
    """A logged task that a thread moves in real time; a command's age starts at its arrival.

    Args:
        drive: the client's task.
        signature: of the target.
        link: of the world.
        clock: seconds.
    """

    def __init__(
        self,
        drive: Drive,
        signature: Signature,
        link: Link,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._drive, self._signature, self._link, self._clock = drive, signature, link, clock
        self.period_s = 1.0 / make(drive.task).spec.control_rate_hz
        self._lock = threading.Condition()
        self._new = False  # the current observation has not been read yet
        self._world: RecordedTask | None = None
        self._first = threading.Event()
        self.over = threading.Event()
        self.over.set()

    @property
    def logs(self) -> list[EpisodeLog]:
        """Logs of the finished episodes."""
        return [] if self._world is None else self._world.logs

    @property
    def left(self) -> int:
        """The number of episodes not started yet."""
        return self._drive.episodes - len(self.logs) - (not self.over.is_set())

    def begin(self) -> None:
        """Begin the next episode; its time starts at its first command."""
        drive = self._drive
        with self._lock:
            now_ns = self._now_ns()
            if self._world is None:
                task, first = make(drive.task), drive.first_episode
                arguments = (task, drive.seed, first, drive.episodes, False, MAX_COMMAND_AGE_S, now_ns)
                self._world = RecordedTask(
                    *arguments, link=self._link, outage_s=drive.outage_s, clock=self._clock
                )
            elif not self._world.begin_next(now_ns):
                raise ValueError(f"episodes: all {drive.episodes} are over")
            self._history = History(self._signature, 1)
            self._show()
            self._first.clear()
            self.over.clear()

    def _now_ns(self) -> int:
        return round(self._clock() * NANOSECONDS)

    def _show(self) -> None:
        assert self._world is not None
        task = self._world.task
        self._seen = self._history.push({OBSERVATION: task.observation, GOAL: task.goal})
        self._world.show(self._now_ns())
        self._new = True
        self._lock.notify_all()

    def observe(self, wait: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the target's current inputs: a window (H, O) and a goal (G,).

        Args:
            wait: for a new observation or the episode's end.
        """
        with self._lock:
            while wait and not self._new and not self.over.is_set():
                self._lock.wait()
            self._new = False
            return self._signature.window(self._seen)[0], self._signature.condition(self._seen)[0]

    def command(self, action: np.ndarray) -> None:
        """Execute an action (A,) from the next control period on."""
        with self._lock:
            if self._world is not None and not self.over.is_set():
                self._world.take(action, None, self._now_ns())
                self._first.set()

    def count_call(self) -> None:
        """Count the request of a plan."""
        with self._lock:
            if self._world is not None:
                self._world.log.calls += 1

    def tick(self) -> bool:
        """Advance by a control period if the first command has come; return whether the episode continues."""
        with self._lock:
            assert self._world is not None
            motion = self._world.motion(self._now_ns())
            if motion is None:
                return True
            if self._world.advance(motion.action):
                self.over.set()
                self._lock.notify_all()
                return False
            self._show()
            return True

    def run(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Run the current episode to its end, from its first command on.

        Commands of a client with a separate clock then arrive in the middle of periods, which tolerates
        drift.
        """
        self._first.wait()
        sleep(self.period_s / 2.0)
        due_s = self._clock()
        while self.tick():
            due_s += self.period_s
            sleep(max(0.0, due_s - self._clock()))

    def start(self) -> threading.Thread:
        """Begin an episode, and run it in a thread."""
        self.begin()
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        return thread
