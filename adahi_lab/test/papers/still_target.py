"""A target that plans zeros, and what a robot makes of its reply."""

from __future__ import annotations

import numpy as np

from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.robot.outcomes import Outcome, judged
from adahi_ros.robot.target_view import Features
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier

T, SCALE = 4, np.array([1.0, 10.0], np.float32)
NO_DRAWS = np.zeros((1, 0, 2))


class Still(DirectPolicy):
    """Plans zeros."""

    def __init__(self) -> None:
        most = np.full(2, LARGEST)
        signature = Signature(1, T, 2, (Feature(OBSERVATION, 1),))
        super().__init__(signature, ActionRange(-most, most), SCALE, "still")

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        return np.zeros((len(draws), T, 2))


def described(rule: str) -> Description:
    return Description("still", rule, Still().signature)


def request_for(draft: Proposal, ahead: int = 0) -> Request:
    view = Features(1)
    view.add({OBSERVATION: np.zeros(1)})
    return Request.from_draft(draft, 0, 7, view.window(Still().signature), ahead)


def outcome_of(rule: str, draft: Proposal, ahead: int = 0) -> tuple[Outcome, Reply]:
    """Return what comes of a request by a rule, and the verifier's reply."""
    request = request_for(draft, ahead)
    reply = Engine(TargetVerifier(Still(), rule), 0).verify(request, 1.0)
    return judged(described(rule), request, reply, 2.0), reply


def scaled(rule: Acceptance, scale: np.ndarray = SCALE) -> Acceptance:
    """Return a rule that knows the scale of the target's actions."""
    rule.action_scale = scale
    return rule
