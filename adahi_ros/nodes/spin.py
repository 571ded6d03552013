"""A node as a process: starts, spins, and ends without a traceback."""

from __future__ import annotations

import argparse
import gc
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from rclpy.utilities import ok, remove_ros_args, try_shutdown

from adahi_ros.nodes.parameters import Parameter, ParameterError

N = TypeVar("N", bound=Node)


def _read_arguments(about: str, table: Sequence[Parameter]) -> None:
    """Answer `--help`; refuse what is neither that nor ROS's."""
    width = max((len(row.name) for row in table), default=0)
    rows = "\n".join(f"  {row.name:{width}}  {row.description} ({row.allowed})" for row in table)
    argparse.ArgumentParser(
        description=about,
        epilog=f"parameters, as --ros-args -p NAME:=VALUE or --params-file FILE:\n{rows}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(remove_ros_args(sys.argv)[1:])


def single_threaded(node: Node) -> Executor:
    """Return rclpy's own executor of a node."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    return executor


def run(
    make: Callable[[], N],
    about: str,
    table: Sequence[Parameter],
    finished: Callable[[N], Future | None] = lambda node: None,
    make_executor: Callable[[N], Executor] = single_threaded,
) -> int:
    """Spin a node until it has finished, or SIGINT or SIGTERM asks it to end.

    Args:
        make: creates the node.
        about: what the node is, for `--help`.
        table: its parameters, for `--help`.
        finished: returns the future that ends the process, or None to run for ever.
        make_executor: returns the executor that spins the node.

    Returns:
        The exit code: 0, or 1 where a parameter is wrong.
    """
    node = None
    # rclpy would say it once, and the node would go on with a step that has got no command.
    warnings.filterwarnings("error", message="Unhandled exception in done callback")
    try:
        _read_arguments(about, table)
        rclpy.init()
        node = make()
        executor = make_executor(node)
        gc.collect()
        gc.freeze()  # what is here now stays: the collector need not look at it amid a control step
        end = finished(node)
        # Not spin_until_future_complete, which hangs one more callback on the future at every event.
        while ok() and (end is None or not end.done()):
            executor.spin_once()
    except ParameterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (RuntimeError, UserWarning) as error:  # rclpy's RCLError is one; UserWarning: see above
        if node is None:  # what --ros-args names cannot be read
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            return 1
        if ok():  # else the signal came while a callback was publishing
            raise
    finally:
        if node is not None:
            node.destroy_node()
        try_shutdown()
    return 0
