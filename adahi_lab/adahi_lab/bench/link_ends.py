# SPDX-License-Identifier: Apache-2.0
"""Programs at the two ends of an emulated link, for as long as something is measured.

The nodes of a `Stage` are among them: a recording robot, its draft policy, and verifiers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from adahi_lab.bench.robot_log import RobotLog
from adahi_lab.evaluation.task_contract import contract_values
from adahi_lab.link.emulator import EmulatedLink, on_cores
from adahi_lab.link.link_commands import environment_of
from adahi_lab.nodes.domain import exclusive_domain, link_environment
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.child_processes import NodeProcess, NodeProcesses, node_processes

LOOK_S = 0.02
DEADLINE_S = 30.0  # only what is broken takes longer
READY = "target policy of"  # what a verifier prints when it serves
NOTHING_LOST = {  # between the robot and its own draft policy, however busy the machine
    "/joint_states": {"subscription": {"reliability": "reliable", "depth": 100}},
    "/task_state": {"subscription": {"reliability": "reliable", "depth": 100}},
    "/command": {"publisher": {"depth": 100}},
}


class Stage:
    """An empty domain that spans a link.

    Attributes:
        link: that is up.
        processes: the nodes.
        log: the robot's log.
    """

    def __init__(self, link: EmulatedLink, processes: NodeProcesses, folder: Path) -> None:
        self.link = link
        self.processes = processes
        self._log_file = folder / "robot.jsonl"
        self.log = RobotLog(self._log_file)

    def start_robot(self, parameters: Mapping[str, object]) -> NodeProcess:
        """Start `recording_robot_node` at the robot's end."""
        values = {"log": str(self._log_file), **parameters}
        return self.processes.start("adahi_lab.nodes.recording_robot_node", values, self.link.robot.prefix)

    def start_draft(
        self, parameters: Mapping[str, object], rate_hz: float, max_age_s: float = 1.0
    ) -> NodeProcess:
        """Start `draft_policy_node` of the ball at the robot's end; the robot activates it."""
        contract = {**contract_values(make("ball")), "fps": rate_hz, "max_age_s": max_age_s}
        file = self._log_file.with_name("contract.yaml")
        file.write_text(yaml.safe_dump(contract))
        simulated = {"safety.limits": "none", "safety.require_enable": False, "fallback": "draft"}
        own = {"qos_overrides": NOTHING_LOST, "contract": str(file), **simulated}
        values = {**own, **parameters}
        return self.processes.start("draft_policy_node", values, self.link.robot.prefix)

    def start_verifier(self, parameters: Mapping[str, object]) -> NodeProcess:
        """Start `target_verifier_node` at the server's end; return when it serves."""
        verifier = self.processes.start("target_verifier_node", parameters, self.link.server.prefix)
        self.wait(lambda: READY in verifier.output, "verifier")
        return verifier

    def wait(self, done: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Read the log until a condition holds.

        Raises:
            DdsRunError: a node has ended unexpectedly.
            TimeoutError: the condition does not hold by the deadline; shows each node's last output.
        """
        end_s = time.monotonic() + deadline_s
        while not done():
            self.processes.check()
            if time.monotonic() > end_s:
                faults = [str(process.fault("still runs")) for process in self.processes.all]
                raise TimeoutError("\n".join([f"{what}: not within {deadline_s:g} s", *faults]))
            time.sleep(LOOK_S)
            self.log.read()


@contextmanager
def stage_across(link: EmulatedLink) -> Iterator[Stage]:
    """Yield a stage; end everything that runs on it afterwards.

    Fast DDS uses the shipped settings for wireless links at both ends.
    """
    with exclusive_domain() as domain, tempfile.TemporaryDirectory(prefix="adahi_stage_") as folder:
        environment = {**link_environment(domain), "OMP_NUM_THREADS": "1", **dds_environment("wireless")}
        with node_processes(environment) as processes:
            yield Stage(link, processes, Path(folder))


END_S = 5.0
READY_S = 120.0
DDS: dict[str, dict[str, str]] = {
    "default": {},
    "wireless": {
        "FASTRTPS_DEFAULT_PROFILES_FILE": "config/dds/fastdds_wireless.xml",
        "FASTDDS_DEFAULT_PROFILES_FILE": "config/dds/fastdds_3_wireless.xml",  # read since Fast DDS 3
    },
}


def dds_environment(dds: str) -> dict[str, str]:
    """Return the environment variables that make Fast DDS use a shipped profile, a key of `DDS`."""
    if dds not in DDS:
        raise ValueError(f"dds: {dds!r}, must be one of {', '.join(DDS)}")
    return {name: str(asset(file)) for name, file in DDS[dds].items()}


def environment(link: EmulatedLink, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that limit a program at either end to one core."""
    return {**os.environ, **environment_of(link), "OMP_NUM_THREADS": "1", **extra}


def cores_of_ends() -> tuple[set[int], set[int]]:
    """Return the cores of the robot's end, one half of this machine's or more, and those of the server's.

    Two machines share neither a core nor its caches. The link's process uses the server's cores, because
    times are measured at the robot's end. On a machine with one core, both ends share it.
    """
    usable = sorted(os.sched_getaffinity(0))
    half = (len(usable) + 1) // 2
    return set(usable[:half]), set(usable[half:] or usable)


@contextmanager
def serving(
    link: EmulatedLink,
    command: Sequence[str],
    variables: Mapping[str, str],
    ready: str,
    cores: set[int] | None = None,
) -> Iterator[None]:
    """Run a Python program at the server's end; begin the block when a printed line contains `ready`.

    Args:
        link: that is up.
        command: after the interpreter.
        variables: added to the environment.
        ready: part of the line.
        cores: that it may use; None for all.

    Raises:
        RuntimeError: it ends before that, or is not ready in time; shows its last output.
    """
    with tempfile.NamedTemporaryFile("w") as log:
        printed = Path(log.name)
        process = subprocess.Popen(
            [*link.server.prefix, *on_cores(cores), sys.executable, "-u", *command],
            env=environment(link, variables),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            end_s = time.monotonic() + READY_S
            while ready not in printed.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > end_s:
                    raise RuntimeError(f"{' '.join(command)}: did not become ready{_last_line(printed)}")
                time.sleep(LOOK_S)
            yield
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run_at_robot(
    link: EmulatedLink, command: Sequence[str], variables: Mapping[str, str], cores: set[int] | None = None
) -> None:
    """Run a Python program at the robot's end until it exits.

    Args:
        link: that is up.
        command: after the interpreter.
        variables: added to the environment.
        cores: that it may use; None for all, for programs that start others at the server's end.

    Raises:
        RuntimeError: it fails; shows its last output.
    """
    with tempfile.NamedTemporaryFile("w") as log:
        done = subprocess.run(
            [*link.robot.prefix, *on_cores(cores), sys.executable, *command],
            env=environment(link, variables),
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode != 0:
            last = _last_line(Path(log.name))
            raise RuntimeError(f"{' '.join(command)}: ended with code {done.returncode}{last}")


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""
