# SPDX-License-Identifier: Apache-2.0
"""The processes that run in a network, and their end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

END_S, LOOK_S = 5.0, 0.02

Find = Callable[[], Collection[int]]


def processes_in(network: int) -> set[int]:
    """Return the ids of the processes that run in a network namespace, given by its inode."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.stat(folder / "ns/net").st_ino == network:
                found.add(int(folder.name))
        except OSError:  # ended meanwhile, or none of ours
            continue
    return found


def gone(find: Find, within_s: float) -> bool:
    """Wait until there are no such processes any more; return whether that came to pass."""
    deadline_s = time.monotonic() + within_s
    while find():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_S)
    return True


def end_all(find: Find) -> None:
    """Ask processes to end; kill whoever does not, and whoever comes meanwhile."""
    _send(find(), signal.SIGTERM)
    if not gone(find, END_S):

        def killed() -> Collection[int]:
            _send(found := find(), signal.SIGKILL)
            return found

        gone(killed, END_S)


def _send(processes: Collection[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
