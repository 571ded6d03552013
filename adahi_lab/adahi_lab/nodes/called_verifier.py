# SPDX-License-Identifier: Apache-2.0
"""Robot and verifier in one process, without DDS: calls pass the serialized messages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.nodes.common.verifier_messages import from_described, from_reply, to_request
from adahi_ros.nodes.server.robot_messages import describe, from_request, to_reply
from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import Reply, Request, Sender
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.transport import Sent, Transport
from adahi_ros.server.engine import Engine
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import ImageEncoder

ALWAYS_S = 0.0  # there is only one robot
SESSION = 0


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
        target = LoadedTarget(Engine(verifier, seed, images), description)
        self._service = VerificationService(ServedTargets(target))
        self._description = describe(description)

    def describe(self) -> bytes:
        """Return the serialized description of the target."""
        description: bytes = serialize_message(self._description)
        return description

    def verify(self, request: bytes) -> bytes:
        """Return the serialized reply to a serialized request."""
        started_s = time.perf_counter()
        message = deserialize_message(request, VerifyDraft.Request)
        (served,) = self._service.replies([from_request(message)], ALWAYS_S)
        response = to_reply(served.reply, time.perf_counter() - started_s)
        reply: bytes = serialize_message(response)
        return reply


class CalledTransport(Transport):
    """See `Transport`. It loses nothing; a reply arrives at the next poll.

    Args:
        describe: returns the verifier's serialized description.
        verify: returns the serialized reply to a serialized request.
        fingerprint: of the draft's tokenizer; None without one.
    """

    present = True
    next_due_s = math.inf

    def __init__(
        self, describe: Callable[[], bytes], verify: Callable[[bytes], bytes], fingerprint: str | None
    ) -> None:
        self._describe = describe
        self._verify = verify
        self._sender = Sender("robot", SESSION, "", fingerprint)
        self._ids = count()
        self._arrived: list[Reply | Described] = []

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request with this part of its window."""
        sent, message = next(self._ids), serialize_message(to_request(request, window, self._sender))
        response = deserialize_message(self._verify(message), VerifyDraft.Response)
        self._arrived.append(from_reply(sent, response))
        return Sent(sent, len(message))

    def describe(self) -> int:
        """Request the verifier's description; return the message's id."""
        sent = next(self._ids)
        description = deserialize_message(self._describe(), DescribeTarget.Response)
        self._arrived.append(from_described(sent, description))
        return sent

    def poll(self) -> list[Reply | Described]:
        """Return what has arrived since the last call."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, sent: int) -> None:
        """Forget a message."""
        self._arrived = [each for each in self._arrived if each.id != sent]
