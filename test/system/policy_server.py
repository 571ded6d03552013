"""A policy behind openpi's protocol, served by a test; who imports this is skipped where it cannot be."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adahi_ros.contract.plain import plain_values
from adahi_ros.lab.tasks import make

REASON = "pip install -r requirements/remote_targets.txt"
msgpack = pytest.importorskip("msgpack", reason=REASON)
server = pytest.importorskip("websockets.sync.server", reason=REASON)


def read(message: bytes) -> Any:
    """Read a message as openpi's server does."""

    def array(said: dict[Any, Any]) -> Any:
        if b"__ndarray__" not in said:
            return said
        return np.frombuffer(said[b"data"], said[b"dtype"]).reshape(said[b"shape"])

    return msgpack.unpackb(message, object_hook=array)


def camera_contract(rows: int, columns: int) -> dict[str, Any]:
    """Return the contract of the ball's robot with a camera, whose images are for the target."""
    spec = make("ball").spec
    contract = plain_values("arm", 20.0, spec.joint_names, 4, 0, spec.commanded, spec.command_field)
    contract["observations"]["observation.images.camera"] = {
        "channel": {"topic": "camera/image_raw", "type": "sensor_msgs/msg/Image"},
        "apply": [{"resize": [rows, columns]}],
        "align": {"strategy": "asof", "timeline": "header", "tolerance_ms": 0.0},
    }
    return {**contract, "images_for_target": True, "max_age_s": 10.0}


def target_file(port: int, horizon: int, rows: int, columns: int) -> dict[str, Any]:
    """Return the file of a target on this machine that reads joints, an image and an instruction."""
    return {
        "kind": "openpi",
        "url": f"ws://127.0.0.1:{port}",
        "timeout_s": 10.0,
        "horizon": horizon,
        "rate_hz": 20.0,
        "action_names": ["positions.plate_roll_joint", "positions.plate_pitch_joint"],
        "state": {"observation.joints": {"size": 2, "as": "observation/state"}},
        "images": {"observation.images.camera": {"size": [rows, columns], "as": "observation/image"}},
        "instruction": True,
    }


class PolicyServer:
    """A policy behind openpi's protocol on this machine.

    Args:
        plan_of: from what is observed, by the policy's names, to a plan (T, A) float32.
    """

    def __init__(self, plan_of: Callable[[dict[str, Any]], np.ndarray]) -> None:
        self._plan_of = plan_of
        self.heard: list[dict[str, Any]] = []
        self.port = 0
        self._connections: list[Any] = []

    def start(self) -> None:
        self._server = server.serve(self._converse, "127.0.0.1", self.port, compression=None)
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        for each in self._connections:
            with contextlib.suppress(OSError):  # it is closed
                each.socket.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def _converse(self, connection: Any) -> None:
        self._connections.append(connection)
        connection.send(msgpack.packb({}))
        for message in connection:
            self.heard.append(read(message))
            plan = self._plan_of(self.heard[-1])
            said = {b"__ndarray__": True, b"data": plan.tobytes(), b"dtype": "<f4", b"shape": plan.shape}
            connection.send(msgpack.packb({"actions": said}))


@contextlib.contextmanager
def served(plan_of: Callable[[dict[str, Any]], np.ndarray]) -> Iterator[PolicyServer]:
    """Serve a policy for a while."""
    policy = PolicyServer(plan_of)
    policy.start()
    yield policy
    policy.stop()
