"""A server of GR00T's kind on this machine, which does what a test says."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import zmq

PROMPT = "annotation.human.task_description"
CONFIGURED = {
    "video": {"delta_indices": [-1, 0], "modality_keys": ["front"]},
    "state": {"delta_indices": [-1, 0], "modality_keys": ["single_arm", "gripper"]},
    "language": {"delta_indices": [0], "modality_keys": [PROMPT]},
    "action": {"delta_indices": [0, 1, 2, 3, 4], "modality_keys": ["single_arm", "gripper", "base"]},
}
READY = threading.Event()
READY.set()


def packed(value: Any) -> bytes:
    """Write a message as GR00T's server does."""

    def array(each: np.ndarray) -> dict[str, Any]:
        file = io.BytesIO()
        np.save(file, each, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}

    return bytes(msgpack.packb(value, default=array))


def unpacked(message: bytes) -> Any:
    """Read a message as GR00T's server does."""

    def array(packed: dict[str, Any]) -> Any:
        if "__ndarray_class__" not in packed:
            return packed
        return np.load(io.BytesIO(packed["as_npy"]), allow_pickle=False)

    return msgpack.unpackb(message, object_hook=array)


def modalities(version: str = "n1.6", **changes: Any) -> dict[str, Any]:
    """Return what a server says of its policy: N1.6 as a mapping, N1.5 as JSON with its names' prefixes."""
    packed: dict[str, Any] = {}
    for modality, configured in {**CONFIGURED, **changes}.items():
        content: Any = dict(configured)
        if version == "n1.5":
            if modality != "language":
                content["modality_keys"] = [f"{modality}.{key}" for key in content["modality_keys"]]
            content = json.dumps(content)
        packed[modality] = {"__ModalityConfig_class__": True, "as_json": content}
    return packed


def actions(arm: np.ndarray, count: int = 5) -> dict[str, np.ndarray]:
    """Return actions (B, count, size) of an arm's state (B, H, 2), which tell what it was."""
    ahead = np.arange(count, dtype=np.float32)[None, :, None]
    return {"single_arm": arm[:, -1:].astype(np.float32) + ahead, "gripper": 0 * arm[:, -1:, :1] - ahead}


def answer_n16(data: dict[str, Any]) -> Any:
    return [actions(data["observation"]["state"]["single_arm"]), {}]


def answer_sim(data: dict[str, Any]) -> Any:
    found = actions(data["observation"]["state.single_arm"])
    return [{f"action.{name}": each for name, each in found.items()}, {}]


def answer_n15(data: dict[str, Any]) -> Any:
    return {f"action.{name}": each for name, each in actions(data["state.single_arm"]).items()}


@dataclass
class Serving:
    """What a server does.

    Attributes:
        answer: to the data of get_action: a value, or a message as it is.
        configured: to get_modality_config, likewise.
        ready: it answers once this is set.
        token: that it asks for.
    """

    answer: Callable[[dict[str, Any]], Any] = answer_n16
    configured: Any = None
    ready: threading.Event = READY
    token: str = ""


class PolicyServer:
    """See the module."""

    def __init__(self) -> None:
        self.does = Serving()
        self.received: list[dict[str, Any]] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"tcp://127.0.0.1:{free.getsockname()[1]}"

    def start(self) -> None:
        self._stopped = threading.Event()
        bound = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(bound,), daemon=True)
        self._thread.start()
        assert bound.wait(10.0)

    def stop(self) -> None:
        self._stopped.set()
        self.does.ready.set()
        self._thread.join(10.0)
        assert not self._thread.is_alive()

    def _serve(self, bound: threading.Event) -> None:
        with zmq.Context() as context, context.socket(zmq.REP) as replying:
            replying.setsockopt(zmq.LINGER, 0)
            replying.bind(self.url)
            bound.set()
            while not self._stopped.is_set():
                if replying.poll(20):
                    answer = self._answer(unpacked(replying.recv()))
                    parts = answer if isinstance(answer, tuple) else (answer,)
                    replying.send_multipart([p if isinstance(p, bytes) else packed(p) for p in parts])

    def _answer(self, request: dict[str, Any]) -> Any:
        does = self.does
        if does.token and request.get("api_token") != does.token:
            return {"error": "Unauthorized: Invalid API token"}
        if request["endpoint"] == "get_modality_config":
            return modalities() if does.configured is None else does.configured
        assert request["endpoint"] == "get_action"
        self.received.append(request["data"])
        does.ready.wait(30.0)
        return does.answer(request["data"])
