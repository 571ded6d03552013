from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from adahi_lab.evaluation.rollout import VerificationDraws
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.randomness import STEPS_PER_REFILL
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import Policy, fingerprint_of
from adahi_ros.policies.slowed import SlowedPolicy
from adahi_ros.policies.vqbet.code_policy import CodePolicy
from adahi_ros.protocol.request import RequestError, RequestFault, sent_codes
from adahi_ros.server.verifier import (
    AGREEMENTS,
    TargetVerifier,
    VerificationRequest,
    verification_uniforms,
)
from test.server.noting import noted

DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]
TARGET = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.15, 0.05]]


def request(codes: np.ndarray) -> VerificationRequest:
    batch = len(codes)
    counts = np.broadcast_to(counted(np.array(DRAFT)), (batch, 2, 4))
    seen = Observations(
        {"observation": np.zeros((batch, 2, 3), np.float32)}, {"goal": np.zeros((batch, 1), np.float32)}
    )
    nothing = np.zeros((batch, 0, 2), np.float32)
    return VerificationRequest(seen, Proposal(nothing, sent_codes(codes, counts)))


def codes_in(verdict: Verdict) -> np.ndarray:
    """The codes (M, 2) behind the actions of a `FixedPolicy`, whose offset is below one."""
    first, second = verdict.actions[:, 0].T
    return np.stack([np.floor(first), np.floor(second / 10)], axis=-1).astype(int)


def drafted(batch: int) -> np.ndarray:
    generator = np.random.default_rng(3)
    return np.stack([generator.choice(4, size=batch, p=p) for p in DRAFT], axis=-1)


def test_the_fingerprint_is_of_the_weights_whatever_wraps_the_policy(
    fixed_policy: Callable[..., Policy],
) -> None:
    policy = fixed_policy(TARGET)
    own = fingerprint_of(policy)
    assert re.fullmatch("[0-9a-f]{16}", own)
    for made in (policy, SlowedPolicy(policy, 0.0, lambda _: None)):
        assert TargetVerifier(made, "speculative", temperature=0.5).terms.fingerprint == own
        assert TargetVerifier(made, "replace", agreement="choose").terms.fingerprint == own
    policy.weights_known = False
    for made in (policy, SlowedPolicy(policy, 0.0, lambda _: None)):
        assert TargetVerifier(made, "replace", agreement="choose").terms.fingerprint == ""


def test_a_digest_of_16_digits_is_the_fingerprint_others_are_hashed(
    fixed_policy: Callable[..., Policy],
) -> None:
    policy = fixed_policy(TARGET)
    found = []
    for digest in ("0123456789abcdef", "0123456789abcdeF", "0123456789abcdef" * 2, "", "recalling"):
        policy.digest = digest
        found.append(fingerprint_of(policy))
    assert found[0] == "0123456789abcdef"
    assert len(set(found)) == len(found)
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in found)


@pytest.mark.parametrize("codebooks", [1, 2, 3])
def test_draws_for_many_episodes_are_those_of_each(codebooks: int) -> None:
    draws = VerificationDraws(4, "arm", [6, 2], codebooks)
    for step in range(STEPS_PER_REFILL + 2):
        rows = draws.next()
        assert rows.shape == (2, codebooks, 2)
        for row, episode in zip(rows, [6, 2], strict=True):
            np.testing.assert_array_equal(
                row[None], verification_uniforms(4, "arm", episode, step, codebooks)
            )


def test_a_batch_is_verified_like_its_rows_and_with_the_targets_offset(
    fixed_policy: Callable[..., Policy],
) -> None:
    verifier = TargetVerifier(fixed_policy(TARGET, offset=0.5))
    codes, uniforms = drafted(30), np.random.default_rng(1).random((30, 2, 2))
    together = verifier.verify(request(codes), uniforms)
    assert together.accepted.any()
    assert not together.accepted.all()
    np.testing.assert_array_equal(codes_in(together)[together.accepted], codes[together.accepted])
    assert together.actions.shape == (30, 1, 2)
    np.testing.assert_array_equal(together.actions[:, 0] - [1, 10] * codes_in(together), 0.5)
    for row in range(30):
        alone = verifier.verify(request(codes[row : row + 1]), uniforms[row : row + 1])
        np.testing.assert_array_equal(alone.actions[0], together.actions[row])
        np.testing.assert_array_equal(alone.accepted[0], together.accepted[row])


