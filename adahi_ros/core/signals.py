# SPDX-License-Identifier: Apache-2.0
"""Signals that end a process, even where the parent process ignores or blocks them.

A shell ignores SIGINT for background processes, and other parents block signals while they start processes.
Both are inherited, and Python changes neither.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LAUNCH = "ADAHI_LAUNCH_PID"  # the launch process, with which nodes end
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
NOBODYS = (signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler)


def with_parent(number: signal.Signals) -> None:
    """Have Linux send this process a signal when its parent ends, even if that was killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)


def leave(number: int, frame: FrameType | None) -> None:
    """Raise an exception, as a handler of a signal.

    Raises:
        KeyboardInterrupt: the signal was SIGINT.
        SystemExit: it was another signal; with a shell's status for it.
    """
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@contextmanager
def leaving_on(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals end the block by an exception, as `leave`, including ignored and blocked ones.

    Existing handlers stay. Only the main thread receives signals: in another thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    unheard = [number for number, handler in before.items() if handler in NOBODYS]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        for number in unheard:
            signal.signal(number, leave)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in unheard:
            signal.signal(number, before[number])
