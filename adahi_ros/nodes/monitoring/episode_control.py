# SPDX-License-Identifier: Apache-2.0
"""Starts, saves and discards episodes for a person at the keys, and for buttons that call services."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rclpy.node import Node
from std_srvs.srv import Trigger

from adahi_ros.bags.bag_writer import BagWriter, UnwrittenBag
from adahi_ros.bags.definitions import BagError
from adahi_ros.bags.episodes import DISCARD, INSTRUCT, QUIT, EpisodeError, Episodes, Keys, status_lines
from adahi_ros.bags.recording import Recording
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.monitoring.episode_terminal import EpisodeTerminal

MEASURE_PERIOD_S = 1.0
HELP = "s or Enter: start, save | d: discard | i: next instruction | q: save and end"
Bag = BagWriter | UnwrittenBag
Switch = Callable[[Bag], Recording]
"""Goes on with another bag; returns the recording of the last one, closed."""


class EpisodeControl:
    """Keys, services and the status of the recorder of a folder of episodes.

    Args:
        node: gets the services and a timer.
        folder: of the episodes.
        storage: format of the bags.
        most_s: how long an episode may take until it is saved; 0 for no limit.
        came: number of messages so far by topic, which the node counts.
        switch: see `Switch`.
        instruct: takes an instruction for the next episode.
        end: ends the process.

    Raises:
        BagError: the folder is a bag.
    """

    def __init__(
        self,
        node: Node,
        folder: Path,
        storage: str,
        most_s: float,
        came: Mapping[str, int],
        switch: Switch,
        instruct: Callable[[str], None],
        end: Callable[[], None],
    ) -> None:
        self._episodes = Episodes(folder)
        self._storage, self._most_s, self._came = storage, most_s, came
        self._switch, self._instruct, self._finish = switch, instruct, end
        self._keys = Keys()
        self.instruction = ""
        """The present one, for the status."""
        self.failed = False
        """Whether a saved bag is not whole, or has no message of the contract."""
        self._started_s = self._measured_s = time.monotonic()
        self._before = dict(came)
        self._rates: dict[str, float] = dict.fromkeys(came, 0.0)
        for name, act in {"start": self.start, "save": self.save, "discard": self.discard}.items():
            node.create_service(Trigger, f"~/{name}_episode", partial(self._serve, act))
        steady_timer(node, MEASURE_PERIOD_S, self._measure)
        self.terminal = EpisodeTerminal() if EpisodeTerminal.usable() else None

    def start(self) -> str:
        """Start an episode; return what happened.

        Raises:
            EpisodeError: none can start now.
            BagError: its bag cannot be written.
        """
        path = self._episodes.next(self._free_bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._switch(BagWriter(path, self._storage))
        self._episodes.running, self._started_s = path, time.monotonic()
        return f"{path}: started"

    def save(self) -> str:
        """Save the running episode; return what is in it.

        Raises:
            EpisodeError: none is running, or it could not be written.
        """
        passed_s = time.monotonic() - self._started_s
        self._episodes.end(kept=True)
        ended = self._switch(UnwrittenBag(self._episodes.folder))
        self.failed |= bool(ended.exit_code)
        if not ended.summary:
            raise EpisodeError("; ".join(ended.warnings))
        return "\n".join([f"{ended.summary}, {passed_s:.1f} s: saved", *ended.warnings])

    def discard(self) -> str:
        """Delete the running episode; return what happened.

        Raises:
            EpisodeError: none is running.
        """
        path = self._episodes.end(kept=False)
        self._switch(UnwrittenBag(self._episodes.folder))
        shutil.rmtree(path)
        return f"{path}: discarded"

    def take_keys(self) -> None:
        """Do what the keys say; save an episode that takes its longest; show the status."""
        if self._most_s and time.monotonic() - self._started_s >= self._most_s:
            self.interrupted()
        if self.terminal is None:
            return
        command = self._keys.take(self.terminal.keys(), time.monotonic())
        if command == INSTRUCT:
            self.instruction = self._keys.instruction
            self._instruct(self.instruction)
        elif command == QUIT:
            self._finish()
        elif command is not None:
            toggled = self.start if self._episodes.running is None else self.save
            self._do(self.discard if command == DISCARD else toggled)
        typed = self._keys.typed
        self.terminal.show(*self.status, HELP if typed is None else f"instruction (Enter, Esc): {typed}_")

    def interrupted(self) -> None:
        """Save the episode that is running, if any."""
        if self._episodes.running is not None:
            self._do(self.save)

    def close(self) -> None:
        """Save a running episode, and restore the terminal."""
        self.interrupted()
        if self.terminal is not None:
            self.terminal.close()
        print(self._episodes.outcome, flush=True)

    @property
    def status(self) -> tuple[str, str]:
        """See `status_lines`."""
        passed_s = time.monotonic() - self._started_s
        return status_lines(self._episodes, passed_s, self._rates, self.instruction, self._free_bytes)

    @property
    def _free_bytes(self) -> int:
        folder = self._episodes.folder.absolute()
        return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free

    def _measure(self) -> None:
        now_s, came = time.monotonic(), dict(self._came)
        passed_s = now_s - self._measured_s
        self._rates = {
            topic: (count - self._before.get(topic, 0)) / passed_s for topic, count in came.items()
        }
        self._before, self._measured_s = came, now_s

    def _do(self, act: Callable[[], str]) -> tuple[bool, str]:
        """Do one thing, and write what happened; return whether it was possible, and what happened."""
        try:
            done, lines = True, act()
        except (EpisodeError, BagError, OSError) as error:
            done, lines = False, str(error)
        for line in lines.splitlines():
            if self.terminal is not None:
                self.terminal.warning(line)
            else:
                print(line, file=sys.stdout if done else sys.stderr, flush=True)
        return done, lines

    def _serve(
        self, act: Callable[[], str], request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        response.success, response.message = self._do(act)
        return response
