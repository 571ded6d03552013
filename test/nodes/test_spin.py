"""A node's process ends well however the signal finds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from adahi_ros.nodes.domain import exclusive_domain, loopback_environment

INTERRUPTED = """
import os, sys
import rclpy
from rclpy.node import Node
from std_msgs.msg import Header
from adahi_ros.nodes.spin import run

class Interrupted(Node):
    def __init__(self):
        super().__init__("interrupted")
        self.out = self.create_publisher(Header, "out", 1)
        self.create_timer(0.001, self.publish)

    def publish(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        while rclpy.ok():  # until the signal has arrived
            pass
        self.out.publish(Header())

sys.exit(run(Interrupted))
"""


BROKEN = INTERRUPTED.replace("os.kill(os.getpid(), int(sys.argv[1]))", "raise RuntimeError('broken')")


def outcome(program: str, number: signal.Signals) -> tuple[int, str]:
    with exclusive_domain() as domain:
        process = subprocess.run(
            [sys.executable, "-c", program, str(int(number))],
            env={**os.environ, **loopback_environment(domain)},
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
    return process.returncode, process.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_amid_a_callback(number: signal.Signals) -> None:
    code, errors = outcome(INTERRUPTED, number)
    assert (code, "Traceback" in errors) == (0, False), errors


def test_a_fault_of_its_own_is_told() -> None:
    code, errors = outcome(BROKEN, signal.SIGTERM)
    assert code == 1
    assert "RuntimeError: broken" in errors
