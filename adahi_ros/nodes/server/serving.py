"""A request's message in, the reply's message out."""

from __future__ import annotations

import time
from functools import partial

from adahi_msgs.srv import VerifyDraft

from adahi_ros.nodes.common.messages import from_request, to_reply
from adahi_ros.server.service import Heading, Served, VerificationService


def heading_of(request: VerifyDraft.Request) -> Heading:
    """Return what is known of a request before the rest of it is read."""
    return Heading(
        request.robot_id, request.session_id, request.episode_id, request.step_id, request.first_step
    )


def serve(
    service: VerificationService, request: VerifyDraft.Request, now_s: float
) -> tuple[VerifyDraft.Response, Served]:
    """Return the reply, which says how long it took, and what became of the request.

    Args:
        service: replies.
        request: unchecked.
        now_s: of a clock that only goes forward.
    """
    start = time.perf_counter()
    served = service.reply(heading_of(request), partial(from_request, request), now_s)
    response = to_reply(served.reply)
    response.compute_time_ms = 1e3 * (time.perf_counter() - start)
    service.spent(served.reply, response.compute_time_ms)
    return response, served