@pytest.mark.parametrize("rule", ["speculative", "replace"])
def test_the_temperature_is_that_of_the_targets_distribution(
    fixed_policy: Callable[..., Policy], rule: str
) -> None:
    verifier = TargetVerifier(fixed_policy(TARGET), rule=rule, temperature=0.5)
    uniforms = np.random.default_rng(2).random((20_000, 2, 2))
    codes = codes_in(verifier.verify(request(drafted(20_000)), uniforms))
    for book in range(2):
        cooled = np.array(TARGET[book]) ** 2
        counts = np.bincount(codes[:, book], minlength=4)
        assert stats.chisquare(counts, 20_000 * cooled / cooled.sum()).pvalue > 1e-5


@pytest.mark.parametrize("agreement", AGREEMENTS)
def test_the_policy_receives_what_is_committed_where_it_is_to_agree(
    fixed_policy: Callable[..., Policy], agreement: str
) -> None:
    policy = fixed_policy(TARGET)
    given = noted(policy, lambda observations, draws, sampling: sampling.committed)
    verifier = TargetVerifier(policy, "replace", agreement=agreement, samples=3)
    uniforms = np.full((2, verifier.policy.draws, 2), 0.5)
    committed = np.ones((2, 1, 2), np.float32)
    drafts = request(np.array([[0, 0], [0, 0]]))
    verifier.verify(replace(drafts, committed=committed), uniforms)
    verifier.verify(drafts, uniforms)
    assert [each is committed for each in given] == [agreement == "continue", False]
    assert given[1] is None


def test_of_plans_that_are_drawn_the_nearest_to_what_is_committed_is_sent(
    fixed_policy: Callable[..., Policy],
) -> None:
    verifier = TargetVerifier(fixed_policy(TARGET), "replace", agreement="choose", samples=4096)
    draws = np.random.default_rng(0).random((1, verifier.policy.draws, 2))
    for codes in ([0, 3], [3, 0], [2, 2]):
        meanwhile = np.array([[codes]], np.float32) * np.array([1, 10], np.float32)
        verdict = verifier.verify(replace(request(np.array([[1, 1]])), committed=meanwhile), draws)
        assert codes_in(verdict).tolist() == [codes]


def test_wrong_settings_are_refused(fixed_policy: Callable[..., Policy]) -> None:
    policy = fixed_policy(TARGET)
    with pytest.raises(ValueError, match=r"rule: 'greedy', must be one of .*replace, .*speculative"):
        TargetVerifier(policy, rule="greedy")
    for temperature in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match=re.escape(f"temperature: {temperature}, must be above 0")):
            TargetVerifier(policy, temperature=temperature)
    with pytest.raises(ValueError, match="agreement: 'guess', must be one of none, continue, choose"):
        TargetVerifier(policy, "replace", agreement="guess")
    with pytest.raises(ValueError, match="agreement: 'choose', must be another one with the rule"):
        TargetVerifier(policy, agreement="choose")
    policy.signature = replace(policy.signature, codes=None)
    with pytest.raises(ValueError, match="rule: 'speculative', must be by_target, replace, or another"):
        TargetVerifier(policy)
    TargetVerifier(policy, rule="replace")


def test_what_the_target_makes_nothing_finite_of_is_refused(fixed_policy: Callable[..., CodePolicy]) -> None:
    policy = fixed_policy(TARGET)
    prediction = policy.predict(np.zeros((1, 2, 3)), np.zeros((1, 1)))
    broken = replace(prediction, offsets=np.full_like(prediction.offsets, np.nan))
    policy.predict = lambda windows, goals: broken
    requested, draws = request(np.array([[0, 0]])), np.zeros((1, 2, 2))
    with pytest.raises(RequestError, match=r"^observation_window: so far") as refused:
        TargetVerifier(policy).verify(requested, draws)
    assert refused.value.fault is RequestFault.NOT_FINITE
    requested = replace(requested, committed=np.full((1, 1, 2), 1e38, np.float32))
    for agreement, field in (
        ("none", "observation_window"),
        ("continue", "observation_window or draft_actions"),
    ):
        with pytest.raises(RequestError, match=rf"^{field}: so far"):
            TargetVerifier(policy, "replace", agreement=agreement).verify(requested, draws)
