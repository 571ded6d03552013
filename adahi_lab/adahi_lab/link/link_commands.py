# SPDX-License-Identifier: Apache-2.0
"""Runs commands at the ends of a link; they end with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from adahi_lab.link.emulator import EmulatedLink, LinkEnd, command_link
from adahi_lab.link.namespaces import end_all, gone
from adahi_ros.core.signals import leaving_on, with_parent

SERVER_PREFIX, CONTROL = "ADAHI_SERVER_PREFIX", "ADAHI_LINK_CONTROL"
END_S = 1.0


class CommandedLink:
    """The emulated link of this process; without one, all calls do nothing."""

    def __init__(self) -> None:
        control = os.environ.get(CONTROL)
        self._control = Path(control) if control else None

    def carried(self) -> tuple[int, int] | None:
        """Return its traffic so far in bytes, up and down; None without a link."""
        if self._control is None:
            return None
        now = command_link(self._control, {})
        return now["up"]["bytes"], now["down"]["bytes"]

    def cut(self, for_s: float) -> None:
        """Cut the link for this many seconds."""
        if self._control is not None:
            command_link(self._control, {"cut_s": for_s})


def environment_of(link: EmulatedLink) -> dict[str, str]:
    """Return the variables with which a command finds the other end, the link, and ROS nodes."""
    return {
        SERVER_PREFIX: shlex.join(link.server.prefix),
        CONTROL: str(link.control),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",  # the two ends are two hosts
    }


def run_commands(link: EmulatedLink, robot: Sequence[str], server: Sequence[str] = ()) -> int:
    """Run a command at the robot's end, and meanwhile another at the server's end.

    All processes at both ends are ended afterwards, also after Ctrl-C and SIGTERM.

    Returns:
        The exit status of the robot's command, as shells count it.
    """
    started: list[subprocess.Popen[bytes]] = []

    def running() -> set[int]:
        own = {process.pid for process in started if process.poll() is None}
        return own.union(link.robot.processes(), link.server.processes())

    with leaving_on(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            environment = environment_of(link)
            if server:
                started.append(_start(link.server, server, environment))
            started.append(_start(link.robot, robot, environment))
            status = started[-1].wait()
        except KeyboardInterrupt:  # the terminal has signalled the commands too; let them finish
            gone(running, END_S)
            raise
        finally:
            end_all(running)
    return status if status >= 0 else 128 - status


def _start(end: LinkEnd, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*end.prefix, *command],
        env={**os.environ, **environment},
        preexec_fn=partial(with_parent, signal.SIGTERM),
    )
