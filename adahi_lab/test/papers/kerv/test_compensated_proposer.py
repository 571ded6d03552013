"""KERV on the robot: the threshold over an episode, the filter of each entry, and what the robot sends."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.papers.kerv.compensated_proposer import CompensatedProposer, EntryFilters, threshold_at
from adahi_lab.papers.tokens.action_draft import ActionDrafter
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.assets import asset
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import UNITS
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.proposers.interface import ProposerContext
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.controller import Step as ControlStep

SIZE = 39  # of an observation of Meta-World


@pytest.fixture(scope="module")
def draft() -> TokenPolicy:
    policy = load_policy(asset("checkpoints/metaworld/tokens") / "draft", "onnxruntime")
    assert isinstance(policy, TokenPolicy)
    return policy


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 15.0), (10, 14.89683), (40, 9.90528), (60, 4.85858), (100, 3.00213)]
)
def test_the_threshold_falls_as_in_the_released_code(step: int, expected: float) -> None:
    """Expected values are of `compute_dynamic_threshold` in lusunn111/KERV."""
    assert threshold_at(step, 200, 15.0, 3.0) == pytest.approx(expected, abs=1e-4)


def test_the_filter_predicts_as_the_released_code() -> None:
    """Expected values are of `kalman_predict_from_history` in lusunn111/KERV."""
    filters = EntryFilters(1, 2)
    for first, second in ((100.0, 7.0), (120.0, 7.0), (90.0, 7.0)):
        filters.update(np.array([[first, second]]))
    np.testing.assert_allclose(filters.state, [[90.0299202, 7.0]], atol=1e-6)


def steps(draft: TokenPolicy, count: int, **arguments: float) -> list[ControlStep]:
    rng = np.random.default_rng(2)
    controller = Controller(
        draft, ControllerConfig(ThresholdedGate("always", 0.0)), "compensated", arguments=arguments
    )
    controller.reset(1, [0])
    made = []
    for _ in range(count):
        step = controller.begin(
            {"observation": rng.normal(size=(1, draft.signature.observation_dim)).astype(np.float32)}
        )
        controller.executed(controller.finish(step, None))
        made.append(step)
    return made


def test_every_fourth_request_has_a_prediction(draft: TokenPolicy) -> None:
    made = steps(draft, 12)
    assert all(step.transmit.all() for step in made)
    sent = [step.draft(np.array([0])) for step in made]
    assert [each.actions.shape[1] for each in sent] == [2, 2, 2, 3] * 3
    for index in (3, 7, 11):
        last = made[index - 1].proposal
        assert last is not None
        np.testing.assert_allclose(sent[index].actions[0, 2], last.actions[0, 0], atol=1e-5)
    for each in sent:
        drawn = each.distribution
        assert drawn is not None
        assert drawn.counts is not None
        assert (drawn.counts.max(axis=-1) == UNITS).all()
        assert drawn.codes.shape == (1, 4)


def test_the_threshold_falls_where_kept_tokens_were_far_off_and_rises_elsewhere(draft: TokenPolicy) -> None:
    proposer = CompensatedProposer(draft, first=12.0, last=5.0, limit=8.0)
    windows = np.zeros((2, draft.signature.history, draft.signature.observation_dim), np.float32)
    seen = draft.signature.observations(windows, np.zeros((2, draft.signature.goal_dim), np.float32))

    def threshold() -> list[float]:
        context = ProposerContext(1, seen, ObservationBuffer(4), Plan(2, 4), np.zeros((2, 0)), 1.0)
        made = proposer.propose(context).actions
        width = ActionDrafter(draft, "").width
        reach: list[float] = np.floor((made[:, 1] - made[:, 0]) / width).mean(axis=1).tolist()
        return reach

    assert threshold() == [12.0, 12.0]
    codes = np.full((2, draft.codec.codebooks), 100)
    codes[1, :4] += 3  # 12 bins in all
    executed, own = draft.codec.decode(codes), draft.codec.decode(np.full_like(codes, 100))
    actions = np.stack([executed[:, 0], own[:, 0]], axis=1)
    for _ in range(9):
        proposer.observe_reply(0, Verdict(actions, np.ones((2, 4), dtype=bool)), np.arange(2))
    assert threshold() == [12.0, 5.0]
    proposer.observe_reply(0, Verdict(actions[:1], np.ones((1, 4), dtype=bool)), np.array([1]))
    assert threshold() == [12.0, 6.0]


def test_other_drafts_are_refused() -> None:
    policy = load_policy(asset("checkpoints/ball") / "draft", "onnxruntime")
    with pytest.raises(ValueError, match=r"^checkpoint: CodePolicy, must emit tokens"):
        Controller(policy, ControllerConfig(ThresholdedGate("always", 0.0)), "compensated")


def test_a_threshold_that_rises_is_refused(draft: TokenPolicy) -> None:
    with pytest.raises(ValueError, match=r"^last: 9\.0, must be at most first, 2\.0"):
        steps(draft, 1, first=2.0, last=9.0)
