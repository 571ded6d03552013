# SPDX-License-Identifier: Apache-2.0
"""A verifier without DDS: a call takes a serialized request and returns the serialized reply."""

from __future__ import annotations

import time
from dataclasses import replace

from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.nodes.server.robot_messages import describe, from_request, to_reply
from adahi_ros.server.engine import Engine
from adahi_ros.server.service import ServedTarget, ServedTargets, VerificationService
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import ImageEncoder

ALWAYS_S = 0.0  # there is only one robot


class CalledVerifier:
    """Replies to one robot as the verifier's node does.

    Args:
        verifier: of the drafts.
        rule: its name.
        seed: of its draws.
        images: makes features of the robot's images; None if it sends none.
    """

    def __init__(
        self, verifier: TargetVerifier, rule: str, seed: int, images: ImageEncoder | None = None
    ) -> None:
        description = replace(verifier.terms.described(""), acceptance=rule)
        target = ServedTarget(Engine(verifier, seed, images), description)
        self._service = VerificationService(ServedTargets(target))
        self._description = describe(description)

    def describe(self) -> bytes:
        """Return the serialized description of the target."""
        description: bytes = serialize_message(self._description)
        return description

    def verify(self, request: bytes) -> bytes:
        """Return the serialized reply to a serialized request."""
        begun_s = time.perf_counter()
        message = deserialize_message(request, VerifyDraft.Request)
        (served,) = self._service.replies([from_request(message)], ALWAYS_S)
        response = to_reply(served.reply, time.perf_counter() - begun_s)
        reply: bytes = serialize_message(response)
        return reply
