# SPDX-License-Identifier: Apache-2.0
"""Which executor spins a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node


def executor_of(node: Node) -> Executor:
    """Return an executor that spins a node.

    `EventsExecutor` executes callbacks in the order in which their events came. `SingleThreadedExecutor`
    builds a wait set in Python at every event, from everything that the node has: for a control step that
    costs more processor time than the step itself. Humble's rclpy has no other.
    """
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        executor: Executor = SingleThreadedExecutor(context=node.context)
    else:
        executor = EventsExecutor(context=node.context)
    executor.add_node(node)
    return executor


def with_info(callback: Callable[[Any, Mapping[str, int]], None]) -> Any:
    """Return a subscription's callback that gets a message and its information from either executor.

    `EventsExecutor` of rclpy 7.1 passes both as one tuple.
    """

    @wraps(callback)  # from its signature rclpy sees that it takes both
    def received(*taken: Any) -> None:
        message, information = taken[0] if len(taken) == 1 else taken
        callback(message, information)

    return received


class Turn:
    """Calls something once everything is served that has come so far.

    `EventsExecutor` serves events in their order, and keeps all of them. Where one kind costs more time than
    it has, everything else waits behind more and more of that kind. So such work waits for its turn.

    Attributes:
        waits: whether it is to be called.

    Args:
        node: whose executor calls it; without an executor it is called at once.
        call: what to do.
    """

    def __init__(self, node: Node, call: Callable[[], None]) -> None:
        self.waits = False
        self._node = node
        self._call = call

    def request(self) -> None:
        """Have it called, once for all requests until then."""
        executor = self._node.executor
        if executor is None:
            self._call()
        elif not self.waits:
            self.waits = True
            executor.create_task(self._take)

    def _take(self) -> None:
        self.waits = False
        self._call()
