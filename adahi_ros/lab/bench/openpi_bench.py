# SPDX-License-Identifier: Apache-2.0
"""A server as openpi has it under the load of a fleet: a verifier's, but for the messages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

from adahi_ros.core.assets import asset
from adahi_ros.lab.bench.endurance import MemoryWatch
from adahi_ros.lab.bench.fleet_figures import fleet_figures
from adahi_ros.lab.peers import environments
from adahi_ros.lab.peers.closed_loop import Drive
from adahi_ros.nodes.launching.child_processes import DdsRunError

SERVER = "adahi_ros.lab.peers.openpi_loop"
FLEET = "adahi_ros.lab.nodes.openpi_fleet"


def measure_openpi(checkpoint: str, asked: Mapping[str, Any], added_compute_s: float = 0.0) -> dict[str, Any]:
    """Let a fleet ask openpi's server; return `fleet_figures`, and `memory`.

    Args:
        checkpoint: of the target.
        asked: arguments of `nodes.measuring.openpi_fleet.run_robots`, but those of the server.
        added_compute_s: that every plan takes longer.

    Raises:
        DdsRunError: a process ended early.
        EnvironmentMissingError: openpi's packages cannot be had here.
    """
    variables = environments.variables(environments.environment("openpi_websocket"))
    target = str(asset(f"checkpoints/{checkpoint}.json").with_suffix(""))
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        address, port = free.getsockname()
    with TemporaryDirectory(prefix="adahi_fleet_") as scratch:
        arguments, records = Path(scratch) / "asked.json", Path(scratch) / "records.json"
        settings = {"added_compute_s": added_compute_s}
        Drive("", target, asked["seed"], 0, 0, 0.0, address, port, settings).save(arguments)
        serve = [sys.executable, "-u", "-m", SERVER, "serve", str(arguments)]
        with subprocess.Popen(serve, env=variables, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                if "ready" not in server.stdout.readline():
                    raise DdsRunError("openpi's server ended before it was ready")
                served = {"address": address, "port": port, "target": target}
                arguments.write_text(json.dumps({**asked, **served}))
                memory = MemoryWatch(server.pid)
                drive = [sys.executable, "-m", FLEET, str(arguments), str(records)]
                fleet = subprocess.run(drive, env=variables, capture_output=True, text=True, check=False)
                used = memory.end()
            finally:
                server.terminate()
        if fleet.returncode:
            raise DdsRunError(f"the fleet ended with code {fleet.returncode}:\n{fleet.stderr[-2000:]}")
        return fleet_figures(json.loads(records.read_text()), asked["seconds"]) | {"memory": used}
