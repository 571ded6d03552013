# SPDX-License-Identifier: Apache-2.0
"""Processor time of a control step of the robot's node, and so the highest rate on one core.

    .venv/bin/python benchmarks/control_rate.py [--other DIRECTORY --python FILE] [--json FILE]

The shipped method `best` of ball balancing: robot and verifier in processes of their own, in a DDS domain of
their own. This program publishes observations and waits for each command. At the task's rate a step also
pays for timers and for caches that went cold. Back to back, the next observation follows the command.
`--other` takes a second source tree into the same run, in turns. Processor time counts all threads of the
robot's process, as Linux reports it. Prints medians of the turns; asserts nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from adahi_msgs.msg import TaskState
from rich.console import Console
from rich.table import Table
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.observer import Observer
from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.nodes.common.messages import to_joint_state

TREE = Path(__file__).parents[1]
JOINTS = ("plate_roll_joint", "plate_pitch_joint")
NODES = {
    "adahi_ros.nodes.robot.draft_policy_node": {
        "verifier_wait_s": 60.0,
        "safety.hold_after_s": 30.0,
        "safety.require_enable": False,
    },
    "adahi_ros.nodes.server.target_verifier_node": {"autostart": True},
}
WAIT_S = 60.0
RESEND_S = 1.0
WARM_UP = 100
MILLISECONDS = 1e-6  # in a nanosecond
FIGURES = ("ms a step, by the clock", "ms a step, back to back", "steps/s of one core", "steps/s here")


def processor_ms(process: int) -> float:
    """Return the processor time of a process, all threads."""
    # The number of its clock, as of `clock_getcpuclockid`.
    return time.clock_gettime_ns((~process << 3) | 2) * MILLISECONDS


class Robot:
    """A robot's node that this program shows observations."""

    def __init__(self, process: int, domain: int) -> None:
        self._process = process
        self._observer = Observer(domain, "control_rate")
        node = self._observer.node
        self._joints = node.create_publisher(JointState, "joint_states", 10)
        self._state = node.create_publisher(TaskState, "task_state", 10)
        self._commands = 0
        node.create_subscription(JointTrajectory, "command", self._on_command, 10)
        self._step = 0
        for label in ("configure", "activate"):
            if not self._observer.change_state("draft_policy", label, WAIT_S):
                raise SystemExit(f"error: draft_policy does not {label}")

    def _on_command(self, message: JointTrajectory) -> None:
        self._commands += 1

    def _make_step(self) -> None:
        commands, stamp, angle = self._commands, time.time_ns(), 0.1 * self._step
        positions, state = (
            0.01 * np.array([np.sin(angle), 0.0]),
            0.02 * np.array([np.cos(angle), 0.5, 0.0, 0.0]),
        )
        self._joints.publish(to_joint_state(JOINTS, positions, np.zeros(2), stamp))
        self._state.publish(to_task_state(state, np.zeros(2), 0, self._step, stamp))
        self._step += 1
        self._observer.wait_until(lambda: self._commands > commands, RESEND_S, "command")

    def begin(self) -> None:
        """Wait for the first command, and warm up."""
        end = time.monotonic() + WAIT_S
        while not self._commands:
            try:
                self._make_step()
            except TimeoutError:
                if time.monotonic() > end:
                    raise
        self.run(WARM_UP, 0.0)

    def run(self, steps: int, period_s: float) -> tuple[float, float]:
        """Make steps; return the processor time of one in ms, and how many there were in a second.

        Args:
            steps: how many.
            period_s: of the steps; 0 for back to back.
        """
        before_ms, begin_s = processor_ms(self._process), time.monotonic()
        for step in range(1, steps + 1):
            self._make_step()
            time.sleep(max(0.0, begin_s + step * period_s - time.monotonic()))
        return (processor_ms(self._process) - before_ms) / steps, steps / (time.monotonic() - begin_s)

    def close(self) -> None:
        self._observer.close()


@contextmanager
def robot_of(tree: Path, python: Path) -> Iterator[Robot]:
    """Start the robot's node and a verifier of a source tree."""
    with ExitStack() as stack:
        domain = stack.enter_context(exclusive_domain())
        environment = {**os.environ, **loopback_environment(domain), "PYTHONPATH": str(tree)}
        shared = [
            "--ros-args",
            "--log-level",
            "error",
            "--params-file",
            str(tree / "adahi_lab/config/best/ball.yaml"),
        ]
        processes = []
        for module, values in NODES.items():
            own = [word for name, value in values.items() for word in ("-p", f"{name}:={value}")]
            process = subprocess.Popen([python, "-m", module, *shared, *own], env=environment, cwd=tree)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(process)
        robot = Robot(processes[0].pid, domain)
        stack.callback(robot.close)
        robot.begin()
        yield robot


def main(
    turns: Annotated[int, typer.Option(min=1, help="Of each tree.")] = 5,
    steps: Annotated[int, typer.Option(min=1, help="Of a turn, by the clock and back to back each.")] = 100,
    rate_hz: Annotated[float, typer.Option("--rate", min=1.0, help="Of the clock.")] = 20.0,
    other: Annotated[Path | None, typer.Option(help="Another source tree.")] = None,
    python: Annotated[Path, typer.Option(help="Its interpreter, with its messages.")] = Path(sys.executable),
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Measure the robot's node of one tree or two."""
    trees = {str(TREE): (TREE, Path(sys.executable))}
    if other is not None:
        trees = {str(other): (other.resolve(), python), **trees}
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in trees}
    with ExitStack() as stack:
        robots = {name: stack.enter_context(robot_of(*each)) for name, each in trees.items()}
        for _ in range(turns):
            for name, robot in robots.items():
                paced_ms, _ = robot.run(steps, 1.0 / rate_hz)
                swift_ms, steps_hz = robot.run(steps, 0.0)
                taken[name].append((paced_ms, swift_ms, 1e3 / swift_ms, steps_hz))
    table = Table(title=f"{turns} turns of {steps} steps, clock of {rate_hz:g} Hz", title_justify="left")
    for heading in ("tree", *FIGURES):
        table.add_column(heading, justify="left" if heading == "tree" else "right")
    medians = {name: np.median(values, axis=0).tolist() for name, values in taken.items()}
    for name, values in medians.items():
        table.add_row(name, *(f"{value:.2f}" for value in values))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(medians, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
