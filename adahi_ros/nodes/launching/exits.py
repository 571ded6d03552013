# SPDX-License-Identifier: Apache-2.0
"""Ends a launch when a node dies, and nodes when their launch dies.

By default, launch continues without a dead node, and ends with exit code 0. If launch is killed or gets
SIGTERM, its nodes keep running.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Final

from adahi_ros.core.signals import LAUNCH

if TYPE_CHECKING:
    from launch.events.process import ProcessExited
    from launch.launch_context import LaunchContext

RESPAWN: Final = "Start the node again if it dies; if false, the launch then ends with exit code 1"
RESPAWN_DELAY_S: Final = 1.0
ENDS_WITH_LAUNCH: Final = {LAUNCH: str(os.getpid())}  # environment of nodes, which end with this process
# Ctrl-C reaches the nodes, too. Launch may notice a node's end before it notices Ctrl-C.
REQUESTED_ENDS: Final = (0, -signal.SIGINT, -signal.SIGTERM)


def fail_with_it(event: ProcessExited, context: LaunchContext) -> None:
    """End the launch with exit code 1 if a node has died; not if the node was asked to end.

    Args:
        event: launch's ProcessExited.
        context: launch's LaunchContext.

    Raises:
        RuntimeError: it has died. Launch prints the error, ends the other processes, and returns 1.
    """
    if event.returncode not in REQUESTED_ENDS and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} has died, exit code {event.returncode}")


def leave_interrupts_to_launch(context: LaunchContext) -> None:
    """Keep Ctrl-C from raising KeyboardInterrupt within launch's callbacks.

    Launch receives signals through Python's wakeup file descriptor, but keeps Python's default handler. If
    that raises in a callback that handles a node's start or end, the rest of the callback is lost. Launch
    then waits for ever for a node that it does not know, or that is gone.

    Args:
        context: launch's LaunchContext.
    """
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # no event loop is running, so launch would not notice
        raise KeyboardInterrupt from None
