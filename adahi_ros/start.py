# SPDX-License-Identifier: Apache-2.0
"""Entry points of all executables: SIGINT during imports ends them without a traceback."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn

STOPPED = 130  # what shells expect after Ctrl-C


def _leave(number: int, frame: object) -> None:
    os._exit(STOPPED)  # nothing is open yet; an exception would become a traceback of an import


def run_main(module: str) -> None:
    """Import a module and call its `main`, which handles SIGINT itself."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see `become`
    main = import_module(module).main
    signal.signal(signal.SIGINT, before)
    main()


def become(module: str, *arguments: str, namespace: str = "") -> NoReturn:
    """Replace this process by a node, the `main` of a module: signals, exit status and output are its own.

    Args:
        module: of the node.
        arguments: of the node, those of ROS after `--ros-args`.
        namespace: of the node.

    Raises:
        ModuleNotFoundError: there is no ROS.
    """
    if find_spec("rclpy") is None:
        raise ModuleNotFoundError("No module named 'rclpy'", name="rclpy")
    if namespace := namespace.strip("/"):
        arguments += "--ros-args", "-r", f"__ns:=/{namespace}"
    sys.stdout.flush()
    # Python starts with its own handler, which prints a traceback; until ours is there, the signal waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execv(sys.executable, [sys.executable, "-m", "adahi_ros.start", module, *arguments])


def adahi() -> None:
    """Run the command `adahi`."""
    run_main("adahi_ros.cli.app")


def draft_policy_node() -> None:
    """Run the robot's node."""
    run_main("adahi_ros.nodes.robot.draft_policy_node")


def policy_runner_node() -> None:
    """Run the node that serves RunPolicy."""
    run_main("adahi_ros.nodes.robot.policy_runner_node")


def target_verifier_node() -> None:
    """Run the server's node."""
    run_main("adahi_ros.nodes.server.target_verifier_node")


def bag_recorder_node() -> None:
    """Run the node that records."""
    run_main("adahi_ros.nodes.monitoring.bag_recorder_node")


def path_markers_node() -> None:
    """Run the node that shows paths."""
    run_main("adahi_ros.nodes.monitoring.path_markers_node")


def scene_checker_node() -> None:
    """Run the node that asks MoveIt for collisions."""
    run_main("adahi_ros.nodes.monitoring.scene_checker_node")


if __name__ == "__main__":
    run_main(sys.argv.pop(1))
