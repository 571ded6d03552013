# SPDX-License-Identifier: Apache-2.0
"""The doors of a verifier, each in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from adahi_ros.doors.interface import Door, OpenDoor
from adahi_ros.protocol.request import Request
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import Sender
from adahi_ros.server.service import ServedTargets

ENDING_S = 3.0  # until a door that does not end is left alone

Submit = Callable[[Turn[Sender], Callable[[], Request]], object]


class DoorThread:
    """Serves a door; a `Front` of it.

    Args:
        door: listens.
        targets: see `Front`.
        submit: see `Front`; called in the door's thread.
    """

    def __init__(self, door: OpenDoor, targets: ServedTargets, submit: Submit) -> None:
        self.targets = targets
        self._door, self._submit = door, submit
        self._loop = asyncio.new_event_loop()
        self._serving = self._loop.create_task(door.serve(self))
        self._thread = threading.Thread(target=self._run, name=f"door {door.address}", daemon=True)
        self._thread.start()

    def submit(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        """See `Front`."""
        self._submit(turn, read)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serving)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    def close(self) -> None:
        """End all connections, and stop listening."""
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(ENDING_S)
        self._door.close()


def open_doors(
    doors: Mapping[str, Door], targets: ServedTargets, submit: Submit, logger: Any, closing: ExitStack
) -> str:
    """Open doors; return the fault of the first that cannot be opened, or else ''.

    Args:
        doors: by name.
        targets: that they serve.
        submit: see `DoorThread`.
        logger: the node's.
        closing: closes those that are open.
    """
    for name, door in doors.items():
        try:
            opened = door.open()
        except ValueError as error:
            return f"doors.{name}.{error}"
        closing.callback(DoorThread(opened, targets, submit).close)
        logger.info(f"the door {name} is open at {opened.address}")
        if opened.warning:
            logger.warning(opened.warning)
    return ""
