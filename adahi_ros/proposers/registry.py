# SPDX-License-Identifier: Apache-2.0
"""The proposers, by name; a new one is a line here, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Callable

from adahi_ros.core.registry import Registry
from adahi_ros.proposers.interface import Proposer

PROPOSERS: Registry[Callable[..., Proposer]] = Registry(
    "adahi_ros.proposers",
    {
        "draft": "adahi_ros.proposers.draft:DraftProposer",
        "plan": "adahi_ros.proposers.plan:PlanProposer",
        "corrector": "adahi_ros.proposers.corrector:CorrectorProposer",
        "intent": "adahi_ros.proposers.intent:IntentProposer",
        "intent_of_plan": "adahi_ros.proposers.intent:IntentProposer",
        "draft_checks_plan": "adahi_ros.proposers.draft:DraftChecksPlanProposer",
    },
    Proposer,
)
"""Made from a draft policy, or from another actor, such as a corrector.

Dataclasses have arguments, fields made with `argument`: parameters PROPOSER.NAME of the robot's node, and
PROPOSER:NAME=VALUE in the name of a method.
"""
