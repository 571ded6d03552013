# SPDX-License-Identifier: Apache-2.0
"""What a control step takes that sends a request, by rclpy's own executor and by ours at both ends.

    .venv/bin/python benchmarks/executors.py compare [--json FILE]

Two robots and their verifiers, the shipped ball balancing policies, each pair in processes and a DDS domain
of its own on this machine; the pairs take turns. From when the observation was published to when the command
was, by the stamps of DDS. Prints milliseconds; asserts nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from adahi_msgs.msg import DraftStatus, TaskState
from rich.console import Console
from rich.table import Table
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.lab.nodes.observer import Observer
from adahi_ros.nodes.common.managed import started
from adahi_ros.nodes.common.messages import from_stamp, to_joint_state, to_task_state
from adahi_ros.nodes.common.spin import run, single_threaded
from adahi_ros.nodes.robot import draft_policy_node
from adahi_ros.nodes.server import target_verifier_node

JOINTS = ("plate_roll_joint", "plate_pitch_joint")
EXECUTORS = ("rclpy", "ours")
NODES: dict[str, tuple[Any, Any]] = {
    "robot": (draft_policy_node.DraftPolicyNode, draft_policy_node),
    "verifier": (target_verifier_node.TargetVerifierNode, target_verifier_node),
}
PARAMETERS = {
    "robot": [
        "gate.name:=always",
        "deadline_s:=0.5",
        "verifier_wait_s:=60.0",
        "safety.limits:=none",
        "command.lockstep:=true",
    ],
    "verifier": [],
}
BLOCK = 25  # steps of a turn
PERIOD_S = 0.02
WAIT_S = 60.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def serve(name: str, executor: str, context: typer.Context) -> None:
    """Run one node until SIGTERM."""
    node, module = NODES[name]
    sys.argv = [name, *context.args]
    raise SystemExit(
        run(
            partial(started, node),
            "",
            None,
            make_executor=module.executor_of if executor == "ours" else single_threaded,
        )
    )


class Pair:
    """A robot and its verifier, and a place to show it observations."""

    def __init__(self, domain: int) -> None:
        self._observer = Observer(domain, "bench")
        node = self._observer.node
        self._joints = node.create_publisher(JointState, "joint_states", 10)
        self._state = node.create_publisher(TaskState, "task_state", 10)
        self._commanded_ns: dict[int, int] = {}
        self._verified: dict[int, bool] = {}
        node.create_subscription(JointTrajectory, "command", self._on_command, 10)
        node.create_subscription(DraftStatus, "draft_status", self._on_status, 10)
        self._step = 0
        for label in ("configure", "activate"):
            if not self._observer.change_state("draft_policy", label, WAIT_S):
                raise SystemExit(f"error: draft_policy does not {label}")

    def _on_command(self, message: JointTrajectory, info: Any) -> None:
        self._commanded_ns[from_stamp(message.header.stamp)] = info["source_timestamp"]

    def _on_status(self, message: DraftStatus) -> None:
        self._verified[from_stamp(message.header.stamp)] = message.verified

    def step_ms(self, wait_s: float = 1.0) -> float | None:
        """Return what the next step takes; None where it was not verified."""
        stamp = time.time_ns()
        self._joints.publish(to_joint_state(JOINTS, np.zeros(2), np.zeros(2), stamp))
        state = to_task_state(np.full(4, 1e-3), np.zeros(2), 0, self._step, stamp)
        self._step += 1
        shown_ns = time.time_ns()
        self._state.publish(state)
        both = (self._commanded_ns, self._verified)
        try:
            self._observer.wait_until(lambda: all(stamp in each for each in both), wait_s, "command")
        except TimeoutError:
            return None
        return 1e-6 * (self._commanded_ns[stamp] - shown_ns) if self._verified[stamp] else None

    def begin(self) -> None:
        """Wait for the first step that is verified."""
        end = time.monotonic() + WAIT_S
        while self.step_ms() is None:
            if time.monotonic() > end:
                raise SystemExit("error: no step was verified")

    def close(self) -> None:
        self._observer.close()


@contextmanager
def pair_of(executor: str) -> Iterator[Pair]:
    """Start a robot and its verifier, both by one executor."""
    with ExitStack() as stack:
        domain = stack.enter_context(exclusive_domain())
        environment = [f"{key}={value}" for key, value in loopback_environment(domain).items()]
        for name, parameters in PARAMETERS.items():
            command = ["env", *environment, sys.executable, __file__, "serve", name, executor, "--ros-args"]
            for parameter in parameters:
                command += ["-p", parameter]
            process = subprocess.Popen([*command, "--log-level", "error"])
            stack.callback(process.wait)
            stack.callback(process.terminate)
        pair = Pair(domain)
        stack.callback(pair.close)
        pair.begin()
        yield pair


@app.command()
def compare(
    turns: Annotated[int, typer.Option(min=1, help="Of 25 steps, of each executor.")] = 20,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Time verified steps with either executor."""
    taken: dict[str, list[float]] = {executor: [] for executor in EXECUTORS}
    with ExitStack() as stack:
        pairs = {executor: stack.enter_context(pair_of(executor)) for executor in EXECUTORS}
        for _ in range(turns):
            for executor, pair in pairs.items():
                for _ in range(BLOCK):
                    took_ms = pair.step_ms()
                    if took_ms is not None:
                        taken[executor].append(took_ms)
                    time.sleep(PERIOD_S)
    table = Table(title="observation to command with a request, ms", title_justify="left")
    for heading in ("executor", "steps", "p50", "p95", "p99"):
        table.add_column(heading, justify="left" if heading == "executor" else "right")
    figures = {name: np.percentile(values, (50, 95, 99)).tolist() for name, values in taken.items()}
    for name, values in figures.items():
        table.add_row(name, str(len(taken[name])), *(f"{value:.2f}" for value in values))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"p50_p95_p99_ms": figures}, indent=2) + "\n")


if __name__ == "__main__":
    app()
