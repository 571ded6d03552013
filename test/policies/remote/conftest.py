"""What tests of targets behind servers share."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 20.0
LOOK_S = 0.005


class Clock:
    """Goes when it is told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def wait_for(done: Callable[[], bool]) -> None:
    """Wait until something is so that the other thread of a connection finds out."""
    deadline_s = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(LOOK_S)
