# SPDX-License-Identifier: Apache-2.0
"""A service whose replies are sent later, each to the header of its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_services_default
from rclpy.service import Service


class DeferredService:
    """Passes every request and its header on; whoever receives them sends the reply.

    rclpy's executors send at once what a service's callback returns, and show no header. So the callback
    returns the request itself, and what rclpy would send it with takes both.

    Attributes:
        handle: rclpy's, which requests can be taken from directly.

    Args:
        node: has the service.
        kind: of the service.
        name: of the service.
        received: called with a request and its header.
        qos: of requests and replies.
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        name: str,
        received: Callable[[Any, Any], None],
        qos: QoSProfile = qos_profile_services_default,
    ) -> None:
        self._node = node
        service: Any = node.create_service(kind, name, lambda request, response: request, qos_profile=qos)
        service.send_response = received
        self._service, self.handle = service, service.handle

    def send_response(self, response: Any, header: Any) -> None:
        """Send the reply to the request of a header."""
        Service.send_response(self._service, response, header)

    def destroy(self) -> None:
        """End the service."""
        self._node.destroy_service(self._service)
