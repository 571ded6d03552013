# SPDX-License-Identifier: Apache-2.0
"""Messages of the sensors: after a step, other callbacks such as a stop come before the next ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rclpy.node import Node

from adahi_ros.nodes.common.executors import LaterCall


class MessageIntake:
    """Takes messages in, and keeps those that arrive right after a step.

    Args:
        node: its executor serves the other callbacks.
        active: returns whether messages are taken.
        take: called with the topic of each message, and the message.
    """

    def __init__(self, node: Node, active: Callable[[], bool], take: Callable[[str, object], None]) -> None:
        self._active = active
        self._take = take
        self._kept: deque[tuple[str, object]] = deque()
        self._turn = LaterCall(node, self._serve_kept)

    def receive(self, topic: str, message: object, most: int) -> None:
        """Take a message now, or keep it and at most `most` of its topic."""
        if not self._active():
            return
        if not self._turn.waits:
            self._take(topic, message)
            return
        same = [place for place, (kept, _) in enumerate(self._kept) if kept == topic]
        if len(same) >= max(1, most):
            del self._kept[same[0]]
        self._kept.append((topic, message))

    def pause(self) -> None:
        """Keep the next messages until the other callbacks were served."""
        self._turn.request()

    def clear(self) -> None:
        """Drop the kept messages."""
        self._kept.clear()

    def _serve_kept(self) -> None:
        """Take the kept messages until there is another step."""
        while self._active() and self._kept and not self._turn.waits:
            self._take(*self._kept.popleft())
