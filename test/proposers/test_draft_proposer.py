"""A robot with a draft policy: what it executes of a reply."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import ActionRange, CodeDistribution, Proposal
from adahi_ros.core.signature import OBSERVATION, CodeSpace, Feature, Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.proposers.draft import REPLIES
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.registry import PROPOSERS

B, N, K, A = 3, 2, 4, 2
DRAWN = np.array([[0, 1], [2, 3], [1, 1]])
CODES = CodeSpace("f", N, K)
BOTH, FIRST = np.array([[True, True]] * B), np.array([[True, False]] * B)


class Coded(Policy):
    """Draws known codes; the action of each code differs between robots, as by offsets."""

    def __init__(self, codes: CodeSpace | None = CODES) -> None:
        signature = Signature(1, 1, A, (Feature(OBSERVATION, 1),), codes=codes)
        super().__init__(signature, ActionRange(np.full(A, -99.0), np.full(A, 99.0)), np.ones(A), "coded")

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        offset = np.arange(B)[:, None, None] / 10

        def actions_of(codes: np.ndarray) -> np.ndarray:
            return (codes[:, None] + offset).astype(np.float32)

        counts = np.zeros((B, N, K), np.uint16)
        drawn = CodeDistribution(counts.astype(np.float32), DRAWN, actions_of, counts)
        return Proposal(actions_of(DRAWN), drawn)


def proposed(reply: str) -> tuple[Proposer, Proposal]:
    made: Proposer = PROPOSERS.made("proposer", "draft", {"reply": reply}, Coded())
    nothing = Observations({OBSERVATION: np.zeros((B, 1, 1), np.float32)}, {})
    context = ProposerContext(0, nothing, ObservationBuffer(1), Plan(B, A), np.zeros((B, 0)), 1.0)
    proposal = made.propose(context)
    assert proposal is not None
    return made, proposal


def replied(accepted: np.ndarray, rows: np.ndarray) -> Verdict:
    actions = np.full((B, 1, A), 50.0, np.float32)
    return Verdict(actions, accepted, codes=np.array([[3, 0]] * B)).rows(rows)


@pytest.mark.parametrize("rows", [np.array([True, False, True]), np.array([0, 2]), np.arange(B)])
def test_a_robot_decodes_codes_by_its_own_offsets(rows: np.ndarray) -> None:
    made, proposal = proposed("codes")
    found = made.understood(replied(FIRST, rows), proposal, rows)
    robots = np.arange(B)[rows]
    wanted = np.array([3.0, 0.0]) + robots[:, None] / 10
    np.testing.assert_allclose(found.actions[:, 0], wanted, rtol=1e-6)
    np.testing.assert_array_equal(proposal.actions[:, 0], Coded().propose(None, None).actions[:, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize(("accepted", "executed"), [(BOTH, 1.1), (FIRST, 50.0)])
def test_only_wholly_kept_drafts_are_executed_as_drafted(accepted: np.ndarray, executed: float) -> None:
    made, proposal = proposed("kept")
    found = made.understood(replied(accepted, np.array([0])), proposal, np.array([0]))
    wanted = [DRAWN[0, 0], DRAWN[0, 1]] if executed < 50 else [50.0, 50.0]
    assert found.actions[0, 0].tolist() == wanted


def test_a_robot_executes_the_actions_of_a_reply_by_default() -> None:
    made, proposal = proposed("actions")
    verdict = replied(BOTH, np.arange(B))
    assert made.understood(verdict, proposal, np.arange(B)) is verdict
    assert not made.decodes


@pytest.mark.parametrize("reply", REPLIES[1:])
def test_a_policy_without_codes_decodes_nothing(reply: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^proposer.reply: '{reply}', must be actions: the policy has no codes"
    ):
        PROPOSERS.made("proposer", "draft", {"reply": reply}, Coded(None))
