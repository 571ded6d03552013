# SPDX-License-Identifier: Apache-2.0
"""The records of one robot's run, step by step and episode by episode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum


class Reason(IntEnum):
    """Reason for a draft without the target's reply, or for no command; numbered as in `DraftStatus.msg`."""

    NONE = 0
    NO_VERIFIER = 1
    DEADLINE = 2
    REFUSED = 3
    BAD_REPLY = 4
    SUPERSEDED = 5
    BREAKER_OPEN = 6
    FALLBACK_LIMIT = 7
    NO_PLAN = 8
    BUSY = 9
    PERSON = 10


ON_COURSE = (Reason.NONE, Reason.PERSON)  # of steps that did not fall back
NO_PLAN = -1  # in place of a plan's age
UNSAID = -1.0  # in place of an expected error


@dataclass(frozen=True)
class StepRecord:
    """One control step of the draft policy; fields as in `DraftStatus.msg`.

    Attributes:
        stamp_ns: of the observation.
        accepted: per codebook; empty unless verified.
        reason_counts: steps so far by `Reason`, including this one.
        draft_action: A values, the action to execute without a request; empty if there is none.
        planned_action: A values, the target's plan for this step; empty without one.
        plan_age: steps since the plan's request; `NO_PLAN` without one.
        expected_error: in action scales; `UNSAID` where the proposer gives none.
        deviation: of the draft from executed actions; NaN without actions, or without a draft.
        action: A values, the executed action; empty without one.
    """

    stamp_ns: int
    robot_id: str
    episode: int
    step: int
    gate: str
    deviation: float
    score: float
    threshold: float
    transmitted: bool
    verified: bool
    accepted: tuple[bool, ...]
    reason: Reason
    reason_counts: tuple[int, ...]
    message: str
    proposer: str
    draft_action: tuple[float, ...]
    planned_action: tuple[float, ...]
    plan_age: int
    plan_left: int
    expected_error: float
    requests_pending: int
    action: tuple[float, ...]
    draft_ms: float
    verify_ms: float
    target_compute_ms: float
    total_ms: float
    request_bytes: int
    response_bytes: int

    @property
    def by_person(self) -> bool:
        """Whether a person drove the arm, or held it."""
        return self.reason is Reason.PERSON

    @property
    def planned(self) -> bool:
        """Whether there was a plan for this step."""
        return self.plan_age != NO_PLAN

    @property
    def correction(self) -> float | None:
        """Distance of `draft_action` from `planned_action`, in action units; None where one is missing.

        A root mean square over the A values.
        """
        if not self.planned_action or len(self.draft_action) != len(self.planned_action):
            return None
        return math.dist(self.draft_action, self.planned_action) / math.sqrt(len(self.planned_action))
