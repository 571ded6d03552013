# SPDX-License-Identifier: Apache-2.0
"""A step that has begun, and what is told of it when it is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.contract.assembler import Observation
from adahi_ros.protocol.records import NO_PLAN, StepRecord
from adahi_ros.robot.controller import Step
from adahi_ros.robot.requests import Outcome, PendingRequest


@dataclass
class ActiveStep:
    """A step that has begun, and its request where it has one."""

    observation: Observation
    step: Step
    received_s: float
    draft_ms: float
    pending: PendingRequest | None = None
    withheld: bool = False

    @property
    def planned(self) -> bool:
        """Whether the target's plan says what to do."""
        return bool(self.step.plan_left[0])

    def record(
        self,
        outcome: Outcome,
        executed: np.ndarray | None,
        total_ms: float,
        robot_id: str,
        proposer: str,
        requests_pending: int,
        reason_counts: tuple[int, ...],
    ) -> StepRecord:
        """Return what is told of the step.

        Args:
            outcome: of its request, or of what came since the step before.
            executed: (A,), what was commanded; None where nothing was.
            total_ms: observation received to action published.
            robot_id: whose step it is.
            proposer: what proposed it, by name.
            requests_pending: requests that are on their way.
            reason_counts: steps so far by `Reason`, this one included.
        """
        step, observation, verification = self.step, self.observation, outcome.verification
        return StepRecord(
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
            reason_counts=reason_counts,
            message=outcome.message,
            proposer=proposer,
            draft_action=_numbers(step.intended[0]),
            planned_action=_numbers(step.planned[0]),
            plan_age=int(step.plan_age[0]) if self.planned else NO_PLAN,
            plan_left=int(step.plan_left[0]),
            expected_error=step.expected_error,
            requests_pending=requests_pending,
            action=() if executed is None else tuple(map(float, executed)),
            draft_ms=self.draft_ms,
            verify_ms=outcome.verify_ms,
            target_compute_ms=outcome.compute_ms,
            total_ms=total_ms,
            request_bytes=0 if self.pending is None else self.pending.request_bytes,
            response_bytes=outcome.reply_bytes,
        )


def _known(number: float) -> float:
    """Return a number; NaN where it is infinite, because there is nothing to compare with."""
    return float(number) if np.isfinite(number) else float("nan")


def _numbers(action: np.ndarray) -> tuple[float, ...]:
    """Return an action (A,); nothing of one that there is not."""
    return () if np.isnan(action).any() else tuple(map(float, action))
