"""A draft that is near to the target's plan stands and is not said again; none further off is executed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.acceptance.distance import Distance
from adahi_ros.core.action_range import ActionRange
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import OBSERVATION, Feature, Observations, Offer, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.protocol.description import Description, Wants
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.requests import Outcome, judged
from adahi_ros.robot.target_view import Features
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier

T, SCALE = 4, np.float32([1.0, 10.0])
NO_DRAWS = np.zeros((1, 0, 2))


class Still(DirectPolicy):
    """Plans zeros."""

    def __init__(self) -> None:
        most = np.full(2, LARGEST)
        super().__init__(
            Signature(1, T, 2, (Feature(OBSERVATION, 1),)), ActionRange(-most, most), SCALE, "still"
        )

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        return np.zeros((len(draws), T, 2))


DESCRIPTION = Description("still", "distance", Still().signature)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, T + 2),
    st.floats(0.0, 2.0),
)
def test_what_is_executed_is_never_further_off_than_allowed(seed: int, count: int, within: float) -> None:
    draw = np.random.default_rng(seed)
    drafted = (draw.normal(size=(3, count, 2)) * SCALE).astype(np.float32)
    plan = Proposal((draw.normal(size=(3, T, 2)) * 0.3 * SCALE).astype(np.float32))
    verdict = Distance(within * SCALE).verify(Proposal(drafted), plan, np.zeros((3, 0, 2)))
    assert verdict.actions.shape == plan.actions.shape
    assert (np.abs(verdict.actions - plan.actions) <= within * SCALE).all()
    for row, accepted in enumerate(verdict.accepted[:, 0]):
        told = min(count, T) if accepted else 0
        np.testing.assert_array_equal(verdict.actions[row, :told], drafted[row, :told])
        np.testing.assert_array_equal(verdict.actions[row, told:], plan.actions[row, told:])


def test_each_entry_has_its_own_scale() -> None:
    rule = Distance(0.25 * SCALE)
    for off, accepted in (((0.2, 2.0), True), ((0.3, 0.0), False), ((0.0, 2.6), False)):
        draft = np.zeros((1, T, 2), np.float32)
        draft[0, 2] = off
        assert (
            rule.verify(Proposal(draft), Proposal(np.zeros((1, T, 2))), NO_DRAWS).accepted.item() is accepted
        )


def asked(draft: Proposal, ahead: int) -> Request:
    view = Features(1)
    view.add({OBSERVATION: np.zeros(1)})
    return Request.of(draft, 0, 7, view.window(Still().signature), ahead)


def outcome_of(draft: Proposal, ahead: int, said: int) -> Outcome:
    """Return what comes of a request to a verifier that says so many actions in its reply."""
    request = asked(draft, ahead)
    reply = Engine(TargetVerifier(Still(), "distance"), 0).verify(request, 1.0)
    assert len(reply.actions) == said * 2
    return judged(DESCRIPTION, request, reply, 2.0)


@pytest.mark.parametrize(
    ("count", "ahead", "off", "said"),
    [
        (T, 0, 0.1, 0),  # a yes
        (2, 0, 0.1, 2),  # a yes, and what comes after
        (2, 1, 0.1, 2),
        (3, 2, 0.1, 1),
        (T + 3, 1, 0.1, 0),
        (T, 0, 0.9, T),  # a no
        (2, 1, 0.9, T - 1),
    ],
)
def test_a_draft_that_stands_is_not_said_again_and_the_robot_has_it_whole(
    count: int, ahead: int, off: float, said: int
) -> None:
    drafted = np.full((count, 2), off, np.float32)
    outcome = outcome_of(Proposal(drafted[None]), ahead, said)
    assert outcome.reason is Reason.NONE
    assert outcome.verification is not None
    near = off < 0.25
    expected = np.zeros((T, 2), np.float32)
    own = min(count, T) if near else ahead
    expected[:own] = drafted[:own]
    np.testing.assert_array_equal(outcome.verification.actions[0], expected)


def test_a_reply_that_says_yes_to_more_than_was_asked_is_none() -> None:
    request = asked(Proposal(np.full((1, 2, 2), 0.1, np.float32)), 0)
    reply = Reply(0, "", 0, 7, 7, [True], [], 1.0, True)
    outcome = judged(DESCRIPTION, request, reply, 2.0)
    assert (outcome.reason, outcome.message) == (
        Reason.BAD_REPLY,
        "actions: 0 values, expected 4 for shape (2, 2)",
    )


@pytest.mark.parametrize("proposer", ["plan", "draft_checks_plan"])
def test_a_robot_that_goes_by_plans_and_has_none_gets_the_target_s(proposer: str) -> None:
    controller = Controller(Still(), ControllerConfig(ThresholdedGate("always", 0.0)), proposer)
    step = controller.begin({OBSERVATION: np.zeros((1, 1), np.float32)})
    wants = Wants(Still().signature, Offer({OBSERVATION: 1}))
    outcome = outcome_of(wants.sent_to(DESCRIPTION).of(step.draft(np.array([0]))), 0, T)
    assert outcome.verification is not None
    assert outcome.verification.accepted.tolist() == [[False]]
    np.testing.assert_array_equal(outcome.verification.actions, np.zeros((1, T, 2)))
