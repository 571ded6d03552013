# SPDX-License-Identifier: Apache-2.0
"""A verifier under the load of a fleet: how many robots get plans in time, and at what cost.

An openpi server may replace the verifier; only its messages differ. A run may kill a part of the verifier:
a replica, all of Ray, or the front.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np
import yaml

from adahi_lab.bench.call_figures import fleet_figures
from adahi_lab.bench.endurance import MemoryWatch
from adahi_lab.bench.fleet_load import FleetLoad
from adahi_lab.figures import Figures
from adahi_lab.nodes.domain import exclusive_domain, run_environment
from adahi_lab.peers import environments
from adahi_lab.peers.closed_loop import Drive
from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.child_processes import DdsRunError, NodeProcess, node_processes
from adahi_ros.nodes.launching.fleet import SERVING, RunningFleet, fleet_up

PARTS = ("replica", "head", "front")
BACK = "Ray is back"  # the verifier logs this when its policies are available again
SERVER = "adahi_lab.peers.openpi_loop"
OPENPI_FLEET, FLEET = "adahi_lab.nodes.openpi_fleet", "adahi_lab.nodes.fleet_robots"


def measure_openpi(checkpoint: str, wanted: Figures) -> Figures:
    """Let a fleet send requests to openpi's server; return `fleet_figures`, and `memory`.

    Args:
        checkpoint: of the target.
        wanted: arguments of `lab.nodes.openpi_fleet.run_robots`, except those of the server.

    Raises:
        DdsRunError: a process ended early.
        EnvironmentMissingError: openpi's packages cannot be installed here.
    """
    variables = environments.variables(environments.environment("openpi_websocket"))
    target = str(asset(f"checkpoints/{checkpoint}.json").with_suffix(""))
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        address, port = free.getsockname()
    with TemporaryDirectory(prefix="adahi_fleet_") as scratch:
        served = Path(scratch) / "served.json"
        Drive("", target, wanted["seed"], 0, 0, 0.0, address, port).save(served)
        serve = [sys.executable, "-u", "-m", SERVER, "serve", str(served)]
        with subprocess.Popen(serve, env=variables, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                if "ready" not in server.stdout.readline():
                    raise DdsRunError("openpi's server ended before it was ready")
                fleet = {**wanted, "address": address, "port": port, "target": target}
                with MemoryWatch(server.pid) as memory:
                    records = _records(OPENPI_FLEET, fleet, Path(scratch), variables)
            finally:
                server.terminate()
        return {**fleet_figures(records, wanted["seconds"]), "memory": memory.figures()}


def _records(
    module: str,
    wanted: Figures,
    scratch: Path,
    environment: Mapping[str, str],
    look: Callable[[], None] = lambda: None,
) -> list[Figures]:
    """Run a program of a fleet to its end; return the records of its robots.

    Args:
        module: of the program.
        wanted: its arguments.
        scratch: folder for its files.
        environment: its variables.
        look: called meanwhile; may raise, which ends the program.

    Raises:
        DdsRunError: it failed.
    """
    with TemporaryFile("w+") as errors:
        program = _program(module, wanted, scratch)
        fleet = subprocess.Popen(program, env=environment, stderr=errors, stdout=subprocess.DEVNULL)
        try:
            while fleet.poll() is None:
                time.sleep(GLANCE_S)
                look()
        finally:
            _killed(fleet)
        errors.seek(0)
        if fleet.returncode:
            raise DdsRunError(f"the fleet ended with code {fleet.returncode}:\n{errors.read()[-2000:]}")
    found: list[Figures] = json.loads((scratch / "records.json").read_text())
    return found


GRACE_S = 3.0
GLANCE_S = 0.02
ENGINES: Mapping[str, Mapping[str, object]] = {"one_by_one": {"batch.size": 1}, "batched": {}, "ray": {}}
"""Parameters of the verifier, by the engine's name."""
OPENPI = "openpi"  # openpi's server instead of the verifier
RULE = "replace"


def measure_fleet(load: FleetLoad, say: Callable[[str], None] = lambda line: None) -> dict[str, Figures]:
    """Let a fleet send requests to each kind of verifier; return the figures by its name.

    Args:
        load: its engines are keys of `ENGINES`, or `OPENPI`; `kill` is one of `PARTS`, or empty.
        say: called with a description of each run before it starts.

    Raises:
        DdsRunError: a process ended early.
        EnvironmentMissingError: openpi's packages cannot be installed here.
    """
    found = {}
    for engine in load.engines:
        say(f"{engine}: {load.robots} robots, {load.seconds:g} s")
        wanted = {name: getattr(load, name) for name in ("robots", "rate_hz", "seconds", "every", "seed")}
        wanted["grace_s"] = min(GRACE_S, load.seconds / 2)
        if engine == OPENPI:
            found[engine] = measure_openpi(load.target, wanted)
        else:
            found[engine] = _measure(load, engine, wanted)
    return found


