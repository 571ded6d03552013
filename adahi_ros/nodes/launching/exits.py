# SPDX-License-Identifier: Apache-2.0
"""What becomes of a launch whose node dies, and of nodes whose launch does.

Launch itself would go on without a node, and end with 0; and where it is killed, or gets SIGTERM, leave its
nodes behind.
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

RESPAWN: Final = "Start the node anew where it dies; else the launch ends, with exit code 1"
RESPAWN_DELAY_S: Final = 1.0
ENDS_WITH_LAUNCH: Final = {LAUNCH: str(os.getpid())}  # as environment of nodes, which heed it
# Ctrl-C reaches the nodes too, and launch may hear that one has ended before it has heard of that.
ASKED_TO_END: Final = (0, -signal.SIGINT, -signal.SIGTERM)


def fail_with_it(event: ProcessExited, context: LaunchContext) -> None:
    """End the launch, with exit code 1, where a node has died; not where it was asked to end.

    Args:
        event: launch's ProcessExited.
        context: launch's LaunchContext.

    Raises:
        RuntimeError: it has died. Launch says so, and ends what else it started; nothing else gives it an
            exit code.
    """
    if event.returncode not in ASKED_TO_END and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} has died, exit code {event.returncode}")


def leave_interrupts_to_launch(context: LaunchContext) -> None:
    """Have Ctrl-C not raise KeyboardInterrupt amid what launch does, which hears of it otherwise.

    It learns of signals by Python's wakeup file descriptor, and leaves Python's own handler as it is. Where
    that raises in a callback that starts a node, or hears of its end, the rest of the callback is lost:
    launch then waits for ever for a node that it does not know, or that is gone.

    Args:
        context: launch's LaunchContext.
    """
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # nobody is there who would hear of it
        raise KeyboardInterrupt from None
