"""`adahi record` as a process, and the simulator that it records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from adahi_lab.nodes.domain import loopback_environment
from test.system.stage import Stage

COMMAND = [sys.executable, "-c", "from adahi_ros.cli.app import main; main()"]
ENDS_S = 30.0  # only a broken recorder takes longer
RELIABLE = {
    f"/{topic}": {"publisher": {"reliability": "reliable", "depth": 1000}}
    for topic in ("joint_states", "task_state")
}


class Recorder:
    """`adahi record` as a process."""

    def __init__(self, stage: Stage, folder: Path, *arguments: object) -> None:
        self._stage = stage
        self._output = (folder / "recorder.log").open("w+")
        self.process = subprocess.Popen(
            [*COMMAND, "record", *map(str, arguments)],
            cwd=folder,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **loopback_environment(stage.domain), "PYTHONUNBUFFERED": "1"},
        )

    def wait_until_it_records(self, topic: str) -> None:
        """Wait for a subscription of a topic that this process publishes, or a node of its does."""
        self._stage.wait(lambda: self._stage.node.count_subscribers(topic) > 0, f"recorder of {topic}")

    def end(self, how: int = signal.SIGINT) -> str:
        """Ask it to end; return what it has said."""
        self.process.send_signal(how)
        return self.ended(0)

    def ended(self, code: int) -> str:
        """Wait until it ends by itself, with this exit code; return what it has said."""
        assert self.process.wait(ENDS_S) == code, self.output()
        return self.output()

    def output(self) -> str:
        self._output.seek(0)
        return self._output.read()