def _measure(load: FleetLoad, engine: str, wanted: Figures) -> Figures:
    with (
        TemporaryDirectory(prefix="adahi_fleet_") as scratch,
        exclusive_domain() as domain,
        _verifier(load, engine, domain, Path(scratch)) as (server, look, fleet),
    ):
        environment = {**os.environ, **run_environment(domain)}
        at_s = time.monotonic() + load.at_s
        fault = Fault(fleet, load.kill, at_s) if fleet and load.kill else None

        def glance() -> None:
            look()
            if fault is not None:
                fault.kill_when_due()

        with MemoryWatch(server.pid) as memory:
            found = _records(FLEET, wanted, Path(scratch), environment, glance)
        figures = {**fleet_figures(found, wanted["seconds"]), "memory": memory.figures()}
        return figures | ({"kill": fault.figures(found)} if fault is not None else {})


def _killed(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def _verifier(
    load: FleetLoad, engine: str, domain: int, scratch: Path
) -> Iterator[tuple[NodeProcess, Callable[[], None], RunningFleet | None]]:
    """Yield a verifier's process, the check of it, and its fleet where it has one."""
    if engine != "ray":
        values = {"checkpoint": load.target, "rule.name": RULE, **ENGINES[engine]}
        with node_processes(run_environment(domain)) as processes:
            yield processes.start("target_verifier_node", values), processes.check, None
        return
    cores = os.cpu_count() or 1
    policy = {
        "checkpoint": load.target,
        "rule": {"name": RULE},
        "replicas": load.replicas,
        "num_cpus": min(1.0, cores / load.replicas),
    }
    file = scratch / "fleet.yaml"
    file.write_text(yaml.safe_dump({"policies": {"target": policy}, "ray": {"num_cpus": cores}}))
    with fleet_up(file, run_environment(domain), lambda line: None) as fleet:
        fleet.await_serving()
        yield fleet.verifier, fleet.restart_killed, fleet


def _program(module: str, wanted: Mapping[str, object], scratch: Path) -> list[str]:
    """Write the arguments of a fleet's program; return the command that runs it."""
    arguments = scratch / "settings.json"
    arguments.write_text(json.dumps(wanted))
    return [sys.executable, "-m", module, str(arguments), str(scratch / "records.json")]


class Fault:
    """Kills a part of a fleet's verifier, and notes when it is back. All times are `time.monotonic`'s.

    Args:
        fleet: to which the part belongs.
        part: of `PARTS`.
        at_s: when.
    """

    def __init__(self, fleet: RunningFleet, part: str, at_s: float) -> None:
        self._fleet = fleet
        self._part = part
        self._at_s = at_s
        self._replicas: list[int] = []
        self._killed_s = self._back_s = np.inf

    def kill_when_due(self) -> None:
        """Kill the part when it is time; note whether it is back."""
        now_s = time.monotonic()
        if now_s >= self._at_s and self._killed_s == np.inf:
            self._kill()
            self._killed_s = time.monotonic()
        elif self._killed_s < self._back_s == np.inf and self._is_back():
            self._back_s = now_s

    def _kill(self) -> None:
        head = self._fleet.head
        assert head is not None
        if self._part == "replica":
            self._replicas = head.replicas
            os.kill(self._replicas[0], signal.SIGKILL)
        elif self._part == "head":
            head.end()
        else:
            self._fleet.verifier.kill()

    def _is_back(self) -> bool:
        head, verifier = self._fleet.head, self._fleet.verifier
        assert head is not None
        if self._part == "replica":
            others = set(head.replicas)
            return self._replicas[0] not in others and len(others) >= len(self._replicas)
        if self._part == "head":
            return BACK in verifier.output
        return verifier.exit_code is None and SERVING in verifier.output

    def figures(self, records: Sequence[Figures]) -> Figures:
        """Return how the kill affected the robots.

        Args:
            records: of the robots, `FleetRecord`s as mappings.

        Returns:
            `part`; `back_s`: time from the kill until the part (of a replica: its process) was back; `gap_s`:
            longest time after the kill without a reply to any robot; `resumed_s`: from the part's return to
            the next reply. None where that did not happen.
        """
        replied = np.sort(np.concatenate([np.array(record["replied_s"]) for record in records]))
        before, after = replied[replied < self._killed_s], replied[replied >= self._killed_s]
        since_back = after[after >= self._back_s]
        silences = np.diff([*before[-1:], *after])
        return {
            "part": self._part,
            "back_s": _finite(self._back_s - self._killed_s),
            "gap_s": float(silences.max()) if silences.size else None,
            "resumed_s": float(since_back[0] - self._back_s) if since_back.size else None,
        }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
