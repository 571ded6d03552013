"""A question to the verifier, and what became of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import serialize_message

from adahi_ros.nodes.common.bounds import shortened
from adahi_ros.nodes.common.messages import from_answer
from adahi_ros.policy.interface import PolicySpec
from adahi_ros.wire.records import Reason
from adahi_ros.wire.request import RequestError, Verification, VerificationRequest, check_answer
from adahi_ros.wire.window import WireWindow


@dataclass(frozen=True)
class Question:
    """What to ask the verifier.

    Attributes:
        request: about one draft (M = 1).
        episode, step: that it belongs to.
        window: the request's window and goal as they are sent.
    """

    request: VerificationRequest
    episode: int
    step: int
    window: WireWindow


@dataclass(frozen=True)
class Answer:
    """How a question ended.

    Attributes:
        verification: what to execute; None to execute the draft.
        reason: why there is no verification; NONE where there is one.
        message: for people, where there is something to say.
        verify_ms: question sent to answer received; 0 without a verification.
        compute_ms: the verifier's own share of it.
        response: what came; None where nothing came in time.
    """

    verification: Verification | None
    reason: Reason
    message: str = ""
    verify_ms: float = 0.0
    compute_ms: float = 0.0
    response: VerifyDraft.Response | None = None

    @property
    def response_bytes(self) -> int:
        """Size of the serialized answer; 0 where none came in time. Serializes: ask when there is time."""
        return 0 if self.response is None else len(serialize_message(self.response))


def judged(spec: PolicySpec, question: Question, response: VerifyDraft.Response, verify_ms: float) -> Answer:
    """Return what a response says to a question, sent so long before.

    Args:
        spec: the draft's sizes.
        question: that was asked.
        response: unchecked.
        verify_ms: of the answer.
    """
    if response.status != VerifyDraft.Response.STATUS_OK:
        message = shortened(response.message) or f"status {response.status}"
        return Answer(None, Reason.REFUSED, message, response=response)
    asked = (question.episode, question.step)
    answered = (response.episode_id, response.step_id)
    if answered != asked:
        message = f"episode_id, step_id: {answered}, must be {asked}"
        return Answer(None, Reason.BAD_ANSWER, message, response=response)
    compute_ms = response.compute_time_ms
    if not 0.0 <= compute_ms < math.inf:
        message = f"compute_time_ms: {compute_ms}, must be finite and at least 0"
        return Answer(None, Reason.BAD_ANSWER, message, response=response)
    try:
        verification = check_answer(spec, *from_answer(response))
    except RequestError as error:
        return Answer(None, Reason.BAD_ANSWER, str(error), response=response)
    return Answer(verification, Reason.NONE, "", verify_ms, compute_ms, response)
