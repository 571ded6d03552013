# SPDX-License-Identifier: Apache-2.0
"""What has happened in the steps of one robot, and at the verifiers that it asks, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from adahi_ros.protocol.records import Reason, StepRecord


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


@dataclass
class VerifierTotals:
    """What one of several verifiers was asked, and what came of it.

    Attributes:
        requests: sent to it, whatever was sent to others.
        hedges: of them, those that another one was asked before.
        answers: that were executed, or went into the plan.
        spare: good replies that came after another one's, or when nobody needed them any more.
        refusals: replies that were no answer.
        misses: requests without a reply by when one is there as a rule.
        windows_resent: requests that it was sent again with the whole window.
        bytes_up, bytes_down: serialized requests and replies.
    """

    requests: int = 0
    hedges: int = 0
    answers: int = 0
    spare: int = 0
    refusals: int = 0
    misses: int = 0
    windows_resent: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
