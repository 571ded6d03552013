# SPDX-License-Identifier: Apache-2.0
"""What a robot's end of a transport says in messages, and what it makes of those that come back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.serialization import serialize_message

from adahi_ros.core.texts import fingerprint_number, shortened
from adahi_ros.nodes.common.bounds import check_response_bounds
from adahi_ros.nodes.common.messages import from_description, from_reply, to_request
from adahi_ros.protocol.request import RequestError
from adahi_ros.protocol.sent_request import SentRequest
from adahi_ros.protocol.window import WindowUpdate
from adahi_ros.robot.transport import Described, Reply, StepRequest

SESSION_BITS = 32


@dataclass(frozen=True)
class Sender:
    """What all requests of one start of a robot have in common.

    Attributes:
        robot_id: names the robot's stream of draws at the verifier.
        session: tells this start from others.
        target: name of the policy to ask; empty takes the verifier's first.
        fingerprint: of the draft's tokenizer; None where it has none.
    """

    robot_id: str
    session: int
    target: str
    fingerprint: str | None

    @classmethod
    def of_new_start(cls, robot_id: str, target: str, fingerprint: str | None) -> Sender:
        """Return that of a robot which starts now."""
        # No draw of an experiment, which would be repeated: it must differ from that of every other start.
        return cls(robot_id, secrets.randbits(SESSION_BITS), target, fingerprint)

    def message(self, request: StepRequest, update: WindowUpdate) -> VerifyDraft.Request:
        """Return what is sent of a request, of whose window only this."""
        number = fingerprint_number(self.fingerprint or "")
        draft, episode, step = request.draft, request.episode, request.step
        about = (self.robot_id, episode, step, number, self.target, request.ahead, request.instruction)
        sent = SentRequest.of(draft, update, *about, request.round_trip_ms)
        return to_request(sent, self.session, request.needed_in_s)


def reply_of(sent: int, response: VerifyDraft.Response) -> Reply:
    """Return what a response says to the message with that id."""
    try:
        check_response_bounds(response)
    except RequestError as error:  # it cannot be serialized, not even to measure it
        return Reply(sent, 0, "", 0, 0, 0, (), (), 0.0, False, 0, str(error))
    return Reply(
        sent,
        response.status,
        shortened(response.message),
        response.episode_id,
        response.step_id,
        response.first_step,
        *from_reply(response),
        response.compute_time_ms,
        response.window_kept,
        len(serialize_message(response)),
        retry_after_s=response.retry_after_s,
    )


def described_of(sent: int, response: DescribeTarget.Response) -> Described:
    """Return what a verifier says of itself in reply to the message with that id."""
    try:
        return Described(sent, from_description(response))
    except ValueError as error:
        return Described(sent, None, str(error))
