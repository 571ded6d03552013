"""Waiting for another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(done: Callable[[], bool], limit_s: float = 20.0) -> None:
    """Look every millisecond until something is so; fail where it is not within a limit."""
    deadline_s = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(1e-3)
