# SPDX-License-Identifier: Apache-2.0
"""The steps of one robot, and the request of a step from its submission to its fate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import NO_PLAN, UNSAID, Reason, StepRecord
from adahi_ros.protocol.request import OK, Reply, Request, RequestError, RequestFault, check_reply
from adahi_ros.protocol.window import NO_WINDOW, WireWindow

if TYPE_CHECKING:
    from adahi_ros.contract.assembler import Observation
    from adahi_ros.robot.controller import Step

FALLBACKS = ("draft", "hold")
RETRY_MOST_S = 2.0  # that a robot leaves a verifier alone which is busy, whatever that says


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
    """

    request: Request
    submitted_s: float
    deadline_s: float
    update: WireWindow = NO_WINDOW
    resend_s: float = math.inf
    retransmissions: int = 0
    request_bytes: int = 0
    ids: list[int] = field(default_factory=list)

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
        known = _left_out(target, request, reply.accepted)
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


def _left_out(target: Description, request: Request, accepted: Sequence[bool]) -> int:
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


@dataclass
class ActiveStep:
    """A step that has begun, and its request where it has one."""

    observation: Observation
    step: Step
    received_s: float
    draft_ms: float
    pending: PendingRequest | None = None
    withheld: bool = False

    def record(
        self,
        outcome: Outcome,
        executed: np.ndarray | None,
        total_ms: float,
        robot_id: str,
        proposer: str,
        requests_pending: int,
        totals: Totals,
    ) -> StepRecord:
        """Count the step, and return its record.

        Args:
            outcome: of its request, or of what came since the step before.
            executed: (A,), what was commanded; None where nothing was.
            total_ms: observation received to action published.
            robot_id: whose step it is.
            proposer: what proposed it, by name.
            requests_pending: requests that are on their way.
            totals: of the robot's steps.
        """
        step, observation, verification = self.step, self.observation, outcome.verification
        record = StepRecord(
            stamp_ns=observation.stamp_ns,
            robot_id=robot_id,
            episode=observation.episode,
            step=observation.step,
            gate=step.trigger.name,
            deviation=_known(step.deviation[0]),
            score=float(step.score[0]),
            threshold=step.trigger.threshold,
            transmitted=self.pending is not None,
            verified=verification is not None,
            accepted=() if verification is None else tuple(map(bool, verification.accepted[0])),
            reason=outcome.reason,
            reason_counts=totals.count(outcome.reason),
            message=outcome.message,
            proposer=proposer,
            draft_action=_numbers(step.intended[0]),
            planned_action=_numbers(step.planned[0]),
            plan_age=int(step.plan_age[0]) if step.plan_left[0] else NO_PLAN,
            plan_left=int(step.plan_left[0]),
            expected_error=_expected_error(step.proposal),
            requests_pending=requests_pending,
            action=() if executed is None else tuple(map(float, executed)),
            draft_ms=self.draft_ms,
            verify_ms=outcome.verify_ms,
            target_compute_ms=outcome.compute_ms,
            total_ms=total_ms,
            request_bytes=0 if self.pending is None else self.pending.request_bytes,
            response_bytes=outcome.reply_bytes,
        )
        totals.add(record)
        return record


def _expected_error(proposal: Proposal | None) -> float:
    """Return what a robot's proposer says of itself; `UNSAID` where it says nothing."""
    said = None if proposal is None else proposal.expected_error
    return UNSAID if said is None or not np.isfinite(said[0]) else float(said[0])


def _known(number: float) -> float:
    """Return a number; NaN where it is infinite, because there is nothing to compare with."""
    return float(number) if np.isfinite(number) else float("nan")


def _numbers(action: np.ndarray) -> tuple[float, ...]:
    """Return an action (A,); nothing of one that there is not."""
    return () if np.isnan(action).any() else tuple(map(float, action))


@dataclass
class Totals:
    """What has happened since the node was activated.

    Attributes:
        steps: observations that got their command.
        transmitted: of them, those whose draft was sent to the target.
        verified: of them, those whose reply was executed.
        coded: of them, those that are about codes of a draft.
        kept: of them, those that kept every drafted code.
        repeated: commands sent again for an observation that was repeated.
        undrafted: observations that got no command, because the policy proposed none that is sound.
        reasons: steps by their reason; those of all but NONE went without the target's reply.
    """

    steps: int = 0
    transmitted: int = 0
    verified: int = 0
    coded: int = 0
    kept: int = 0
    repeated: int = 0
    undrafted: int = 0
    dropped: int = 0
    unattended: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)

    @property
    def fallbacks(self) -> dict[str, int]:
        """Steps without the target's reply, by reason."""
        return {why.name.lower(): count for why, count in self.reasons.items() if why is not Reason.NONE}

    def count(self, reason: Reason) -> tuple[int, ...]:
        """Count the reason of one step; return the steps so far by reason."""
        self.reasons[reason] += 1
        return tuple(self.reasons[each] for each in Reason)

    def add(self, record: StepRecord) -> None:
        """Count the rest of one step."""
        self.steps += 1
        self.transmitted += record.transmitted
        self.verified += record.verified
        coded = record.verified and bool(record.accepted)
        self.coded += coded
        self.kept += coded and all(record.accepted)


class Fallback:
    """Counts the steps in a row whose draft the gate sent to the target, without a reply.

    Past a limit the draft is withheld: at every step, whatever its gate says, until the target has verified
    one. So ask about every step while it is withheld; a robot that stands still may never again draft what
    its gate would have verified. A step that the gate leaves to the draft does not count, and does not end
    the row either: else a gate that skips one now and then would keep a robot going without a target.

    Attributes:
        alone: such steps in a row so far.
        withholds: nothing of a draft is to be executed until the target has verified one.

    Args:
        limit: of such steps in a row; 0 for none at all, None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Count from 0: also where the target has verified a draft, or its plan is executed."""
        self.alone, self.withholds = 0, False

    def unverified(self) -> bool:
        """Count a draft that was to be verified and was not; return whether it may be executed."""
        self.alone += 1
        self.withholds = self._limit is not None and self.alone > self._limit
        return not self.withholds

    @property
    def label(self) -> str:
        """What happens without a target, for people."""
        if self._limit is None:
            return "drafts are executed"
        if self._limit == 0:
            return "the robot is held"
        return f"drafts are executed for {self._limit} steps in a row, then the robot is held"
