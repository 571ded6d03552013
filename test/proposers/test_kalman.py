"""A filter of what was done: white on its own model; a rejected draft is repaired, then verified."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import OBSERVATION, Feature, Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.kalman import KalmanProposer, RectifiedProposer, VelocityFilter

A = 2
SCALE = np.array([0.5, 2.0], np.float32)
SIGNATURE = Signature(1, 1, A, (Feature(OBSERVATION, 1),))
NOTHING = SIGNATURE.observations(np.zeros((1, 1, 1), np.float32), np.zeros((1, 0), np.float32))


class StubDraft(Policy):
    """Drafts what a test sets."""

    def __init__(self) -> None:
        super().__init__(SIGNATURE, ActionRange(np.full(A, -np.inf), np.full(A, np.inf)), SCALE, "stub")
        self.next = np.zeros(A)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        return Proposal(np.broadcast_to(self.next * SCALE, (len(draws), 1, A)).astype(np.float32))


def propose(proposer: Proposer, step: int, executed: np.ndarray | None) -> Proposal:
    last = np.full((1, A), np.nan, np.float32) if executed is None else executed
    context = ProposerContext(
        step, NOTHING, ObservationBuffer(2), Plan(1, A), np.zeros((1, 0)), 1.0, executed=last
    )
    proposal = proposer.propose(context)
    assert proposal is not None
    return proposal


@pytest.mark.parametrize("kept", [0.5, 1.0])
def test_the_innovation_is_white_on_the_filters_own_model(kept: float) -> None:
    robots, steps, drive, noise = 40, 400, 0.3, 1.0
    draw = np.random.default_rng(4)
    onward = np.array([[1.0, kept], [0.0, kept]])
    state, tested = np.zeros((robots, A, 2)), VelocityFilter(robots, A, kept, drive, noise)
    normalised = []
    for _ in range(steps):
        pushed = np.sqrt(drive) * draw.normal(size=(robots, A, 1)) * np.array([0.5, 1.0])
        state = state @ onward.T + pushed
        measured = state[..., 0] + np.sqrt(noise) * draw.normal(size=(robots, A))
        _, variance = tested.predict()
        innovation = tested.update(measured, np.ones(robots, dtype=bool))
        normalised.append(innovation / np.sqrt(variance)[:, None])
    white = np.stack(normalised)[50:]
    count = white.size
    assert white.mean() == pytest.approx(0.0, abs=5 / np.sqrt(count))
    assert np.square(white).mean() == pytest.approx(1.0, abs=5 * np.sqrt(2 / count))
    for lag in range(1, 6):
        correlation = (white[lag:] * white[:-lag]).mean()
        assert correlation == pytest.approx(0.0, abs=5 / np.sqrt(count)), lag


def test_robots_are_filtered_each_by_what_is_known_of_it() -> None:
    both, alone = VelocityFilter(2, A), VelocityFilter(1, A)
    for step in range(6):
        both.predict(), alone.predict()
        values = np.full((2, A), float(step))
        both.update(values, np.array([True, step % 2 == 0]))
        alone.update(values[:1], np.array([True]))
    (two, variance), (one, _) = both.predict(), alone.predict()
    np.testing.assert_allclose(two[0], one[0])
    assert abs(two[1] - one[0]).max() > 0.0
    assert variance[1] > variance[0]


def test_before_the_first_action_a_draft_is_expected_to_be_wrong() -> None:
    for make in (KalmanProposer, RectifiedProposer):
        draft = StubDraft()
        draft.next = np.array([3.0, -3.0])
        proposal = propose(make(draft), 0, None)
        np.testing.assert_allclose(proposal.actions[0, 0], draft.next * SCALE)
        assert proposal.expected_error is not None
        assert np.isinf(proposal.expected_error).all()


def test_who_is_made_amid_an_episode_begins_to_learn_there() -> None:
    proposal = propose(KalmanProposer(StubDraft()), 40, np.zeros((1, A), np.float32))
    assert proposal.expected_error is not None
    assert np.isinf(proposal.expected_error).all()


def test_the_filters_own_actions_teach_it_nothing_and_it_grows_unsure() -> None:
    proposer, draw = KalmanProposer(StubDraft()), np.random.default_rng(1)
    executed, expected = None, []
    for step in range(12):
        proposal = propose(proposer, step, executed)
        if step < 8:
            executed = (draw.normal(size=(1, A)) * SCALE).astype(np.float32)
        else:
            executed = proposal.actions[:, 0]
            assert proposal.expected_error is not None
            expected.append(proposal.expected_error.item())
    assert expected == sorted(expected)
    assert expected[0] < expected[-1] < np.inf


def steady(proposer: RectifiedProposer, draft: StubDraft, steps: int = 12) -> np.ndarray:
    """Let a motion stand still but for a little; return what was done last."""
    draw, executed = np.random.default_rng(2), None
    for step in range(steps):
        draft.next = 0.1 * draw.normal(size=A)
        proposal = propose(proposer, step, executed)
        executed = proposal.actions[:, 0]
    assert executed is not None
    return executed


def test_a_rejected_draft_is_repaired_and_then_verified_for_some_steps() -> None:
    draft = StubDraft()
    proposer = RectifiedProposer(draft, resting=3)
    executed = steady(proposer, draft)
    draft.next = np.array([2.0, 2.0])
    repaired, errors = [], []
    for step in range(12, 21):
        proposal = propose(proposer, step, executed)
        assert proposal.expected_error is not None
        repaired.append(not np.allclose(proposal.actions[0, 0], draft.next * SCALE))
        errors.append(proposal.expected_error.item())
        if repaired[-1]:
            assert np.abs(proposal.actions[0, 0] / SCALE).max() < 0.5
    assert repaired == [True, False, False, False] * 2 + [True]
    assert [error > 0.0 for error in errors] == [not each for each in repaired]


def test_the_threshold_follows_the_innovations_within_its_bounds() -> None:
    def allowed(jitter: float) -> float:
        draft = StubDraft()
        proposer = RectifiedProposer(draft, tolerance=2.0, least=0.25, most=3.0, resting=np.inf)
        draw, executed = np.random.default_rng(3), None
        for step in range(30):
            draft.next = jitter * draw.normal(size=A)
            executed = propose(proposer, step, executed).actions[:, 0]
        draft.next = np.array([9.0, 9.0])
        beyond = propose(proposer, 30, executed).expected_error
        assert beyond is not None
        off = np.sqrt(np.square(draft.next - proposer._motion.predicted[0] / SCALE).mean())
        return float(off - beyond.item())

    allowances = [allowed(jitter) for jitter in (0.01, 0.3, 0.6, 9.0)]
    assert allowances[0] == pytest.approx(0.25)
    assert 0.25 < allowances[1] < allowances[2] < 3.0
    assert allowances[3] == pytest.approx(3.0)
