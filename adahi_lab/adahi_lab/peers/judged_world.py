# SPDX-License-Identifier: Apache-2.0
"""The robot's end of a world that vla-eval steps: its `ModelServer`, with the interface of `RealTimeWorld`.

The judge (`vla_eval_judge.py`) sends every observation without waiting. A client takes the newest and sends
actions whenever it has some, from its own threads. Needs the packages of the peer `vla_eval_judge`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from vla_eval.api import serve_background
from vla_eval.model_servers.base import ModelServer, SessionContext

from adahi_lab.history import History
from adahi_lab.link.restarted_server import link_of
from adahi_lab.peers.closed_loop import Drive, EpisodeLog, Link, cut_step
from adahi_lab.tasks.instructions import embedded
from adahi_ros.core.signature import GOAL, OBSERVATION, Signature

JUDGE = "adahi_lab.peers.vla_eval_judge"
LOOK_S = 0.5
END_S = 60.0


class JudgedWorld(ModelServer):
    """See the module.

    Args:
        drive: the client's task.
        signature: of the target.
        link: of the world.

    Attributes:
        on_seen: called with every observation of the judge's, and whether it is an episode's first.
        logs: of the finished episodes; `still` counts the judge's hold actions. No period waits for a
            command, so `start_s` is 0.
        over: set between episodes.
        stopped: why no episodes follow; None while the judge runs.
    """

    def __init__(self, drive: Drive, signature: Signature, link: Link) -> None:
        self.logs: list[EpisodeLog] = []
        self.over = threading.Event()
        self.over.set()
        self.stopped: str | None = None
        self.on_seen: Callable[[dict[str, Any], bool], None] = lambda seen, first: None
        self._drive, self._signature, self._link = drive, signature, link
        self._lock = threading.Condition()
        self._new = False
        self._gripper = -1.0
        self._context: SessionContext
        self._loop: asyncio.AbstractEventLoop

    # The clients' side

    @property
    def left(self) -> int:
        """The number of episodes not started yet."""
        return self._drive.episodes - len(self.logs) - (not self.over.is_set())

    def start(self) -> None:
        """Wait until the judge has started the next episode.

        Raises:
            RuntimeError: the judge has ended.
        """
        with self._lock:
            while self.over.is_set():
                if self.stopped is not None:
                    raise RuntimeError(self.stopped)
                self._lock.wait()

    def observe(self, wait: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """See `RealTimeWorld.observe`."""
        with self._lock:
            while wait and not self._new and not self.over.is_set():
                self._lock.wait()
            self._new = False
            return self._signature.window(self._seen)[0], self._signature.condition(self._seen)[0]

    def command(self, action: np.ndarray) -> None:
        """Send an action (A,), for the judge's next step."""
        with self._lock:
            if self.over.is_set():
                return
            sent = np.array(action, dtype=np.float32)
            if sent[-1] == 0.0:  # the judge would close the gripper
                sent[-1] = self._gripper
            self._gripper, self._moved = float(sent[-1]), True
            asyncio.run_coroutine_threadsafe(self._context.send_action({"actions": sent}), self._loop)

    def count_call(self) -> None:
        """Count the request of a plan."""
        with self._lock:
            if not self.over.is_set():
                self._log.calls += 1

    def stop(self, why: str) -> None:
        """Let clients know that no episodes follow."""
        with self._lock:
            self.stopped = why
            self.over.set()
            self._lock.notify_all()

    # The judge's side

    async def on_episode_start(self, config: dict[str, Any], ctx: SessionContext) -> None:
        """See `ModelServer`."""
        with self._lock:
            drive, number = self._drive, len(self.logs)
            self._log = EpisodeLog(drive.first_episode + number)
            self._history = History(self._signature, 1)
            self._carried = self._link.carried() or (0, 0)
            self._cut_at = cut_step(drive.seed, self._log.episode) if drive.outage_s else -1
            self._moved, self._gripper = False, -1.0
            self._context, self._loop = ctx, asyncio.get_running_loop()

    async def on_observation(self, obs: dict[str, Any], ctx: SessionContext) -> None:
        """Show an observation to the client; its actions come by themselves."""
        with self._lock:
            log = self._log
            if first := not log.joints:
                self.over.clear()
            else:
                self._end_period()
            log.joints.append(np.asarray(obs["joints"]).tolist())
            observation = np.concatenate([obs["joints"], obs["state"]]).astype(np.float32)
            goal = embedded(obs["task_description"])
            self._seen = self._history.push({OBSERVATION: observation[None], GOAL: goal[None]})
            self._new = True
            self._lock.notify_all()
        self.on_seen(obs, first)
        if len(log.moved) == self._cut_at:
            self._link.cut(self._drive.outage_s)

    def _end_period(self) -> None:
        self._log.moved.append(self._moved)
        self._moved = False

    async def on_episode_end(self, result: dict[str, Any], ctx: SessionContext) -> None:
        """See `ModelServer`."""
        if self._drive.outage_s:
            self._link.cut(0.0)
        with self._lock:
            self._end_period()
            carried = self._link.carried() or (0, 0)
            log = self._log
            log.bytes_up, log.bytes_down = (
                now - before for now, before in zip(carried, self._carried, strict=True)
            )
            log.success = bool(result.get("metrics", {}).get("success"))
            log.still = int(result.get("rt_metrics", {}).get("stale_count", 0))
            log.lasted_s = float(result.get("elapsed_sec", 0.0))
            self.logs.append(log)
            self.over.set()
            self._lock.notify_all()


@contextmanager
def judged_world(drive: Drive, signature: Signature) -> Iterator[JudgedWorld]:
    """Yield a world, with its judge in a separate process; wait for the judge's end.

    Raises:
        RuntimeError: the judge failed; its output has the reason.
    """
    world = JudgedWorld(drive, signature, link_of(drive.restart))
    with serve_background(world) as served:
        command = [sys.executable, "-m", JUDGE, served.url, "--episodes", str(drive.episodes)]
        judge = subprocess.Popen([*command, "--seed", str(drive.seed)])

        def watch() -> None:
            world.stop(f"{JUDGE}: ended with code {judge.wait()}")

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield world
            if judge.wait(END_S) or len(world.logs) != drive.episodes:
                raise RuntimeError(f"{world.stopped}, after {len(world.logs)} of {drive.episodes} episodes")
        finally:
            judge.terminate()
