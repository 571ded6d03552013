# SPDX-License-Identifier: Apache-2.0
"""A Ray on this machine: its head, with all that belongs to it, as one process that can be ended."""

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
OBJECT_STORE_BYTES = 100_000_000  # nothing that travels between verifier and replicas is large
LOOPBACK = "127.0.0.2"  # Ray takes 127.0.0.1 for whatever address this machine has
PORTS = range(26379, 27379)
REPLICA = "ray::ServeReplica"
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
"""Variables of whoever asks a Ray that this process has started: nobody else may."""


def check_installed() -> None:
    """Check that Ray is installed, with Ray Serve.

    Raises:
        ImportError: it is not; says how to.
    """
    if find_spec("ray") is None:
        raise ImportError("ray: not installed; a fleet needs: pip install -r requirements/ray.txt")


class RayHead:
    """Starts Ray, which lets in nobody who has not `ENVIRONMENT`: its ports are open on all interfaces.

    Attributes:
        address: for `ray.init`.

    Args:
        num_cpus: that replicas may be given; 0 for all of this machine.
        folder: for Ray's files; short, for its sockets are there, too.

    Raises:
        ImportError: it is not installed.
        RuntimeError: it does not start; with what it printed last.
    """

    def __init__(self, num_cpus: int, folder: Path) -> None:
        check_installed()
        self._num_cpus = num_cpus
        self._folder = folder
        self._port = _free_port()
        self.address = f"{LOOPBACK}:{self._port}"
        self.start()

    def start(self) -> None:
        """Start it, at the same address as before. Errors as above."""
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
                start_new_session=True,  # Ctrl-C is for who started it
                preexec_fn=partial(with_parent, signal.SIGKILL),  # and Ray ends what that had
            )
        limit_s = time.monotonic() + STARTED_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > limit_s:
                self.end()
                raise RuntimeError(f"Ray does not start; its last output:\n{self._log.read_text()[-2000:]}")
            time.sleep(LOOK_S)

    @property
    def ended(self) -> bool:
        """Whether it has ended, whoever did that."""
        return self._process.poll() is not None or not self._listens()

    @property
    def replicas(self) -> list[int]:
        """The processes in which policies are, or will be once they are loaded."""
        return [pid for pid in _descendants(self._process.pid) if _called(pid).startswith(REPLICA)]

    def end(self) -> None:
        """End all of it at once. There is nothing to be saved; asked to end, it takes its time for that."""
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
    """Return the processes that one has started, and those that these have; Ray's workers are among them."""
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
    """Return a port that nobody has; below those that Linux hands out, or Ray's own workers may take it.

    Two processes that start a Ray at once look at different ones first.
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
