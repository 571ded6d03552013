"""A client of LeRobot's remote inference, which also sends what the wire does not allow."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any
from uuid import uuid4

import msgpack
import zenoh

from test.doors.served import LIMIT_S
from test.policies.remote.lerobot_server import unpacked

ROOT = "lerobot/inference/v1/deployments"


class Client:
    """Speaks the wire.

    Attributes:
        about: the deployment's description.
        answers: to observations.
        lost: set when the server's token is gone.
    """

    def __init__(self, address: str) -> None:
        config = zenoh.Config()
        settings = {
            "mode": "peer",
            "connect/endpoints": [address],
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
        }
        for path, value in settings.items():
            config.insert_json5(path, json.dumps(value))
        self.zenoh = zenoh.open(config)
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.lost = threading.Event()
        self.about: dict[str, Any] = {}
        self.own = self.session = ""
        self.generation = self.sequence = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.zenoh.close()

    def message(self, kind: str, body: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return {
            "version": 1,
            "message_type": kind,
            "instance_id": self.about.get("instance_id", ""),
            "session_id": self.session,
            "generation": self.generation,
            "request_id": uuid4().hex,
            "body": body,
            **changes,
        }

    def ask(self, key: str, message: dict[str, Any] | bytes) -> dict[str, Any] | str:
        """Return the answer to a query; a text for an error of zenoh's."""
        found: queue.Queue[Any] = queue.Queue()
        payload = message if isinstance(message, bytes) else msgpack.packb(message)
        with self.zenoh.declare_querier(key, timeout=LIMIT_S) as querier:
            matched = threading.Event()
            querier.declare_matching_listener(lambda status: matched.set() if status.matching else None)
            assert querier.matching_status.matching or matched.wait(LIMIT_S)
            querier.get(zenoh.handlers.Callback(found.put, indirect=False), payload=payload)
            reply = found.get(timeout=LIMIT_S)
        if reply.ok is None:
            return str(reply.err.payload.to_string())
        return unpacked(reply.ok.payload.to_bytes())

    def describe(self, deployment: str = "arm") -> dict[str, Any] | str:
        answer = self.ask(f"{ROOT}/{deployment}/describe", self.message("describe", {}))
        if isinstance(answer, dict) and answer["message_type"] == "descriptor":
            self.about = answer["body"]
            self.own = f"{ROOT}/{deployment}/instances/{self.about['instance_id']}"
        return answer

    def open(self, **changes: Any) -> dict[str, Any]:
        """Describe and open; return the answer."""
        self.describe()
        can = self.about["capabilities"]
        body = {
            "expected_artifact": self.about["artifact_identity"],
            "features": can["features"],
            "action_feature": can["action_feature"],
            "semantics": self.about["semantics"],
            "action_interval": can["action_interval"],
            "mode": "chunk",
            "encoding": "raw",
            **changes,
        }
        answer = self.ask(f"{self.own}/open", self.message("open", body))
        assert isinstance(answer, dict)
        if answer["message_type"] == "accepted":
            self.session = answer["session_id"]
            self.subscribe()
            self.control("reset", 0)
        return answer

    def subscribe(self) -> None:
        """Receive what goes to the session; let the server see this client."""
        self.key = f"{self.own}/sessions/{self.session}"
        self._plans = self.zenoh.declare_subscriber(
            f"{self.key}/act", lambda sample: self.answers.put(unpacked(sample.payload.to_bytes()))
        )
        self.token = self.zenoh.liveliness().declare_token(f"{self.key}/alive")

        def changed(sample: Any) -> None:
            if sample.kind == zenoh.SampleKind.DELETE:
                self.lost.set()

        self._presence = self.zenoh.liveliness().declare_subscriber(
            f"{self.own}/alive", changed, history=True
        )

    def control(self, operation: str, generation: int) -> dict[str, Any]:
        self.generation = generation
        answer = self.ask(f"{self.key}/control", self.message("control", {"operation": operation}))
        assert isinstance(answer, dict)
        return answer

    def send(self, features: dict[str, Any], task: Any = "stack the cups", **changes: Any) -> dict[str, Any]:
        """Send an observation; return its message."""
        self.sequence += 1
        body = {
            "sequence": self.sequence,
            "artifact_identity": self.about["artifact_identity"],
            "observation_id": uuid4().hex,
            "capture_time": 12.5,
            "task": task,
            "task_version": 3,
            "features": features,
            "delay": 0,
            "model_continuation": None,
            "canonical_continuation": None,
            "cursor": 9,
            "observation_cursor": 7,
            **changes.pop("body", {}),
        }
        message = self.message("observation", body, **changes)
        self.zenoh.put(f"{self.key}/obs", msgpack.packb(message))
        return message

    def infer(self, features: dict[str, Any], task: Any = "stack the cups", **changes: Any) -> dict[str, Any]:
        """Return the answer to an observation."""
        message = self.send(features, task, **changes)
        answer = self.answers.get(timeout=LIMIT_S)
        assert answer["request_id"] == message["request_id"]
        return answer
