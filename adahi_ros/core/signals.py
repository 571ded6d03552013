# SPDX-License-Identifier: Apache-2.0
"""Signals that ask a process to end, heard whatever the process that started it made of them.

A shell ignores SIGINT for what it starts in the background, and others block signals while they start
something. Both are inherited, and Python leaves both as they are.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LAUNCH = "ADAHI_LAUNCH_PID"  # the variable in which a launch file tells nodes the process that they end with
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
NOBODYS = (signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler)


def with_parent(number: signal.Signals) -> None:
    """Have Linux send this process a signal when its parent is gone, even if that was killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)


def leave(number: int, frame: FrameType | None) -> None:
    """End what is done by an exception, as a handler of a signal.

    Raises:
        KeyboardInterrupt: the signal was SIGINT.
        SystemExit: it was another; with the status that shells give it.
    """
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


@contextmanager
def leaving_on(*numbers: signal.Signals) -> Iterator[None]:
    """Have signals end the block by an exception, as `leave`; those that are ignored or blocked, too.

    A handler that somebody has set stays. Only the main thread hears signals: in another, nothing changes.
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
