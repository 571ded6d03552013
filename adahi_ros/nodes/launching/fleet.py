# SPDX-License-Identifier: Apache-2.0
"""Starts, restarts and ends a fleet's verifier and, unless the fleet has one, its Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from adahi_ros.nodes.launching.child_processes import NodeProcess, NodeProcesses, node_processes
from adahi_ros.server.ray.fleet_file import Fleet, read_fleet
from adahi_ros.server.ray.ray_head import ENVIRONMENT, RayHead, check_installed
from adahi_ros.server.ray.ray_policies import remove_policies

VERIFIER = "target_verifier_node"
SERVING = "target policy of"  # the verifier logs this when a policy is loaded
READY_S = 300.0
LOOK_S = 0.02


class RunningFleet:
    """A fleet's processes; `fleet_up` makes it.

    Attributes:
        head: of the Ray that this process has started; None if the fleet names a running one.
        verifier: process of the verifier's node.

    Args:
        head: as above.
        processes: starts the verifier.
        parameters: of the verifier.
        say: called with every line that the verifier prints, and with restarts.
    """

    def __init__(
        self,
        head: RayHead | None,
        processes: NodeProcesses,
        parameters: Mapping[str, object],
        say: Callable[[str], None],
    ) -> None:
        self.head = head
        self._processes = processes
        self._parameters = parameters
        self._say = say
        self._start()

    def _start(self) -> None:
        self._read, self._serves = 0, False
        self.verifier: NodeProcess = self._processes.start(VERIFIER, self._parameters)

    def restart_killed(self) -> None:
        """Pass on the verifier's new output, and restart processes that were killed.

        Raises:
            DdsRunError: the verifier has ended by itself, for example because of a wrong parameter.
            RuntimeError: Ray does not start again.
        """
        lines, self._read = self.verifier.printed_since(self._read)
        for line in lines:
            self._say(line)
            self._serves |= SERVING in line
        if self.head is not None and self.head.ended:
            self._say("Ray has ended; it is started again")
            self.head.end()
            self.head.start()
        code = self.verifier.exit_code
        if code is not None and code >= 0:
            raise self.verifier.fault(f"ended with code {code}")
        if code is not None:
            self._say("the verifier was killed; it is started again")
            self._processes.all.remove(self.verifier)
            self._start()

    def await_serving(self) -> None:
        """Wait until the verifier has its policies.

        Raises:
            DdsRunError: the verifier has ended, or takes too long.
        """
        limit_s = time.monotonic() + READY_S
        while not self._serves:
            self.restart_killed()
            if time.monotonic() > limit_s:
                raise self.verifier.fault(f"does not serve after {READY_S:g} s")
            time.sleep(LOOK_S)


@contextmanager
def fleet_up(
    path: Path, environment: Mapping[str, str], say: Callable[[str], None], **parameters: object
) -> Iterator[RunningFleet]:
    """Start a fleet, and yield it; all its processes end with this context.

    Args:
        path: the fleet's file.
        environment: variables of the verifier, added to those of this process.
        say: see `RunningFleet`.
        parameters: of the verifier, added to those of the file.

    Raises:
        FleetFileError: the file cannot be used.
        ImportError: Ray is not installed; says how to install it.
        RuntimeError: Ray does not start.
    """
    fleet = read_fleet(path)
    check_installed()
    with ExitStack() as ends:
        head = None
        if not fleet.ray.address:
            # A short path, because it is part of Ray's socket names.
            folder = ends.enter_context(
                TemporaryDirectory(prefix="ray_", dir="/tmp", ignore_cleanup_errors=True)
            )
            say("starts Ray on this machine")
            head = RayHead(fleet.ray.num_cpus, Path(folder))
            ends.callback(head.end)
        else:
            ends.callback(remove_policies, fleet.named, fleet.ray.address)
        ours = {} if head is None else ENVIRONMENT
        processes = ends.enter_context(node_processes({**environment, **ours}))
        address = fleet.ray.address if head is None else head.address
        values = {**_parameters(path, fleet), "engine.address": address, **parameters}
        yield RunningFleet(head, processes, values, say)


def _parameters(path: Path, fleet: Fleet) -> dict[str, object]:
    robots = {f"batch.{name}": value for name, value in fleet.robots.given.items()}
    most = max(policy.batch for policy in fleet.policies.values())
    return {"engine.name": "ray", "engine.file": str(path.resolve()), "batch.size": most, **robots}
