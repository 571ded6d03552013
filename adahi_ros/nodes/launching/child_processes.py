# SPDX-License-Identifier: Apache-2.0
"""Nodes as child processes, which end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

from adahi_ros.core.signals import leaving_on, with_parent
from adahi_ros.nodes.launching.modules import MODULES

END_S = 5.0
LINES_SHOWN = 20


class DdsRunError(RuntimeError):
    """A run failed; the message names the process, and has its last output."""


class NodeProcess:
    """A node in its own process, with its output in a file.

    Args:
        module: a key of `MODULES`, or the module of another package's node, as package.module.
        parameters: by name; written to a ROS parameter file.
        directory: for that file and the output.
        environment: variables added to those of this process.
        prefix: command that runs another one elsewhere, such as `server_prefix`.
        namespace: of the node; empty for none.
    """

    def __init__(
        self,
        module: str,
        parameters: Mapping[str, object],
        directory: Path,
        environment: Mapping[str, str],
        prefix: Sequence[str] = (),
        namespace: str = "",
    ) -> None:
        self.module = module.rpartition(".")[2]
        self._ending = False
        self._log = Path(tempfile.mkstemp(prefix=f"{self.module}_", suffix=".log", dir=directory)[1])
        file = self._log.with_suffix(".yaml")
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(parameters)}}))
        arguments = ["-m", MODULES.get(module, module), "--ros-args", "--params-file", str(file)]
        arguments += ["-r", f"__ns:={namespace}"] if namespace else []
        with self._log.open("w") as output:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
                preexec_fn=partial(with_parent, signal.SIGTERM),
                start_new_session=True,  # Ctrl-C reaches only the parent, which ends the others
            )

    @property
    def pid(self) -> int:
        """Process id; a prefix does not change it."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """Its output so far."""
        return self._log.read_text(errors="replace")

    def printed_since(self, place: int) -> tuple[list[str], int]:
        """Return the lines printed since a place in the output, and the place where they end.

        Args:
            place: from the last call; 0 for the beginning.
        """
        with self._log.open("rb") as log:
            log.seek(place)
            printed = log.read()
        complete = printed.rfind(b"\n") + 1
        return printed[:complete].decode(errors="replace").splitlines(), place + complete

    def fault(self, what: str) -> DdsRunError:
        """Return an error with its last output."""
        lines = self.output.splitlines()[-LINES_SHOWN:]
        return DdsRunError("\n".join([f"{self.module} {what}; its last output:", *lines]))

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM if it still runs; only once, because a second one would interrupt its end."""
        if self.exit_code is None and not self._ending:
            self._ending = True
            self._process.terminate()

    def end(self) -> None:
        """Send SIGTERM and wait; kill it after `END_S`."""
        self.ask_to_end()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()


class NodeProcesses:
    """The processes of a run; only `may_end` may end before the run does.

    Args:
        environment: variables added to those of this process.
        directory: for parameter files and outputs.
    """

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self._environment = environment
        self._directory = directory
        self.all: list[NodeProcess] = []
        self.may_end: NodeProcess | None = None

    def start(
        self, module: str, parameters: Mapping[str, object], prefix: Sequence[str] = (), namespace: str = ""
    ) -> NodeProcess:
        """Start a node; arguments as `NodeProcess`."""
        process = NodeProcess(module, parameters, self._directory, self._environment, prefix, namespace)
        self.all.append(process)
        return process

    def kill(self, process: NodeProcess) -> None:
        """Kill a process, and forget it."""
        self.all.remove(process)
        process.kill()

    def check(self) -> None:
        """Check that no process has ended too early.

        Raises:
            DdsRunError: one has; has its last output.
        """
        for process in self.all:
            code = process.exit_code
            if code is not None and not (process is self.may_end and code == 0):
                raise process.fault(f"ended early with code {code}")

    def end(self) -> None:
        """Send SIGTERM to all, then wait for each."""
        for process in self.all:
            process.ask_to_end()
        for process in self.all:
            process.end()


@contextmanager
def node_processes(environment: Mapping[str, str]) -> Iterator[NodeProcesses]:
    """Yield `NodeProcesses`; all end with this context, also on SIGTERM and SIGHUP."""
    signals = signal.SIGTERM, signal.SIGHUP
    with leaving_on(*signals), tempfile.TemporaryDirectory(prefix="adahi_ros_") as directory:
        processes = NodeProcesses(environment, Path(directory))
        try:
            yield processes
        finally:
            processes.end()
