# SPDX-License-Identifier: Apache-2.0
"""A fleet's verifier, its policies and, where there is none, its Ray: started, started again, and ended."""

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
SERVING = "target policy of"  # it says so once it has its policies
READY_S = 300.0
LOOK_S = 0.02


class RunningFleet:
    """See the module; `fleet_up` makes it.

    Attributes:
        head: of the Ray that was started here; None where the fleet's is another.
        verifier: the front.

    Args:
        head: as above.
        processes: starts the verifier.
        parameters: of it.
        say: told what it prints, line by line, and what is started again.
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

    def look(self) -> None:
        """Say what the verifier has printed, and start again what somebody has killed.

        Raises:
            DdsRunError: the verifier has ended by itself, as for a parameter that cannot be.
            RuntimeError: Ray does not start again.
        """
        lines, self._read = self.verifier.printed_since(self._read)  # all of it would be ever more
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
            DdsRunError: it has ended, or takes too long.
        """
        limit_s = time.monotonic() + READY_S
        while not self._serves:
            self.look()
            if time.monotonic() > limit_s:
                raise self.verifier.fault(f"does not serve after {READY_S:g} s")
            time.sleep(LOOK_S)


@contextmanager
def fleet_up(
    path: Path, environment: Mapping[str, str], say: Callable[[str], None], **parameters: object
) -> Iterator[RunningFleet]:
    """Yield a fleet's verifier and what it needs; all that is started here ends on every way out.

    Args:
        path: the fleet's file.
        environment: variables of the verifier beside those of this process.
        say: see `RunningFleet`.
        parameters: of the verifier, beside those of the file.

    Raises:
        FleetFileError: the file cannot be used.
        ImportError: Ray is not installed; says how to.
        RuntimeError: Ray does not start.
    """
    fleet = read_fleet(path)
    check_installed()
    with ExitStack() as ends:
        head = None
        if not fleet.ray.address:
            # Short, for Ray's sockets are there, too.
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
        told = {**_parameters(path, fleet), "ray_address": address, **parameters}
        yield RunningFleet(head, processes, told, say)


def _parameters(path: Path, fleet: Fleet) -> dict[str, object]:
    robots = {f"batch.{name}": value for name, value in fleet.robots.given.items()}
    most = max(policy.batch for policy in fleet.policies.values())
    return {"engine": "ray", "fleet": str(path.resolve()), "batch.size": most, **robots}
