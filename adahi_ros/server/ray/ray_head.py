# SPDX-License-Identifier: Apache-2.0
"""Starts and ends a Ray head with all its processes on this machine."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from adahi_ros.core.signals import with_parent

STARTED_S = 60.0
LOOK_S = 0.05
OBJECT_STORE_BYTES = 100_000_000  # messages between verifier and replicas are small
LOOPBACK = "127.0.0.2"  # Ray replaces 127.0.0.1 by another address of this machine
PORTS = range(26379, 27379)
REPLICA = "ray::ServeReplica"
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
"""Environment variables that clients of a Ray need if this process has started it."""


def check_installed() -> None:
    """Check that Ray is installed, with Ray Serve.

    Raises:
        ImportError: it is not; says how to.
    """
    if find_spec("ray") is None:
        raise ImportError("ray: not installed; a fleet needs: pip install -r requirements/ray.txt")


class RayHead:
    """Starts Ray. Its ports are open on all interfaces, but clients need the token in `ENVIRONMENT`.

    Attributes:
        address: for `ray.init`.

    Args:
        num_cpus: for replicas; 0 for all of this machine.
        folder: for Ray's files; a short path, because it is part of socket names.

    Raises:
        ImportError: it is not installed.
        RuntimeError: it does not start; has its last output.
    """

    def __init__(self, num_cpus: int, folder: Path) -> None:
        check_installed()
        self._num_cpus = num_cpus
        self._folder = folder
        self._port = _free_port()
        self.address = f"{LOOPBACK}:{self._port}"
        self.start()

    def start(self) -> None:
        """Start it, after an end at the same address. Raises as above."""
        self._log = self._folder / "ray.log"
        options = ["--node-ip-address", LOOPBACK, "--include-dashboard", "false", "--disable-usage-stats"]
        options += ["--temp-dir", str(self._folder), "--object-store-memory", str(OBJECT_STORE_BYTES)]
        if self._num_cpus:
            options += ["--num-cpus", str(self._num_cpus)]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                [*command, "--port", str(self._port), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,  # Ctrl-C must reach only this process
                preexec_fn=partial(with_parent, signal.SIGKILL),  # Ray then ends its own children
            )
        limit_s = time.monotonic() + STARTED_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > limit_s:
                self.end()
                raise RuntimeError(f"Ray does not start; its last output:\n{self._log.read_text()[-2000:]}")
            time.sleep(LOOK_S)

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None or not self._listens()

    @property
    def replicas(self) -> list[int]:
        """Processes of the replicas."""
        return [pid for pid in _descendants(self._process.pid) if _called(pid).startswith(REPLICA)]

    def end(self) -> None:
        """Kill all its processes: there is nothing to save, and a regular end takes long."""
        for pid in (*_descendants(self._process.pid), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def _listens(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self._port), 0.5).close()
        except OSError:
            return False
        return True


def _descendants(pid: int) -> list[int]:
    """Return all descendants of a process, Ray's workers included."""
    children = []
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        with suppress(OSError):  # it has just ended
            children += [int(each) for each in task.read_text().split()]
    return [*children, *(each for child in children for each in _descendants(child))]


def _called(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:  # it has just ended
        return ""


def _free_port() -> int:
    """Return a free port below Linux's ephemeral ports, which Ray's own workers use.

    Two processes that start a Ray at once try different ports first.
    """
    start = os.getpid() % len(PORTS)
    for port in (*PORTS[start:], *PORTS[:start]):
        with socket.socket() as tried:
            try:
                tried.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"Ray does not start: no port from {PORTS[0]} to {PORTS[-1]} is free")
