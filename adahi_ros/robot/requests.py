# SPDX-License-Identifier: Apache-2.0
"""One request to the verifier, from submission to its fate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import OK, Reply, Request, RequestError, RequestFault, check_reply
from adahi_ros.protocol.window import NO_WINDOW, WireWindow

RETRY_MOST_S = 2.0  # that a robot leaves a verifier alone which is busy, whatever that says


class Fate(Enum):
    """What became of a request."""

    PENDING = auto()
    REPLIED = auto()
    REFUSED = auto()
    BAD_REPLY = auto()
    MISSED = auto()
    SUPERSEDED = auto()
    CANCELLED = auto()


FATES = {
    Reason.NONE: Fate.REPLIED,
    Reason.REFUSED: Fate.REFUSED,
    Reason.BAD_REPLY: Fate.BAD_REPLY,
    Reason.DEADLINE: Fate.MISSED,
    Reason.SUPERSEDED: Fate.SUPERSEDED,
    Reason.BUSY: Fate.REFUSED,
}


@dataclass(frozen=True)
class Outcome:
    """What a step may execute, and why no more.

    Attributes:
        verification: what to execute; None to execute the draft.
        reason: why there is no verification; NONE where there is one, or none was wanted.
        message: for people, where there is something to say.
        verify_ms: request sent to reply received; 0 without a verification.
        compute_ms: the verifier's own share of it.
        reply_bytes: size of the serialized reply; 0 where none came in time.
        retry_after_s: where the verifier is busy, when to ask again.
    """

    verification: Verdict | None
    reason: Reason
    message: str = ""
    verify_ms: float = 0.0
    compute_ms: float = 0.0
    reply_bytes: int = 0
    retry_after_s: float = 0.0

    def withheld(self) -> Outcome:
        """Return the outcome of a step that executes nothing; its message says why it was not verified."""
        why = self.reason.name.lower().replace("_", " ")
        message = f"{why}: {self.message}" if self.message else why
        return replace(self, reason=Reason.FALLBACK_LIMIT, message=message)


@dataclass(eq=False)
class PendingRequest:
    """A request that was submitted.

    Attributes:
        request: what it says.
        submitted_s: when; all times are those of the session's caller.
        deadline_s: when it is missed.
        update: its window as it was sent last.
        resend_s: when it is sent again; infinite for not.
        retransmissions: how often it was sent again, with the whole window or as it was.
        request_bytes: serialized, of all that was sent of it.
        ids: of its messages that may still be replied to.
        fate: what became of it.
    """

    request: Request
    submitted_s: float
    deadline_s: float
    update: WireWindow = NO_WINDOW
    resend_s: float = math.inf
    retransmissions: int = 0
    request_bytes: int = 0
    ids: list[int] = field(default_factory=list)
    fate: Fate = Fate.PENDING

    @property
    def due_s(self) -> float:
        """When something is to be done about it."""
        return min(self.deadline_s, self.resend_s)


def judged(target: Description, request: Request, reply: Reply, verify_ms: float) -> Outcome:
    """Return what a reply means for the step that a request was about.

    Args:
        target: what it proposes, and by which rule.
        request: that was sent.
        reply: unchecked.
        verify_ms: request sent to reply received.
    """
    size = reply.size_bytes
    if reply.fault:
        return Outcome(None, Reason.BAD_REPLY, reply.fault, reply_bytes=size)
    if reply.status == RequestFault.SUPERSEDED:
        return Outcome(None, Reason.SUPERSEDED, reply.message, reply_bytes=size)
    if reply.status == RequestFault.BUSY:
        after_s = reply.retry_after_s if 0.0 < reply.retry_after_s < RETRY_MOST_S else RETRY_MOST_S
        return Outcome(None, Reason.BUSY, reply.message, reply_bytes=size, retry_after_s=after_s)
    if reply.status != OK:
        message = reply.message or f"status {reply.status}"
        return Outcome(None, Reason.REFUSED, message, reply_bytes=size)
    wanted = request.episode, request.step, request.first_step
    named = reply.episode, reply.step, reply.first_step
    if named != wanted:
        message = f"episode_id, step_id, first_step: {named}, must be {wanted}"
        return Outcome(None, Reason.BAD_REPLY, message, reply_bytes=size)
    if not 0.0 <= reply.compute_ms < math.inf:
        message = f"compute_time_ms: {reply.compute_ms}, must be finite and at least 0"
        return Outcome(None, Reason.BAD_REPLY, message, reply_bytes=size)
    try:
        known = _known(target, request, reply.accepted)
        parts = request.codes.size if target.rule.needs_codes else None  # else the rule has other parts
        verification = check_reply(target.signature, known, parts, reply.accepted, reply.actions)
    except RequestError as error:
        return Outcome(None, Reason.BAD_REPLY, str(error), reply_bytes=size)
    if known:  # whole again: from the step of the request on
        dim = target.signature.action_dim
        drafted = request.actions[: known * dim].reshape(1, known, dim)
        actions = np.concatenate([drafted, verification.actions], axis=1)
        verification = Verdict(actions, verification.accepted)
    return Outcome(verification, Reason.NONE, "", verify_ms, reply.compute_ms, size)


def _known(target: Description, request: Request, accepted: Sequence[bool]) -> int:
    """Return how many of the first actions a reply leaves out, because the robot knows them.

    Args:
        target: what it proposes, and by which rule.
        request: as it was sent.
        accepted: which parts of its draft were, by the reply.
    """
    ahead = request.first_step - request.step
    if not (target.rule.keeps_drafts and accepted and all(accepted)):
        return ahead
    drafted = request.actions.size // target.signature.action_dim
    return max(ahead, min(drafted, target.signature.horizon))
