"""An agent's plans, foresight and corrections, and the proposer that acts by them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.papers.e2cl.agent import RIGHT, WORDS, Agent, feedback, load_agent, wrong
from adahi_lab.papers.e2cl.self_correcting import CORRECTION, PLAN, SelfCorrectingProposer
from adahi_lab.training.array_files import save_arrays
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.interface import ProposerContext

ROBOTS, ACTS, ABOVE = 6, 2, 4
STEEP = 50.0


@pytest.fixture(scope="module")
def draft() -> Policy:
    return load_policy(asset("checkpoints/ball") / "draft", "onnxruntime")


def agent_for(draft: Policy, right_from: float) -> Agent:
    """Return an agent that adds one action scale to each entry of an action, and starts from 0.

    It calls an action an error, of which the right one is far above, while its first entry is below
    `right_from` action scales.
    """
    signature = draft.signature
    sees = signature.history * signature.observation_dim + signature.goal_dim
    out = ACTS * (1 + WORDS)
    first, second, last = np.zeros((1, sees + out + 1)), np.array([[STEEP]]), np.zeros((out, 1))
    bias = np.zeros(out)
    first[0, sees], bias[:ACTS] = STEEP, 1.0
    last[ACTS + RIGHT], last[ACTS + ABOVE] = STEEP, -STEEP
    bias[ACTS + WORDS + RIGHT] = STEEP
    seen, first_bias = (np.zeros(sees), np.ones(sees), draft.action_scale), np.array([-STEEP * right_from])
    return Agent(*seen, first, first_bias, second, np.zeros(1), last, bias)


def context(draft: Policy) -> ProposerContext:
    draw, signature = np.random.default_rng(0), draft.signature
    seen = draw.normal(size=(ROBOTS, signature.history, signature.observation_dim)).astype(np.float32)
    observations = signature.observations(seen, draw.normal(size=(ROBOTS, signature.goal_dim)))
    uniforms = draw.random((ROBOTS, draft.draws))
    return ProposerContext(0, observations, ObservationBuffer(4), Plan(ROBOTS, ACTS), uniforms, 1.0)


@pytest.mark.parametrize(
    ("right_from", "rounds", "otherwise", "scales"),
    [
        (0.5, 1, PLAN, 1.0),  # the plan is right
        (1.5, 0, PLAN, 1.0),  # nothing is corrected
        (1.5, 1, PLAN, 2.0),  # its correction is right
        (2.5, 1, PLAN, 1.0),  # its correction is an error, too
        (2.5, 1, CORRECTION, 2.0),
        (2.5, 2, PLAN, 3.0),  # the second correction is right
    ],
)
def test_a_plan_is_corrected_and_the_correction_judged_again(
    right_from: float, rounds: int, otherwise: str, scales: float, draft: Policy, tmp_path: Path
) -> None:
    save_arrays(tmp_path / "feedback.safetensors", vars(agent_for(draft, right_from)))
    proposer = SelfCorrectingProposer(draft, str(tmp_path / "feedback.safetensors"), rounds, otherwise)
    proposed = proposer.propose(context(draft))
    expected = np.broadcast_to(scales * draft.action_scale, (ROBOTS, 1, ACTS))
    np.testing.assert_allclose(proposed.actions, expected, rtol=1e-6)
    assert proposed.expected_error is not None
    np.testing.assert_allclose(proposed.expected_error, float(scales < right_from), atol=1e-6)


def test_feedback_says_where_the_right_action_lies() -> None:
    words = feedback(np.array([[-2.0, -0.5], [0.0, 0.1], [0.5, 2.0]]))
    np.testing.assert_array_equal(words, [[0, 1], [2, 2], [3, 4]])
    np.testing.assert_array_equal(wrong(words), [True, False, True])


@pytest.mark.parametrize(("right", "words"), [(0.75, [[2, 2]]), (0.6, [[4, 2]]), (0.3, [[4, 1]])])
def test_an_error_is_named_in_one_entry_at_least(right: float, words: list, draft: Policy) -> None:
    """Both entries are right with one probability; else the first lies far above, the second below."""
    agent = agent_for(draft, 0.0)
    chances = np.full((ACTS, WORDS), 1e-6)
    chances[:, RIGHT] = right
    chances[0, ABOVE], chances[1, 1] = 1.0 - right, 0.9 * (1.0 - right)
    bias = np.concatenate([np.ones(ACTS), np.log(chances / chances.sum(axis=1, keepdims=True)).ravel()])
    agent = replace(agent, weight_2=np.zeros_like(agent.weight_2), bias_2=bias)
    found, error = agent.foresee(np.zeros((1, len(agent.mean))), np.zeros((1, ACTS)))
    np.testing.assert_array_equal(found, words)
    assert (error[0] > 0.5) == (words != [[RIGHT, RIGHT]])


def test_an_agent_of_another_draft_is_refused(draft: Policy, tmp_path: Path) -> None:
    path = tmp_path / "feedback.safetensors"
    why = "file: '', must be the weights of `adahi train feedback`"
    with pytest.raises(ValueError, match=re.escape(why)):
        SelfCorrectingProposer(draft)
    with pytest.raises(CheckpointError):
        SelfCorrectingProposer(draft, str(path))
    agent = agent_for(draft, 0.5)
    save_arrays(path, vars(agent))
    for other in (replace(draft.signature, history=9), replace(draft.signature, action_dim=3)):
        with pytest.raises(CheckpointError, match="not the weights of an agent for this robot"):
            load_agent(path, other)
    save_arrays(path, vars(replace(agent, bias_1=np.zeros(3))))
    with pytest.raises(CheckpointError, match="bias_1"):
        load_agent(path, draft.signature)
