# SPDX-License-Identifier: Apache-2.0
"""Chooses the executor that spins a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node

UNSUPPORTED = 2**64 - 1  # a sequence number of a middleware that counts none


def executor_of(node: Node) -> Executor:
    """Return an executor that spins a node.

    `EventsExecutor` executes callbacks in the order of their events. `SingleThreadedExecutor`, the only one
    in Humble's rclpy, builds a wait set in Python at every event. That takes more processor time than a
    control step.
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

    @wraps(callback)  # keeps the signature: rclpy then passes both
    def received(*taken: Any) -> None:
        message, information = taken[0] if len(taken) == 1 else taken
        callback(message, information)

    return received


def sequence_of(information: Mapping[str, int]) -> int | None:
    """Return a message's number, which its publisher counts from 1; None if the middleware counts none."""
    sequence = information.get("publication_sequence_number", 0)
    return sequence if 0 < sequence < UNSUPPORTED else None


class LaterCall:
    """Calls a function after all events that have arrived so far.

    `EventsExecutor` serves events in order, and keeps all. An expensive kind of event could delay all others
    more and more. So such work waits for its turn.

    Attributes:
        waits: a call is pending.

    Args:
        node: its executor makes the call; without an executor the call is made at once.
        call: the function.
    """

    def __init__(self, node: Node, call: Callable[[], None]) -> None:
        self.waits = False
        self._node = node
        self._call = call

    def request(self) -> None:
        """Request a call; requests until then share one call."""
        executor = self._node.executor
        if executor is None:
            self._call()
        elif not self.waits:
            self.waits = True
            executor.create_task(self._take)

    def _take(self) -> None:
        self.waits = False
        self._call()
