# SPDX-License-Identifier: Apache-2.0
"""Nodes at the two ends of an emulated link: a robot that writes all down, its draft policy, verifiers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adahi_ros.lab.bench.link_ends import dds_environment
from adahi_ros.lab.bench.robot_log import RobotLog
from adahi_ros.lab.link.emulator import EmulatedLink
from adahi_ros.lab.nodes.domain import exclusive_domain, link_environment
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
        log: what the robot has written down.
    """

    def __init__(self, link: EmulatedLink, processes: NodeProcesses, folder: Path) -> None:
        self.link = link
        self.processes = processes
        self._log_file = folder / "robot.jsonl"
        self.log = RobotLog(self._log_file)

    def start_robot(self, parameters: Mapping[str, Any]) -> NodeProcess:
        """Start `recording_robot_node` at the robot's end."""
        values = {"log": str(self._log_file), **parameters}
        return self.processes.start("recording_robot_node", values, self.link.robot.prefix)

    def start_draft(self, parameters: Mapping[str, Any]) -> NodeProcess:
        """Start `draft_policy_node` at the robot's end; the robot activates it."""
        values = {"qos_overrides": NOTHING_LOST, "max_age_s": 1.0, **parameters}
        return self.processes.start("draft_policy_node", values, self.link.robot.prefix)

    def start_verifier(self, parameters: Mapping[str, Any]) -> NodeProcess:
        """Start `target_verifier_node` at the server's end; return when it serves."""
        verifier = self.processes.start("target_verifier_node", parameters, self.link.server.prefix)
        self.wait(lambda: READY in verifier.output, "verifier")
        return verifier

    def wait(self, done: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
        """Read the log until something is so.

        Raises:
            DdsRunError: a node has ended that nobody ended.
            TimeoutError: it is not so by the deadline; shows what every node said last.
        """
        end_s = time.monotonic() + deadline_s
        while not done():
            self.processes.check()
            if time.monotonic() > end_s:
                said = [str(process.fault("still runs")) for process in self.processes.all]
                raise TimeoutError("\n".join([f"{what}: not within {deadline_s:g} s", *said]))
            time.sleep(LOOK_S)
            self.log.read()


@contextmanager
def stage_across(link: EmulatedLink) -> Iterator[Stage]:
    """Yield a stage; whatever runs on it is ended afterwards.

    Fast DDS takes the shipped settings for wireless links, at both ends.
    """
    with exclusive_domain() as domain, tempfile.TemporaryDirectory(prefix="adahi_stage_") as folder:
        environment = {
            **link_environment(domain),
            "OMP_NUM_THREADS": "1",
            **dds_environment("wireless"),
        }
        with node_processes(environment) as processes:
            yield Stage(link, processes, Path(folder))
