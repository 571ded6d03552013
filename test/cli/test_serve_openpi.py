"""`adahi serve openpi`, in a process without ROS."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from test.doors.served import Client  # isort: skip  # skips where a door cannot be opened
from test.cli.conftest import Fails

LIMIT_S = 60.0
WITHOUT_ROS = "import sys; sys.modules['rclpy'] = None; from adahi_ros.cli.app import main; main()"
INTERRUPTED = """
import os, signal
from websockets.asyncio.connection import Connection
ended = Connection.connection_lost
def connection_lost(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return ended(*arguments)
Connection.connection_lost = connection_lost
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_targets_are_served_without_ros(exported: Path) -> None:
    port = _free_port()
    targets = [str(exported / name) for name in ("target", "draft")]
    verb = ["serve", "openpi", "--port", str(port), "--target", targets[0], "--target", targets[1]]
    command = [sys.executable, "-c", WITHOUT_ROS, *verb]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        address = f"ws://127.0.0.1:{port}"
        names = ["/".join(Path(each).parts[-2:]) for each in targets]
        assert line == f"serves {', '.join(names)} at {address}; Ctrl-C stops it\n"
        for path, name in (("", names[0]), (f"/{names[1]}", names[1])):
            with Client(f"{address}{path}") as client:
                assert client.metadata["target"] == name
                inputs = client.metadata["observation"].items()
                seen = {name: np.zeros(each["shape"], np.float32) for name, each in inputs}
                assert client.plan(seen).shape == (client.metadata["horizon"], client.metadata["action_dim"])
                assert isinstance(client.ask({}), str)
        serving.send_signal(signal.SIGINT)
        rest, _ = serving.communicate(timeout=LIMIT_S)
    assert serving.returncode == 130
    assert rest.splitlines()[-1] == "adahi: stopped"
    assert "refused 'openpi/0', episode 1, step 2: observation: missing" in rest
    assert "Traceback" not in rest


def test_ctrl_c_while_a_connection_ends_stops_it(exported: Path) -> None:
    port = _free_port()
    verb = ["serve", "openpi", "--port", str(port), "--target", str(exported / "target")]
    command = [sys.executable, "-c", INTERRUPTED + WITHOUT_ROS, *verb]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        try:
            assert serving.stdout is not None
            serving.stdout.readline()
            Client(f"ws://127.0.0.1:{port}").cut()
            assert serving.wait(LIMIT_S) == 130
        finally:
            serving.kill()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--target", "x"], "--port: 0, must be from 1 to 65535"),
        (["--target", "x", "--port", "8000"], "x.json: no such checkpoint"),
        (
            ["--target", "ball/target", "--port", "8000", "--device", "cuda"],
            "device: 'cuda', must not be given",
        ),
    ],
)
def test_wrong_options_are_named(fails: Fails, arguments: list[str], fault: str) -> None:
    for wire in ("openpi", "lerobot"):
        assert fault in fails("serve", wire, *arguments)
