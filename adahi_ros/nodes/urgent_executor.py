"""An executor that waits for a few urgent things, and looks at everything else now and then.

rclpy builds its wait set anew, in Python, at every event, from every service, timer, publisher's event
and subscription of the node: most of what a small service call costs. An answer of the target cannot
wait for that; a question after a parameter can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.node import Node

LOOK_AROUND_S = 0.05  # what is not urgent waits for so long at most


@dataclass(frozen=True)
class Urgent:
    """What a node must answer at once; to rclpy, a node that has nothing else."""

    subscriptions: Sequence[Any] = ()
    timers: Sequence[Any] = ()
    clients: Sequence[Any] = ()
    services: Sequence[Any] = ()
    guards: Sequence[Any] = field(default=(), init=False)
    waitables: Sequence[Any] = field(default=(), init=False)


class UrgentExecutor(SingleThreadedExecutor):
    """Spins one node.

    Args:
        node: to spin.
        urgent: asked before every wait.
    """

    def __init__(self, node: Node, urgent: Callable[[], Urgent]) -> None:
        super().__init__(context=node.context)
        self.add_node(node)
        self._urgent = urgent
        self._around = True
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._pulse = node.create_timer(LOOK_AROUND_S, self._look_around, clock=steady)

    def _look_around(self) -> None:
        self._around = True

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for one callback and execute it; what is not urgent is waited for `LOOK_AROUND_S` at most.

        Args:
            timeout_sec: how long to wait; None for ever, else 0, not to wait.
        """
        nodes = None
        if not self._around:
            urgent = self._urgent()
            nodes = [replace(urgent, timers=[*urgent.timers, self._pulse])]
        try:
            handler, _, _ = self.wait_for_ready_callbacks(0 if self._around else timeout_sec, nodes)
        except TimeoutException:
            self._around = False
            return
        handler()
        handler.result()  # raises what the callback raised
