# SPDX-License-Identifier: Apache-2.0
"""The requests of steps, their outcomes, and how long a robot goes on without one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import (
    NO_ASSIGNMENT,
    OK,
    Reply,
    Request,
    RequestError,
    RequestFault,
    check_intent,
    check_reply,
    check_size,
)
from adahi_ros.protocol.window import NO_WINDOW, WireWindow

if TYPE_CHECKING:
    from adahi_ros.contract.assembler import Observation
    from adahi_ros.robot.controller import Step

Check = Callable[[np.ndarray], None]
"""Raises ValueError for actions (B, T, A) that a robot must not get; see `Actor.check`."""
FALLBACKS = ("draft", "hold")
RETRY_MOST_S = 2.0  # longest pause after a busy reply, whatever retry_after_s is


class DraftError(ValueError):
    """The policy proposes no valid action; names the field, its value and what is allowed."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a step's request.

    Attributes:
        verification: what to execute; None to execute the draft.
        reason: why there is no verification; NONE if there is one, or no request was needed.
        message: for people; may be empty.
        verify_ms: request sent to reply received; 0 without a verification.
        compute_ms: the part of `verify_ms` that the verifier spent.
        reply_bytes: size of the serialized reply; 0 without a reply in time.
        retry_after_s: if the verifier is busy, when to send the next request.
        assignment: of the reply; see `Reply`.
    """

    verification: Verdict | None
    reason: Reason
    message: str = ""
    verify_ms: float = 0.0
    compute_ms: float = 0.0
    reply_bytes: int = 0
    retry_after_s: float = 0.0
    assignment: int = NO_ASSIGNMENT

    def withheld(self) -> Outcome:
        """Return the outcome of a step that executes nothing; the message has the reason."""
        why = self.reason.name.lower().replace("_", " ")
        message = f"{why}: {self.message}" if self.message else why
        return replace(self, reason=Reason.FALLBACK_LIMIT, message=message)


@dataclass(eq=False)
class PendingRequest:
    """A request that was submitted.

    Attributes:
        request: its content.
        submitted_s: when; all times are those of the session's caller.
        deadline_s: when it is missed.
        update: its window as it was sent last.
        resend_s: when it is sent again; infinite for never.
        retransmissions: how often it was sent again, with the whole window or unchanged.
        request_bytes: size of all its serialized messages.
        sent_s: when its messages that may still get a reply were sent, by their numbers.
        answered: data that the verifier's rule asked for were sent.
    """

    request: Request
    submitted_s: float
    deadline_s: float
    update: WireWindow = NO_WINDOW
    resend_s: float = math.inf
    retransmissions: int = 0
    request_bytes: int = 0
    sent_s: dict[int, float] = field(default_factory=dict)
    answered: bool = False

    def asked_by(self, reply: Reply) -> bool:
        """Whether a reply asks for more data of the draft, see `DataRule.answered`; once at most."""
        request = self.request
        if not (request.data and reply.rule_data) or request.without_actions or self.answered:
            return False
        named = reply.episode, reply.step, reply.first_step
        return reply.status == OK and not reply.fault and named == request.about and not len(reply.actions)

    @property
    def due_s(self) -> float:
        """Time at which it is missed or sent again."""
        return min(self.deadline_s, self.resend_s)


def judged(
    target: Description, request: Request, reply: Reply, verify_ms: float, check: Check = lambda actions: None
) -> Outcome:
    """Check a reply, and return the outcome of its request.

    Args:
        target: its sizes and its rule.
        request: that was sent.
        reply: unchecked.
        verify_ms: request sent to reply received.
        check: of the actions; by default all finite ones are accepted.
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
    named = reply.episode, reply.step, reply.first_step
    if named != (request.episode, request.step, request.first_step):
        message = f"episode_id, step_id, first_step: {named}, must be {request.about}"
        return Outcome(None, Reason.BAD_REPLY, message, reply_bytes=size)
    if not 0.0 <= reply.compute_ms < math.inf:
        message = f"compute_time_ms: {reply.compute_ms}, must be finite and at least 0"
        return Outcome(None, Reason.BAD_REPLY, message, reply_bytes=size)
    try:
        known = (
            target.signature.horizon
            if request.without_actions
            else _left_out(target, request, reply.accepted)
        )
        parts = request.codes.size if target.rule.needs_codes else None  # other rules have other parts
        verification = check_reply(target.signature, known, parts, reply.accepted, reply.actions, reply.codes)
        if request.without_actions and request.codes.size:
            check_size("codes", len(reply.codes), (request.codes.size,))
        described = target.intent_size, target.intent_number
        intent = check_intent(reply.intent, reply.intent_fingerprint, *described)
        check(verification.actions)
    except (RequestError, ValueError) as error:
        return Outcome(None, Reason.BAD_REPLY, str(error), reply_bytes=size)
    actions = verification.actions
    if known and not request.without_actions:  # complete it: from the step of the request on
        dim = target.signature.action_dim
        drafted = request.actions[: known * dim].reshape(1, known, dim)
        actions = np.concatenate([drafted, actions], axis=1)
    verification = replace(verification, actions=actions, intent=intent)
    took = verify_ms, reply.compute_ms
    return Outcome(verification, Reason.NONE, "", *took, size, assignment=reply.assignment)


