"""A verifier under the load of a fleet: who gets plans in time, and what that costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from adahi_ros.assets import asset
from adahi_ros.nodes.launching.child_processes import DdsRunError, node_processes
from adahi_ros.nodes.launching.domain import exclusive_domain, run_environment
from adahi_ros.wireless.endurance import memory_of
from adahi_ros.wireless.figures import distribution
from adahi_ros.wireless.peers import environments
from adahi_ros.wireless.peers.closed_loop import Drive

STARVED_MOST = 0.01  # of a robot's periods, where it is served in time
GRACE_S = 3.0
LOOK_S = 0.5
ENGINES: Mapping[str, Mapping[str, Any]] = {"one_by_one": {"batch.size": 1}, "batched": {}}
"""By name, what the verifier is told."""
OPENPI = "openpi"  # a server as openpi has it, in the verifier's place


def measure_fleet(
    checkpoint: str,
    engines: Sequence[str],
    robots: int,
    rate_hz: float,
    seconds: float,
    every: int = 0,
    flood_hz: float = 0.0,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """Let a fleet ask a verifier of each kind; return the figures by its name.

    Args:
        checkpoint: of the target.
        engines: keys of `ENGINES`, or `OPENPI`.
        robots: how many, each of which has a plan, goes by it, and asks for the next.
        rate_hz: of their control.
        seconds: how long.
        every: control steps by one plan before another is asked for; 0 for half of it.
        flood_hz: requests per second of another robot, that asks too often.
        seed: of what robots observe.
        say: told what begins.

    Raises:
        DdsRunError: a process ended early.
        EnvironmentMissingError: openpi's packages cannot be had here.
    """
    found = {}
    for engine in engines:
        say(f"{engine}: {robots} robots, {seconds:g} s")
        asked = {
            "robots": robots,
            "rate_hz": rate_hz,
            "seconds": seconds,
            "every": every,
            "grace_s": min(GRACE_S, seconds / 2),
            "seed": seed,
        }
        if engine == OPENPI:
            found[engine] = _measure_openpi(checkpoint, asked)
        else:
            told = {"checkpoint": checkpoint, "rule": "replace", **ENGINES[engine]}
            found[engine] = _measure(told, asked | {"flood_hz": flood_hz})
    return found


def _measure(verifier: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    with (
        TemporaryDirectory(prefix="adahi_fleet_") as scratch,
        exclusive_domain() as domain,
        node_processes(run_environment(domain)) as processes,
    ):
        server = processes.start("target_verifier_node", verifier)
        arguments, records = Path(scratch) / "asked.json", Path(scratch) / "records.json"
        arguments.write_text(json.dumps({**asked, "flood_hz": 0.0}))
        memory = _MemoryWatch(server.pid)
        flood = None
        if asked["flood_hz"]:  # in a process of its own: what it costs is nothing to the other robots
            flooding = Path(scratch) / "flood.json"
            flooding.write_text(json.dumps({**asked, "robots": 0}))
            flood = subprocess.Popen([*_program(flooding, Path(scratch) / "none")], env=_environment(domain))
        fleet = subprocess.run(
            _program(arguments, records),
            env=_environment(domain),
            capture_output=True,
            text=True,
            check=False,
        )
        used = memory.end()
        if flood is not None:
            flood.kill()
            flood.wait()
        processes.check()
        return _figures(fleet, records, asked["seconds"]) | {"memory": used}


def _measure_openpi(checkpoint: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Measure openpi's server; of each end its own process, as above."""
    variables = environments.variables(environments.environment("openpi_websocket"))
    with TemporaryDirectory(prefix="adahi_fleet_") as scratch, socket() as free:
        free.bind(("127.0.0.1", 0))
        address, port = free.getsockname()
        free.close()
        target = str(asset(f"checkpoints/{checkpoint}.json").with_suffix(""))
        arguments, records = Path(scratch) / "asked.json", Path(scratch) / "records.json"
        Drive("", target, asked["seed"], 0, 0, address=address, port=port).save(arguments)
        serve = [sys.executable, "-u", "-m", "adahi_ros.wireless.peers.openpi_loop", "serve", str(arguments)]
        with subprocess.Popen(serve, env=variables, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                if "ready" not in server.stdout.readline():
                    raise DdsRunError("openpi's server ended before it was ready")
                arguments.write_text(
                    json.dumps({**asked, "address": address, "port": port, "target": target})
                )
                memory = _MemoryWatch(server.pid)
                module = "adahi_ros.nodes.measuring.openpi_fleet"
                command = [sys.executable, "-m", module, str(arguments), str(records)]
                fleet = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
                used = memory.end()
            finally:
                server.terminate()
        return _figures(fleet, records, asked["seconds"]) | {"memory": used}


def _figures(fleet: subprocess.CompletedProcess[str], records: Path, seconds: float) -> dict[str, Any]:
    if fleet.returncode:
        raise DdsRunError(f"the fleet ended with code {fleet.returncode}:\n{fleet.stderr[-2000:]}")
    return fleet_figures(json.loads(records.read_text()), seconds)


def _program(arguments: Path, records: Path) -> list[str]:
    module = "adahi_ros.nodes.measuring.fleet_robots"
    return [sys.executable, "-m", module, str(arguments), str(records)]


def _environment(domain: int) -> dict[str, str]:
    return {**os.environ, **run_environment(domain)}


class _MemoryWatch:
    """Looks at a process's memory now and then."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._bytes: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            lines = self._status.read_text().splitlines() if self._status.exists() else []
            self._bytes += [1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")]

    def end(self) -> dict[str, float] | None:
        """Return what it was at both ends of the run, and its growth; None of a run too short to tell."""
        self._over.set()
        self._thread.join()
        if not self._bytes:
            return None
        memory = memory_of(self._bytes)
        return {**asdict(memory), "growth": memory.growth}


def fleet_figures(records: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the figures of a fleet.

    Args:
        records: a `FleetRecord` of each robot, as a mapping.
        seconds: how long they asked.

    Returns:
        `robots`; `served_in_time`: of them, those with a plan in all but `STARVED_MOST` of their periods;
        `rtt_ms`; `starved_periods` and `periods`; `requests`, `replies`, and `replies_per_s`; `plan_age`, in
        steps; `lost`, by why; bytes of a request and of a reply.
    """
    steps, starved, requests, replies = (
        sum(record[name] for record in records) for name in ("steps", "starved", "requests", "replies")
    )
    reasons: Counter[str] = Counter()
    for record in records:
        reasons.update(record["reasons"])
    in_time = [
        record["steps"] > 0 and record["starved"] <= STARVED_MOST * record["steps"] for record in records
    ]
    trips = [each for record in records for each in record["rtt_ms"]]
    return {
        "robots": len(records),
        "served_in_time": int(np.sum(in_time)),
        "rtt_ms": distribution(trips),
        "periods": steps,
        "starved_periods": starved,
        "requests": requests,
        "replies": replies,
        "replies_per_s": replies / seconds,
        "plan_age": distribution([age for record in records for age in record["plan_ages"]]),
        "lost": dict(reasons),
        "bytes_per_request": sum(record["bytes_up"] for record in records) / max(1, requests),
        "bytes_per_reply": sum(record["bytes_down"] for record in records) / max(1, replies),
    }
