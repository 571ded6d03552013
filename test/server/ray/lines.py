"""What Ray's policies say while they work."""

from __future__ import annotations

import threading

LIMIT_S = 150.0  # a busy machine starts Ray in more than a minute


class Lines:
    """Keeps lines that any thread says."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._new = threading.Condition()

    def say(self, line: str) -> None:
        with self._new:
            self._lines.append(line)
            self._new.notify_all()

    def wait_for(self, what: str) -> None:
        """Wait for a line that has these words."""
        with self._new:
            assert self._new.wait_for(lambda: any(what in line for line in self._lines), LIMIT_S), self._lines
