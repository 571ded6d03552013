# SPDX-License-Identifier: Apache-2.0
"""A service that sends replies later, each to the header of its request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_services_default
from rclpy.service import Service


class DeferredService:
    """Passes every request and its header to a function, which later calls `send_response`.

    rclpy's executors hide the header, and send the callback's result at once. So the callback returns the
    request, and `send_response` of rclpy's service is replaced by `received`, which gets request and header.

    Attributes:
        handle: rclpy's; requests can be taken from it directly.

    Args:
        node: gets the service.
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

    def send_response(self, response: object, header: object) -> None:
        """Send the reply to the request of a header."""
        Service.send_response(self._service, response, header)

    def destroy(self) -> None:
        """End the service."""
        self._node.destroy_service(self._service)
