"""A draft that is near to the target's plan stands and is not said again; none further off is executed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test.papers.still_target import SCALE, Still, T, described, outcome_of, request_for, scaled

from adahi_lab.papers.spec_vla.distance import Distance
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import OBSERVATION, Offer
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import Reply
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.outcomes import Outcome, judged

DESCRIPTION = described("distance")


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, T + 2),
    st.floats(0.0, 2.0),
)
def test_what_is_executed_is_never_further_off_than_allowed(seed: int, count: int, within: float) -> None:
    draw = np.random.default_rng(seed)
    drafted = (draw.normal(size=(3, count, 2)) * SCALE).astype(np.float32)
    plan = Proposal((draw.normal(size=(3, T, 2)) * 0.3 * SCALE).astype(np.float32))
    verdict = scaled(Distance(within)).verify(Proposal(drafted), plan, np.zeros((3, 0, 2)))
    assert verdict.actions.shape == plan.actions.shape
    assert (np.abs(verdict.actions - plan.actions) <= within * SCALE).all()
    for row, accepted in enumerate(verdict.accepted[:, 0]):
        known = min(count, T) if accepted else 0
        np.testing.assert_array_equal(verdict.actions[row, :known], drafted[row, :known])
        np.testing.assert_array_equal(verdict.actions[row, known:], plan.actions[row, known:])


def checked_outcome(draft: Proposal, ahead: int, sent: int) -> Outcome:
    """Return what comes of a request to a verifier that says so many actions in its reply."""
    outcome, reply = outcome_of("distance", draft, ahead)
    assert len(reply.actions) == sent * 2
    return outcome


@pytest.mark.parametrize(
    ("count", "ahead", "off", "sent"),
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
def test_a_draft_that_stands_is_not_repeated_and_the_robot_has_it_whole(
    count: int, ahead: int, off: float, sent: int
) -> None:
    drafted = np.full((count, 2), off, np.float32)
    outcome = checked_outcome(Proposal(drafted[None]), ahead, sent)
    assert outcome.reason is Reason.NONE
    assert outcome.verification is not None
    near = off < 0.25
    expected = np.zeros((T, 2), np.float32)
    own = min(count, T) if near else ahead
    expected[:own] = drafted[:own]
    np.testing.assert_array_equal(outcome.verification.actions[0], expected)


def test_a_reply_that_says_yes_to_more_than_was_requested_is_none() -> None:
    request = request_for(Proposal(np.full((1, 2, 2), 0.1, np.float32)))
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
    outcome = checked_outcome(wants.sent_to(DESCRIPTION).select(step.draft(np.array([0]))), 0, T)
    assert outcome.verification is not None
    assert outcome.verification.accepted.tolist() == [[False]]
    np.testing.assert_array_equal(outcome.verification.actions, np.zeros((1, T, 2)))
