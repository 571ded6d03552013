# SPDX-License-Identifier: Apache-2.0
"""What a verifier makes of the messages of its service."""

from __future__ import annotations

import math

from adahi_msgs.srv import VerifyDraft

from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.nodes.common.messages import to_reply
from adahi_ros.protocol.sent_reply import SentReply
from adahi_ros.server.service import RequestHeader


def heading_of(request: VerifyDraft.Request) -> RequestHeader:
    """Return what is known of a request before the rest of it is read.

    Of a name that is too long, as a stranger may send it, no more is kept than shows that it is.
    """
    needed_in_s = request.needed_in_s
    return RequestHeader(
        request.robot_id[: NAME_LENGTH + 1],
        request.session_id,
        request.episode_id,
        request.step_id,
        request.first_step,
        needed_in_s if 0.0 < needed_in_s < math.inf else 0.0,
        request.target[: NAME_LENGTH + 1],
    )


def response_of(reply: SentReply, took_s: float) -> VerifyDraft.Response:
    """Return the message of a reply.

    Args:
        reply: to be sent.
        took_s: since the request was taken.
    """
    response = to_reply(reply)
    response.compute_time_ms = 1e3 * took_s
    return response
