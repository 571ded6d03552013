"""A robot's judgement of its drafts, and the proposer that corrects them by it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.papers.e2cl.self_correcting import SelfCorrectingProposer
from adahi_lab.papers.e2cl.self_correction import (
    SelfCorrection,
    load_self_correction,
    save_self_correction,
)
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import ProposerContext

ROBOTS = 6


@pytest.fixture(scope="module")
def draft() -> Policy:
    return load_policy(asset("checkpoints/ball") / "draft", "onnxruntime")


def network_for(draft: Policy, refuses: float = 0.0) -> SelfCorrection:
    """Return a network that foresees one logit for all drafts, and adds one action scale to each entry."""
    signature = draft.signature
    read = signature.history * signature.observation_dim + signature.goal_dim + signature.action_dim
    out = 1 + signature.action_dim
    bias = np.concatenate([[refuses], np.ones(signature.action_dim)])
    zeros = np.zeros((4, read)), np.zeros(4), np.zeros((4, 4)), np.zeros(4), np.zeros((out, 4))
    return SelfCorrection(np.zeros(read), np.ones(read), *zeros, bias)


def context(draft: Policy, seed: int = 0) -> ProposerContext:
    draw, signature = np.random.default_rng(seed), draft.signature
    seen = draw.normal(size=(ROBOTS, signature.history, signature.observation_dim)).astype(np.float32)
    goals = draw.normal(size=(ROBOTS, signature.goal_dim)).astype(np.float32)
    observations = signature.observations(seen, goals)
    uniforms = draw.random((ROBOTS, draft.draws))
    plan = Plan(ROBOTS, signature.action_dim)
    return ProposerContext(0, observations, ObservationBuffer(4), plan, uniforms, 1.0)


@pytest.mark.parametrize(
    ("logit", "above", "judged_above", "corrects"),
    [(2.0, 0.5, 1.0, True), (-2.0, 0.5, 1.0, False), (2.0, 0.9, 1.0, False), (2.0, 0.5, 0.5, False)],
)
def test_a_draft_that_would_be_refused_is_corrected(
    logit: float, above: float, judged_above: float, corrects: bool, draft: Policy, tmp_path: Path
) -> None:
    save_self_correction(tmp_path / "feedback.safetensors", network_for(draft, logit))
    proposer = SelfCorrectingProposer(draft, str(tmp_path / "feedback.safetensors"), above, judged_above)
    known = context(draft)
    proposed = proposer.propose(known)
    drafted = draft.propose(known.observations, known.draws, Sampling(1.0, sendable=True))
    expected = drafted.actions.copy()
    if corrects:
        expected[:, 0] += draft.action_scale
    np.testing.assert_allclose(proposed.actions, expected, rtol=1e-5, atol=1e-6)
    assert proposed.expected_error is not None
    np.testing.assert_allclose(proposed.expected_error, 1.0 / (1.0 + np.exp(-logit)))
    assert proposed.distribution is not None
    assert drafted.distribution is not None
    np.testing.assert_array_equal(proposed.distribution.codes, drafted.distribution.codes)


def test_a_network_of_another_draft_is_refused(draft: Policy, tmp_path: Path) -> None:
    path = tmp_path / "feedback.safetensors"
    for other in (replace(draft.signature, history=9), replace(draft.signature, action_dim=3)):
        with pytest.raises(ValueError, match=r"file: reads \d+ numbers and corrects 2, must be"):
            network_for(draft).check(other)
    with pytest.raises(
        ValueError, match=re.escape("file: '', must be the weights of `adahi train feedback`")
    ):
        SelfCorrectingProposer(draft)
    with pytest.raises(CheckpointError):
        SelfCorrectingProposer(draft, str(path))
    network = network_for(draft)
    save_self_correction(path, replace(network, bias_1=np.zeros(3)))
    with pytest.raises(CheckpointError):
        load_self_correction(path)