def contradiction(target: Description, reply: Reply) -> str:
    """Return in what a reply shows that the verifier is another one now; empty where it shows nothing."""
    alike = reply.status != OK or reply.intent_fingerprint == target.intent_number
    return "" if alike else "the verifier has another encoder of intents than it has described"


def _left_out(target: Description, request: Request, accepted: Sequence[bool]) -> int:
    """Return how many of the first actions a reply leaves out, because the robot knows them.

    Args:
        target: its sizes and its rule.
        request: as it was sent.
        accepted: which parts of the draft the reply accepts.
    """
    ahead = request.first_step - request.step
    if not (target.rule.keeps_drafts and accepted and all(accepted)):
        return ahead
    drafted = request.actions.size // target.signature.action_dim
    return max(ahead, min(drafted, target.signature.horizon))


@dataclass
class ActiveStep:
    """A step that has started.

    Attributes:
        observation: that began it.
        step: its proposal, and what its gate says.
        received_s: when the observation came.
        draft_ms: from there to the proposal.
        pending: its request; None without one.
        withheld: nothing was executed that was verified or allowed.
        outcome: of its request; with `ahead`, the newest since the step before.
        outdated: the robot was held since the step was proposed, so its action must not be executed.
        newest: the newest observation, where that is another one: the arm may have been moved since.
        measured_s: when that arrived.
    """

    observation: Observation
    step: Step
    received_s: float
    draft_ms: float
    pending: PendingRequest | None = None
    withheld: bool = False
    outcome: Outcome = Outcome(None, Reason.NONE)
    outdated: bool = False
    newest: Observation | None = None
    measured_s: float = -math.inf


class Fallback:
    """Counts consecutive steps with a request but without a reply.

    Above a limit the draft is withheld at every step until the target has verified one. Meanwhile every step
    sends a request, because the gate of a robot at rest might never request one. A step without a request
    neither counts nor resets the count: otherwise a gate that skips steps could keep a robot moving without
    a target.

    Attributes:
        alone: consecutive steps without a reply so far.
        withholds: no draft may be executed until the target has verified one.
        drafts: the robot has a policy of its own; without one it is held where it has no plan.

    Args:
        limit: of consecutive steps; 0 for none, None for no limit.
        drafts: see the attribute.
    """

    def __init__(self, limit: int | None, drafts: bool = True) -> None:
        self._limit, self.drafts = limit, drafts
        self.reset()

    def reset(self) -> None:
        """Restart the count, for example because the target has verified a draft or its plan is executed."""
        self.alone, self.withholds = 0, False

    def unverified(self) -> bool:
        """Count a draft without the reply that it needed; return whether it may be executed."""
        self.alone += 1
        self.withholds = self._limit is not None and self.alone > self._limit
        return not self.withholds

    @property
    def label(self) -> str:
        """Behaviour without a target, for people."""
        if self._limit == 0 or not self.drafts:
            return "the robot is held"
        if self._limit is None:
            return "drafts are executed"
        return f"drafts are executed for {self._limit} steps in a row, then the robot is held"
