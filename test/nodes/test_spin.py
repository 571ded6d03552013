"""A node's process ends well however the signal finds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.robot_simulator_node import RobotSimulatorParameters
from adahi_ros.core.signals import LAUNCH
from adahi_ros.nodes.common.parameters import rows
from adahi_ros.nodes.launching.modules import MODULES
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters

INTERRUPTED = """
import os, sys
import rclpy
from rclpy.node import Node
from std_msgs.msg import Header
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.spin import run

class Interrupted(Node):
    def __init__(self):
        super().__init__("interrupted")
        self.out = self.create_publisher(Header, "out", 1)
        self.create_timer(0.001, self.publish)

    def publish(self):
        os.kill(os.getpid(), int(os.environ["NUMBER"]))
        self.out.publish(Header())

    def say(self):
        self.out.publish(Header())
        print("last words", file=sys.stderr)

sys.exit(run(Interrupted, "", None, make_executor=executor_of, last_words=Interrupted.say))
"""


SIGNAL = 'os.kill(os.getpid(), int(os.environ["NUMBER"]))'
BROKEN = INTERRUPTED.replace(SIGNAL, "raise RuntimeError('broken')")
LAUNCH_KILLED = INTERRUPTED.replace(SIGNAL, f'os.kill(int(os.environ["{LAUNCH}"]), 9)')


def outcome(program: str, number: signal.Signals, **environment: str) -> tuple[int, str]:
    with exclusive_domain() as domain:
        process = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **loopback_environment(domain), "NUMBER": str(int(number)), **environment},
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
    return process.returncode, process.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_amid_a_callback(number: signal.Signals) -> None:
    code, errors = outcome(INTERRUPTED, number)
    assert (code, "Traceback" in errors) == (0, False), errors
    assert errors.count("last words") == 1


TWICE = INTERRUPTED.replace(SIGNAL, f"{SIGNAL}; {SIGNAL}")
HANGS = INTERRUPTED.replace(SIGNAL, f"while True: {SIGNAL}")


def test_a_signal_while_a_policy_loads_ends_it_at_once() -> None:
    loads = f"start=lambda node: ({SIGNAL}, print('loaded', file=sys.stderr)), last_words="
    code, errors = outcome(INTERRUPTED.replace("last_words=", loads), signal.SIGINT)
    assert (code, errors) == (0, "last words\n")


def test_ctrl_c_in_a_launch_is_two_signals_and_one_end() -> None:
    code, errors = outcome(TWICE, signal.SIGINT)
    assert (code, errors) == (0, "last words\n")


def test_a_node_that_hangs_is_ended_by_another_signal_later() -> None:
    code, errors = outcome(HANGS, signal.SIGINT)
    assert (code, errors.count("last words")) == (0, 1), errors


def test_a_node_ends_well_with_its_launch_however_that_ends() -> None:
    with subprocess.Popen(["sleep", "60"]) as launch:
        code, errors = outcome(LAUNCH_KILLED, signal.SIGTERM, **{LAUNCH: str(launch.pid)})
    assert launch.returncode == -signal.SIGKILL
    assert (code, "Traceback" in errors) == (0, False), errors
    assert errors.count("last words") == 1
    code, errors = outcome(LAUNCH_KILLED, signal.SIGTERM, **{LAUNCH: str(launch.pid)})
    assert (code, errors) == (0, "")  # gone before the node was there, which never is


UNWATCHED = """
import os

def refuse(pid):
    raise PermissionError(1, "Operation not permitted")

os.pidfd_open = refuse
"""


def test_a_node_runs_where_its_launch_cannot_be_watched() -> None:
    code, errors = outcome(UNWATCHED + INTERRUPTED, signal.SIGTERM, **{LAUNCH: str(os.getpid())})
    assert (code, errors) == (0, "last words\n")


HUNG_UP = INTERRUPTED.replace(
    SIGNAL,
    """os.kill(os.getpid(), 15 if hasattr(self, "hung_up") else 1)
        print("goes on" if hasattr(self, "hung_up") else "", file=sys.stderr)
        self.hung_up = True""",
)


def test_a_terminal_that_is_closed_ends_no_node_started_with_nohup() -> None:
    nohup = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    code, errors = outcome("\n".join([nohup, HUNG_UP]), signal.SIGTERM)
    assert (code, "goes on" in errors, errors.count("last words")) == (0, True, 1), errors


def test_a_fault_of_its_own_is_reported() -> None:
    code, errors = outcome(BROKEN, signal.SIGTERM)
    assert code == 1
    assert "RuntimeError: broken" in errors


@pytest.mark.parametrize(
    ("node", "parameters"),
    [
        ("draft_policy_node", DraftPolicyParameters),
        ("target_verifier_node", TargetVerifierParameters),
        ("robot_simulator_node", RobotSimulatorParameters),
    ],
)
def test_help_lists_the_parameters_and_other_arguments_are_refused(node: str, parameters: type[Any]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", MODULES.get(node, f"adahi_lab.nodes.{node}"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)

    helped = run("--help")
    assert helped.returncode == 0
    for row in rows(parameters):
        assert f"  {row.name} " in helped.stdout
        assert row.allowed in helped.stdout
    refused = run("--bogus")
    assert refused.returncode == 2
    assert "unrecognized arguments: --bogus" in refused.stderr
    unread = run("--ros-args", "--params-file", "/nowhere.yaml")
    assert unread.returncode == 1
    assert "/nowhere.yaml" in unread.stderr
    assert "Traceback" not in unread.stderr
