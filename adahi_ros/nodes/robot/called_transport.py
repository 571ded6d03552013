# SPDX-License-Identifier: Apache-2.0
"""A `Transport` without DDS: calls pass the serialized messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.nodes.common.verifier_messages import from_described, from_reply, to_request
from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import Reply, Request, Sender
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.transport import Sent, Transport

SESSION = 0  # there is no other robot


class CalledTransport(Transport):
    """See `Transport`. It loses nothing; a reply arrives at the next poll.

    Args:
        describe: returns the verifier's serialized description.
        verify: returns the serialized reply to a serialized request.
        fingerprint: of the draft's tokenizer; None without one.
        robot_id: names the robot's stream of draws.
    """

    present = True
    next_due_s = math.inf

    def __init__(
        self,
        describe: Callable[[], bytes],
        verify: Callable[[bytes], bytes],
        fingerprint: str | None,
        robot_id: str = "robot",
    ) -> None:
        self._describe = describe
        self._verify = verify
        self._sender = Sender(robot_id, SESSION, "", fingerprint)
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
