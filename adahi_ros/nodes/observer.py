"""A place in a domain from which to watch and steer nodes; every wait has a deadline."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import try_shutdown

from adahi_ros.nodes.domain import loopback_environment

POLL_S = 0.1
SHUTDOWN_S = 1.0
TRANSITIONS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "cleanup": Transition.TRANSITION_CLEANUP,
}


class Observer:
    """This process's place in a domain: waits, with a deadline, for what the nodes do.

    Args:
        domain: ROS domain.
        name: of the node.
    """

    def __init__(self, domain: int, name: str) -> None:
        self.context = Context()
        with _variables(loopback_environment(domain)):
            rclpy.init(context=self.context, domain_id=domain)
            self.node = Node(name, context=self.context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._state_clients: dict[str, Any] = {}

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown(timeout_sec=SHUTDOWN_S)
        self.node.destroy_node()
        try_shutdown(context=self.context)

    def wait_until(
        self,
        done: Callable[[], bool],
        deadline_s: float,
        what: str,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Spin until something is so.

        Args:
            done: asked after every event.
            deadline_s: from now.
            what: is waited for, for the error.
            check: called as often as `done`; may raise.

        Raises:
            TimeoutError: it is not so by the deadline.
        """
        end = time.monotonic() + deadline_s
        while not done():
            check()
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {deadline_s:g} s")
            self._executor.spin_once(timeout_sec=POLL_S)

    def call(
        self, client: Any, request: Any, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> Any:
        """Call a service and return its response.

        Raises:
            TimeoutError: it is not there, or does not answer, by the deadline.
        """
        name = client.srv_name
        self.wait_until(client.service_is_ready, deadline_s, f"service {name}", check)
        future = client.call_async(request)
        try:
            self.wait_until(future.done, deadline_s, f"answer of {name}", check)
        finally:
            client.remove_pending_request(future)
        return future.result()

    def change_state(
        self, name: str, label: str, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> bool:
        """Let a lifecycle node make a transition; return whether it did.

        Raises:
            TimeoutError: it is not there, or does not answer, by the deadline.
        """
        if name not in self._state_clients:
            self._state_clients[name] = self.node.create_client(ChangeState, f"{name}/change_state")
        request = ChangeState.Request(transition=Transition(id=TRANSITIONS[label]))
        return bool(self.call(self._state_clients[name], request, deadline_s, check).success)


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
