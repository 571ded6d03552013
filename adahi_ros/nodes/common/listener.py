# SPDX-License-Identifier: Apache-2.0
"""A hidden node that only listens, for a command."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Any, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import try_shutdown

L = TypeVar("L", bound="Listener")
POLL_S = 0.1  # longest delay of Ctrl-C


class Listener:
    """Has a node that publishes nothing, in a context of its own. Use as a context manager.

    Attributes:
        domain: of ROS.
        node: rclpy's.

    Args:
        name: of the node, which gets the process's number.
        domain: None for that of the environment.
        options: of the node.
    """

    def __init__(self, name: str, domain: int | None = None, **options: Any) -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.domain = self._context.get_domain_id()
        # Names that begin with an underscore are hidden from 'ros2 node list'.
        self.node = Node(
            f"_adahi_{name}_{os.getpid()}",
            context=self._context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
            **options,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def __enter__(self: L) -> L:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        try_shutdown(context=self._context)

    def wait(self, seconds: float) -> None:
        """Serve what arrives for a time."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0.0:
            self.serve(left_s)

    def serve(self, most_s: float = POLL_S) -> None:
        """Serve what arrives next, if it does so soon."""
        self._executor.spin_once(timeout_sec=min(POLL_S, most_s))
