# SPDX-License-Identifier: Apache-2.0
"""Messages that wait for the next step: the newest of each topic."""

from __future__ import annotations

from collections import deque


class KeptMessages:
    """Messages of several topics in the order of arrival; false while there is none."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, object]] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, topic: str, message: object, most: int) -> None:
        """Keep a message, and at most `most` of its topic."""
        same = [place for place, (kept, _) in enumerate(self._kept) if kept == topic]
        if len(same) >= max(1, most):
            del self._kept[same[0]]
        self._kept.append((topic, message))

    def pop(self) -> tuple[str, object]:
        """Remove and return the oldest message with its topic."""
        return self._kept.popleft()

    def clear(self) -> None:
        """Remove all."""
        self._kept.clear()
