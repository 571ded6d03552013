# SPDX-License-Identifier: Apache-2.0
"""A node as a process: starts, spins, and ends without a traceback."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

import rclpy
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import ok, remove_ros_args, try_shutdown

from adahi_ros.core.signals import LAUNCH
from adahi_ros.nodes.common.command_line import read_arguments
from adahi_ros.nodes.common.parameters import ParameterError

N = TypeVar("N", bound=Node)
LOOK_S = 0.1  # for a signal, at least so often
SAME_S = 1.0  # signals within it are one request: of Ctrl-C the terminal sends one, and the launch another


def single_threaded(node: Node) -> Executor:
    """Return rclpy's own executor of a node."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    return executor


class _Signals:
    """Records that a signal requests the end; rclpy's own handlers would shut down DDS at once."""

    def __init__(self) -> None:
        self.came_s = 0.0
        self.starting = False  # then the first one ends it at once: nothing moves, and a policy loads long
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signal.SIGHUP, self._note)

    def _note(self, number: int, frame: object) -> None:
        before_s, now_s = self.came_s, time.monotonic()
        self.came_s = before_s or now_s
        if now_s > before_s + SAME_S if before_s else self.starting:  # a second request ends it at once
            raise KeyboardInterrupt

    def come_with_launch_end(self) -> None:
        """Send this process SIGTERM when its launch is gone: a killed launch leaves its nodes running.

        Linux's signal for a parent's death does not work here: between launch and node may be a prefix.

        Raises:
            KeyboardInterrupt: the launch is gone already.
        """
        launch = os.environ.get(LAUNCH)
        if launch is None or not hasattr(os, "pidfd_open"):
            return
        try:
            watched = os.pidfd_open(int(launch))
        except ProcessLookupError:
            raise KeyboardInterrupt from None
        except OSError:  # an old kernel, or a container that does not allow it
            return
        threading.Thread(target=self._await_end, args=(watched,), daemon=True).start()

    def _await_end(self, watched: int) -> None:
        gone = select.poll()
        gone.register(watched, select.POLLIN)
        gone.poll()
        if not self.came_s:
            os.kill(os.getpid(), signal.SIGTERM)


def freeze_garbage() -> None:
    """Exclude current objects from garbage collection, which with torch would delay a control step by 0.1 s.

    To be called when everything is loaded, and again after it was replaced.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def run(
    make: Callable[[], N],
    about: str,
    parameters: type[object] | None,
    finished: Callable[[N], Future | None] = lambda node: None,
    make_executor: Callable[[N], Executor] = single_threaded,
    last_words: Callable[[N], None] = lambda node: None,
    start: Callable[[N], None] = lambda node: None,
) -> int:
    """Spin a node until it has finished, or SIGINT, SIGTERM, SIGHUP or its launch's end asks it to end.

    Args:
        make: creates the node.
        about: description of the node, for `--help`.
        parameters: the dataclass of its parameters, for `--help`; None for none.
        finished: returns the future that ends the process, or None to run for ever.
        make_executor: returns the executor that spins the node.
        last_words: called before a node ends, for any reason; it may still publish.
        start: called before the node spins; a signal interrupts it.

    Returns:
        The exit code: 0, or 1 if a parameter is wrong.
    """
    node = executor = None
    # rclpy would only warn, and the node would continue after a step without a command.
    warnings.filterwarnings("error", message="Unhandled exception in done callback")
    try:
        if remove_ros_args(sys.argv)[1:]:
            read_arguments(about, parameters)
        signals = _Signals()
        signals.come_with_launch_end()
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = make()
        signals.starting = not signals.came_s
        if signals.starting:
            start(node)
        signals.starting = False
        executor = make_executor(node)
        freeze_garbage()
        end = finished(node)
        # Not spin_until_future_complete, which adds a callback to the future at every event.
        while not signals.came_s and (end is None or not end.done()):
            executor.spin_once(timeout_sec=LOOK_S)
    except ParameterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError as error:  # rclpy's RCLError is one
        if node is not None:
            raise
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)  # a wrong --ros-args
        return 1
    finally:
        _end(node, executor, last_words)
    return 0


def _end(node: N | None, executor: Executor | None, last_words: Callable[[N], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it is ending
    if node is not None:
        try:
            if ok():
                last_words(node)
        finally:
            if executor is not None:
                executor.shutdown()  # an EventsExecutor keeps what a node destroys until its next event
            for each in [each for each in node.waitables if isinstance(each, ActionClient)]:
                each.destroy()  # it waited for its events; its node would stay in the domain
            node.destroy_node()
    try_shutdown()
    gc.freeze()  # else Python collects, for seconds, what torch has loaded
