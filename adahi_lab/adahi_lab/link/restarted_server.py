# SPDX-License-Identifier: Apache-2.0
"""A server that is killed once per episode, and its successor, the warm standby of a supervisor.

    python -m adahi_lab.link.restarted_server SOCKET MODULE [ARGUMENTS]

imports a module, and runs it in a fork. A client of the socket sends a number of seconds: the fork gets
SIGKILL, and the next one starts after that time, or when the client closes the connection. Only the imports
are warm: it reads its policy, and listens 0.2 to 0.5 s later.
"""

from __future__ import annotations

import gc
import os
import runpy
import select
import signal
import socket
import sys
import time

from adahi_lab.link.link_commands import CommandedLink
from adahi_ros.core.signals import with_parent

MESSAGE_BYTES = 64
SETTLE_S = 2.0  # until a new server listens and DDS has discovered it, before the next episode


class RestartedServer(CommandedLink):
    """The link of this process, with a server that is killed where the link would be cut.

    Args:
        control: path of the socket.
    """

    def __init__(self, control: str) -> None:
        super().__init__()
        self._server, self._outage = control, socket.socket(socket.AF_UNIX)

    def cut(self, for_s: float) -> None:
        """Kill the server, and start the next one after this time; 0 waits until that one serves."""
        self._outage.close()
        if for_s:
            self._outage = socket.socket(socket.AF_UNIX)
            self._outage.connect(self._server)
            self._outage.send(str(for_s).encode())
        else:
            time.sleep(SETTLE_S)


def link_of(control: str) -> CommandedLink:
    """Return this process's link; with a socket's path, that of a `RestartedServer`."""
    return RestartedServer(control) if control else CommandedLink()


def main() -> None:
    """Run a server, and others after it, until SIGTERM."""
    control, module, *sys.argv[1:] = sys.argv[1:]
    runpy.run_module(module, run_name="imported")
    gc.collect()
    gc.freeze()  # a fork with LeRobot's imports would collect for half a second
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(control)
    listening.listen()
    while process := os.fork():
        connection, _ = listening.accept()
        with connection:  # closed before the next fork, which would keep it
            for_s = float(connection.recv(MESSAGE_BYTES))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            select.select([connection], [], [], for_s)
    with_parent(signal.SIGKILL)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
