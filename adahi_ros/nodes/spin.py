"""A node as a process: starts, spins, and ends without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from rclpy.utilities import ok, try_shutdown

from adahi_ros.nodes.parameters import ParameterError

N = TypeVar("N", bound=Node)


def run(make: Callable[[], N], finished: Callable[[N], Future | None] = lambda node: None) -> int:
    """Spin a node until it has finished, or SIGINT or SIGTERM asks it to end.

    Args:
        make: creates the node.
        finished: returns the future that ends the process, or None to run for ever.

    Returns:
        The exit code: 0, or 1 where a parameter is wrong.
    """
    rclpy.init()
    node = None
    try:
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        end = finished(node)
        if end is None:
            executor.spin()
        else:
            executor.spin_until_future_complete(end)
    except ParameterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError:  # rclpy's RCLError is one: the signal came while a callback was publishing
        if ok():
            raise
    finally:
        if node is not None:
            node.destroy_node()
        try_shutdown()
    return 0
