"""A server of LeRobot's remote inference on this machine, for one session, which does what a test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgpack
import numpy as np
import zenoh

ROOT = "lerobot/inference/v1/deployments/arm"
MARK = "__lerobot_type__"
SEMANTICS = "two-joints-radians"


def spec(
    name: str, shape: list[int], dtype: str = "float32", names: list[str] | None = None
) -> dict[str, Any]:
    kind = "rgb" if dtype == "uint8" else "tensor"
    about = {"name": name, "shape": shape, "dtype": dtype, "kind": kind}
    return {**about, "names": names or [], "semantics": SEMANTICS}


CAPABILITIES: dict[str, Any] = {
    "modes": ["chunk"],
    "prediction_steps": 8,
    "execution_steps": 5,
    "action_interval": 1 / 20,
    "features": [
        spec("observation.state", [3], names=["a.pos", "b.pos", "gripper.pos"]),
        spec("observation.images.front", [4, 6, 3], "uint8"),
    ],
    "action_feature": spec("action", [2], names=["a.pos", "b.pos"]),
    "language": False,
    "training_max_delay": 0,
    "rtc_horizon": 0,
    "current_observation_only": True,
    "retains_session_state": True,
    "action_representation": "canonical",
}


def tensor(array: np.ndarray) -> dict[str, Any]:
    shape = list(array.shape)
    about = {MARK: "tensor", "dtype": array.dtype.name, "shape": shape, "endianness": "little"}
    return {**about, "data": array.tobytes()}


def unpacked(message: bytes) -> dict[str, Any]:
    """Read a message as LeRobot's server does."""

    def value(read: dict[str, Any]) -> Any:
        if MARK not in read:
            return read
        if read[MARK] == "rgb":
            assert (read["encoding"], read["channel_order"], read["dtype"]) == ("raw", "RGB", "uint8")
        else:
            assert read["endianness"] == "little"
        return np.frombuffer(read["data"], read["dtype"]).reshape(read["shape"])

    made: dict[str, Any] = msgpack.unpackb(message, object_hook=value)
    assert made["version"] == 1
    return made


def plan_of(body: dict[str, Any]) -> Any:
    """Return the actions that answer an observation: 5 that show which it was."""
    arm = body["features"]["observation.state"][:2]
    return tensor((arm + np.arange(5.0)[:, None]).astype(np.float32))


@dataclass
class Serving:
    """What a server does.

    Attributes:
        about: entries of its description.
        capabilities: of its deployment.
        answer: the actions that answer the body of an observation; None for no answer.
        changes: of an answer's envelope.
        error: code, text and details of what it answers instead.
        opens: whether it has a place.
    """

    about: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=lambda: deepcopy(CAPABILITIES))
    answer: Callable[[dict[str, Any]], Any] = plan_of
    changes: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    opens: bool = True


class PolicyServer:
    """See the module.

    Attributes:
        does: what it does.
        received: its messages.
    """

    def __init__(self, does: Serving | None = None) -> None:
        self.does = does or Serving()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.received: list[dict[str, Any]] = []
        self.session = ""
        self.generation = 0
        self.away = threading.Event()
        self._zenoh: Any = None

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.received if each["message_type"] == kind]

    def start(self) -> None:
        config = zenoh.Config()
        settings = {
            "mode": "peer",
            "listen/endpoints": [f"tcp/127.0.0.1:{self.port}"],
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
        }
        for path, value in settings.items():
            config.insert_json5(path, json.dumps(value))
        self._zenoh = zenoh.open(config)
        self.instance, self.session, self.generation = uuid4().hex, "", 0
        own = f"{ROOT}/instances/{self.instance}"
        for key, answer in (
            (f"{ROOT}/describe", self._describe),
            (f"{own}/open", self._open),
            (f"{own}/sessions/*/control", self._control),
        ):
            self._zenoh.declare_queryable(key, _callback(self._answering(answer)), complete=True)
        self._zenoh.declare_subscriber(f"{own}/sessions/*/obs", _callback(self._observe))
        alive = self._zenoh.liveliness()
        alive.declare_subscriber(f"{own}/sessions/*/alive", _callback(self._presence))
        self._token = alive.declare_token(f"{own}/alive")

    def stop(self) -> None:
        if self._zenoh is not None:
            self._zenoh.close()
            self._zenoh = None

    def _answering(self, answer: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[[Any], None]:
        def called(query: Any) -> None:
            question = unpacked(query.payload.to_bytes())
            self.received.append(question)
            reply = answer(question)
            if reply is not None:
                query.reply(str(query.key_expr), msgpack.packb(reply))
            query.drop()

        return called

    def _describe(self, question: dict[str, Any]) -> dict[str, Any]:
        own = {"instance_id": self.instance}
        return {**question, **own, "message_type": "descriptor", "body": self._about()}

    def _about(self) -> dict[str, Any]:
        return {
            "deployment": "arm",
            "instance_id": self.instance,
            "artifact_identity": "sha256:0f",
            "semantics": SEMANTICS,
            "capabilities": self.does.capabilities,
            "ready": True,
            "available": not self.session,
            **self.does.about,
        }

    def _open(self, question: dict[str, Any]) -> dict[str, Any]:
        body = question["body"]
        assert body["features"] == self.does.capabilities["features"]
        if self.session or not self.does.opens:
            busy = {"admission_blocker": "absence_grace", "absence_grace_remaining_s": 7.25}
            error = {"code": "busy", "message": "owned", "details": busy}
            return {**question, "message_type": "error", "body": error}
        self.session, self.generation = uuid4().hex, 0
        accepted = {**self._about(), "mode": body["mode"]}
        return {**question, "message_type": "accepted", "session_id": self.session, "body": accepted}

    def _control(self, question: dict[str, Any]) -> dict[str, Any] | None:
        self.generation = question["generation"]
        operation = question["body"]["operation"]
        if operation == "close":
            self.session = ""
        if operation == "reset" and not all(map(self._subscribed, ("act", "language/result"))):
            return None
        applied = {"operation": operation, "applied_generation": self.generation}
        return {**question, "message_type": "ack", "body": applied}

    def _subscribed(self, name: str) -> bool:
        """Whether the client receives what goes to a key of its session; LeRobot's server waits for that."""
        key = f"{ROOT}/instances/{self.instance}/sessions/{self.session}/{name}"
        with self._zenoh.declare_publisher(key) as publisher:
            return bool(publisher.matching_status.matching)

    def _observe(self, sample: Any) -> None:
        question = unpacked(sample.payload.to_bytes())
        self.received.append(question)
        body = question["body"]
        assert (question["session_id"], question["generation"]) == (self.session, self.generation)
        actions = self.does.answer(body)
        if actions is None:
            return
        same = {name: body[name] for name in ("artifact_identity", "observation_id", "capture_time", "task")}
        answer = {**same, "canonical_actions": actions, "model_actions": None, "execution_steps": 5}
        kind = "action" if self.does.error is None else "error"
        reply = {**question, "message_type": kind, "body": self.does.error or answer, **self.does.changes}
        key = f"{ROOT}/instances/{self.instance}/sessions/{self.session}/act"
        self._zenoh.put(key, msgpack.packb(reply))

    def _presence(self, sample: Any) -> None:
        if sample.kind == zenoh.SampleKind.DELETE:
            self.away.set()


def _callback(called: Callable[[Any], None]) -> Any:
    return zenoh.handlers.Callback(called, indirect=True)
