"""openpi's own client at a door: what it sent once, and as it is where it is installed.

`openpi_client_0_1_2.bin` has the bytes that openpi-client 0.1.2 sent, with numpy 1.26 and websockets 17.4;
`openpi_client_0_1_2.json` what it printed. To record them again:

    python -c "import conftest; from test.doors.test_openpi_client import record; record('PYTHON')"

from the repository's root, with the PYTHON of an environment that has openpi-client.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import yaml

from test.doors.served import LIMIT_S, PICTURE, Planner, Served, served  # isort: skip

from adahi_lab.peers.environments import folder
from adahi_ros.policies.remote.packed_arrays import unpack_openpi

HERE = Path(__file__).parent
PROGRAM = HERE / "openpi_client_program.py"
RECORDED = HERE / "openpi_client_0_1_2.bin"
PRINTED = HERE / "openpi_client_0_1_2.json"
INSTALLED = folder("openpi_websocket")  # before the tests get a cache of their own
TEXT = 0x81  # first byte of a frame
KEYS = {
    "observation.state": ["observation/joint_position", "observation/gripper_position"],
    "observation.images.front": "observation/image",
}


@contextmanager
def door_of(folder: Path, planner: Planner) -> Iterator[Served]:
    """Serve with the keys and the token of the program."""
    keys, tokens = folder / "keys.yaml", folder / "tokens"
    keys.write_text(yaml.safe_dump({"keys": KEYS}))
    tokens.write_text("arm 0123456789abcdef\n")
    with served(planner, keys_file=str(keys), tokens_file=str(tokens)) as door:
        yield door


def place_of(door: Served) -> tuple[str, int]:
    host, _, port = door.address.removeprefix("ws://").rpartition(":")
    return host, int(port)


def check(got: dict[str, Any], planner: Planner) -> None:
    """Check what a client got, and what the target read."""
    plan = np.array([0.1, 0.2]) + np.arange(4.0)[:, None]
    np.testing.assert_allclose(got["plan"], plan, rtol=1e-6)
    np.testing.assert_allclose(got["actions"], [plan[0], plan[1], plan[0]], rtol=1e-6)
    assert got["metadata"]["target"] == "arm"
    assert got["metadata"]["observation"]["observation.state"]["keys"] == KEYS["observation.state"]
    wanted = "observation/joint_position with observation/gripper_position: 4 numbers, must be 3"
    assert wanted in got["error"]
    assert len(planner.seen) == 3
    read = planner.seen[0]
    np.testing.assert_allclose(read.features["observation.state"][0, 0], [0.1, 0.2, 0.5], rtol=1e-6)
    np.testing.assert_array_equal(read.images["observation.images.front"][0, 0], PICTURE)
    assert read.instructions == ("stack the cups",)


def test_what_the_client_sent_once_is_answered_as_then(tmp_path: Path) -> None:
    planner = Planner()
    with door_of(tmp_path, planner) as door, socket.create_connection(place_of(door), LIMIT_S) as client:
        client.settimeout(LIMIT_S)
        client.sendall(RECORDED.read_bytes())
        received = client.makefile("rb")
        while received.readline() != b"\r\n":  # of the handshake
            pass
        metadata, first, refusal, *others = [message(received) for _ in range(5)]
    printed = json.loads(PRINTED.read_text())
    assert metadata == printed["metadata"]
    assert printed["error"].endswith(refusal)
    plans = [each["actions"] for each in (first, *others)]
    assert plans[0].tolist() == printed["plan"]
    check({**printed, "actions": [plans[1][0], plans[1][1], plans[2][0]]}, planner)


def message(received: BinaryIO) -> Any:
    """Read the message of a frame of a server."""
    kind, length = received.read(2)
    if length == 126:
        length = int.from_bytes(received.read(2), "big")
    content = received.read(length)
    return content.decode() if kind == TEXT else unpack_openpi(content)


@pytest.mark.skipif(not INSTALLED.is_dir(), reason="python -m adahi_lab.peers.environments openpi_websocket")
def test_the_client_itself_is_served(tmp_path: Path) -> None:
    planner = Planner()
    with door_of(tmp_path, planner) as door:
        host, port = place_of(door)
        asked = [sys.executable, str(PROGRAM), host, str(port)]
        environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=2 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout), planner)


def record(python: str) -> None:
    """Write what openpi's client sends, and what it prints."""
    sent: list[bytes] = []

    def carry(source: socket.socket, sink: socket.socket, noted: list[bytes]) -> None:
        while part := source.recv(1 << 16):
            noted.append(part)
            sink.sendall(part)

    with (
        tempfile.TemporaryDirectory() as folder,
        door_of(Path(folder), Planner()) as door,
        socket.create_server(("127.0.0.1", 0)) as between,
    ):
        asked = [python, str(PROGRAM), "127.0.0.1", str(between.getsockname()[1])]
        client = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env={})
        near, _ = between.accept()
        far = socket.create_connection(place_of(door))
        threading.Thread(target=carry, args=(far, near, []), daemon=True).start()
        carry(near, far, sent)
        printed, _ = client.communicate()
    RECORDED.write_bytes(b"".join(sent))
    PRINTED.write_text(json.dumps(json.loads(printed), indent=1) + "\n")
