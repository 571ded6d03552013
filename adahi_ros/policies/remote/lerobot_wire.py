# SPDX-License-Identifier: Apache-2.0
"""Messages of LeRobot's remote inference, version 1, in msgpack; what is received is not trusted.

A server of a deployment answers queries at `describe` and `open`, both below the deployment's key. A session
has a key of its own: queries at `control` reset or end it, observations go to `obs`, and plans come from
`act`. A server, and each of its clients, has a liveliness token at `alive`. Nothing in a message
says who sent it: a token or a user has no place there, only in the configuration of zenoh itself.

(src/lerobot/remote_inference/README.md, protocol.py and codec.py of huggingface/lerobot)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adahi_ros.policies.remote.packed_arrays import PackedError, pack_lerobot, unpack_lerobot

VERSION = 1
CURSORS = ("observation_cursor", "cursor")
"""What an answer repeats besides, of a client that aligns plans."""
DEPLOYMENTS = f"lerobot/inference/v{VERSION}/deployments"
SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""A name or an identity in a key."""
GENERATIONS = 1 << 63
ERROR_TEXT = 2048  # characters
IDENTITIES = ("instance_id", "session_id", "request_id")
IDENTITY = ("artifact_identity", "observation_id", "capture_time", "task", "task_version")
"""What an answer repeats of its observation."""
CHUNK = "chunk"
"""The mode without real-time chunking."""


def instance_key(deployment: str, instance: str) -> str:
    """Return the key of one start of a server."""
    return f"{DEPLOYMENTS}/{deployment}/instances/{instance}"


@dataclass(frozen=True)
class WireMessage:
    """A message, with what an answer must repeat.

    Attributes:
        kind: such as `observation`.
        instance: identity of the server's start; empty where it is unknown.
        session: identity of the session; empty where there is none.
        generation: how often the session was reset or its plans became invalid.
        request: identity of the question.
        body: texts, numbers, None, arrays, and lists and mappings of them.
    """

    kind: str
    instance: str = ""
    session: str = ""
    generation: int = 0
    request: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)

    def packed(self) -> bytes:
        """Return the message's bytes."""
        return pack_lerobot(
            {
                "version": VERSION,
                "message_type": self.kind,
                "instance_id": self.instance,
                "session_id": self.session,
                "generation": self.generation,
                "request_id": self.request,
                "body": self.body,
            }
        )

    def reply(self, kind: str, body: Mapping[str, Any]) -> WireMessage:
        """Return an answer to this message."""
        return WireMessage(kind, self.instance, self.session, self.generation, self.request, body)

    def error(self, code: str, text: str, details: Mapping[str, Any] | None = None) -> WireMessage:
        """Return a refusal of this message.

        Args:
            code: such as `busy`.
            text: for people.
            details: for programs.
        """
        more = {} if details is None else {"details": details}
        return self.reply("error", {"code": code, "message": text[:ERROR_TEXT], **more})

    def answers(self, question: WireMessage) -> bool:
        """Whether this is the answer to a question; the session of a new one is not known before."""
        ours = (question.instance, question.generation, question.request)
        known = not question.session or self.session == question.session
        return known and (self.instance, self.generation, self.request) == ours


def read_message(received: bytes) -> WireMessage:
    """Read a message.

    Raises:
        PackedError: it is none of this version.
    """
    value = unpack_lerobot(received)
    if not isinstance(value, dict):
        raise PackedError(f"a {type(value).__name__}, must be a mapping")
    if type(value.get("version")) is not int or value["version"] != VERSION:
        raise PackedError(f"version: {str(value.get('version'))[:20]}, must be {VERSION}")
    generation, body = value.get("generation"), value.get("body")
    if type(generation) is not int or not 0 <= generation < GENERATIONS:
        raise PackedError("generation: must be an integer from 0")
    if not isinstance(body, dict):
        raise PackedError(f"body: a {type(body).__name__}, must be a mapping")
    kind, *identities = (value.get(name) for name in ("message_type", *IDENTITIES))
    for each in (kind, *(each for each in identities if each != "")):
        if not isinstance(each, str) or not SEGMENT.fullmatch(each):
            raise PackedError("message_type, or an identity: must be letters, digits, _ . -, at most 128")
    instance, session, request = map(str, identities)
    return WireMessage(str(kind), instance, session, generation, request, body)


def feature(
    name: str, shape: tuple[int, ...], names: tuple[str, ...], semantics: str, dtype: str = "float32"
) -> dict[str, Any]:
    """Return the description of numbers, or of an image of uint8."""
    kind = "rgb" if dtype == "uint8" else "tensor"
    return {
        "name": name,
        "shape": list(shape),
        "dtype": dtype,
        "kind": kind,
        "names": list(names),
        "semantics": semantics,
    }
