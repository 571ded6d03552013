# SPDX-License-Identifier: Apache-2.0
"""A node to observe and control other nodes; every wait has a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.client import Client
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from rclpy.utilities import try_shutdown

from adahi_lab.environment_variables import environment_variables
from adahi_lab.nodes.domain import run_environment

POLL_S = 0.1
SHUTDOWN_S = 1.0
RESEND_S = 5.0
TRANSITIONS = {  # with their target states
    "configure": (Transition.TRANSITION_CONFIGURE, "inactive"),
    "activate": (Transition.TRANSITION_ACTIVATE, "active"),
    "deactivate": (Transition.TRANSITION_DEACTIVATE, "inactive"),
    "cleanup": (Transition.TRANSITION_CLEANUP, "unconfigured"),
}


class Observer:
    """This process's node in a domain while the `with` block runs; waits for nodes with a deadline.

    Args:
        domain: ROS domain.
        name: of the node.
    """

    def __init__(self, domain: int, name: str) -> None:
        self.context = Context()
        with environment_variables(run_environment(domain)):
            rclpy.init(context=self.context, domain_id=domain)
            self.node = Node(name, context=self.context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Client] = {}

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown(timeout_sec=SHUTDOWN_S)
        self.node.destroy_node()
        try_shutdown(context=self.context)

    def wait_until(
        self, done: Callable[[], bool], deadline_s: float, what: str, check: Callable[[], None] = lambda: None
    ) -> None:
        """Spin until a condition holds.

        Args:
            done: checked after every event.
            deadline_s: from now.
            what: name of the condition, for the error.
            check: called as often as `done`; may raise.

        Raises:
            TimeoutError: the condition does not hold by the deadline.
        """
        end = time.monotonic() + deadline_s
        while not done():
            check()
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {deadline_s:g} s")
            self._executor.spin_once(timeout_sec=POLL_S)

    def call(
        self, client: Client, request: object, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> Any:
        """Call a service and return its response.

        The request is sent again if no reply comes: DDS may have discovered the service's reader but not yet
        its writer. So use this only for services that may be called twice.

        Raises:
            TimeoutError: it is missing or does not reply by the deadline.
        """
        name = client.srv_name
        self.wait_until(client.service_is_ready, deadline_s, f"service {name}", check)
        futures: list[Future] = []
        next_send = 0.0

        def replied() -> bool:
            nonlocal next_send
            if time.monotonic() >= next_send:
                futures.append(client.call_async(request))
                next_send = time.monotonic() + RESEND_S
            return any(future.done() for future in futures)

        try:
            self.wait_until(replied, deadline_s, f"reply of {name}", check)
        finally:
            for future in futures:
                client.remove_pending_request(future)
        return next(future.result() for future in futures if future.done())

    def change_state(
        self, name: str, label: str, deadline_s: float, check: Callable[[], None] = lambda: None
    ) -> bool:
        """Let a lifecycle node make a transition; return whether it reached the target state.

        Raises:
            TimeoutError: it is missing or does not reply by the deadline.
        """
        transition, goal = TRANSITIONS[label]
        request = ChangeState.Request(transition=Transition(id=transition))
        changed = self.call(self._client(ChangeState, f"{name}/change_state"), request, deadline_s, check)
        return bool(changed.success) or self.state(name, deadline_s, check) == goal

    def state(self, name: str, deadline_s: float, check: Callable[[], None] = lambda: None) -> str:
        """Return the state of a lifecycle node.

        Raises:
            TimeoutError: it is missing or does not reply by the deadline.
        """
        client = self._client(GetState, f"{name}/get_state")
        return str(self.call(client, GetState.Request(), deadline_s, check).current_state.label)

    def _client(self, kind: type, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        return self._clients[name]
