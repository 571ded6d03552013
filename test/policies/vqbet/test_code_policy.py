from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal, counted
from adahi_ros.policies.interface import Policy, Sampling

PROBABILITIES = [[0.5, 0.25, 0.125, 0.125], [0.0625, 0.1875, 0.25, 0.5]]


def propose(
    policy: Policy, uniforms: np.ndarray, temperature: float = 1.0, sendable: bool = True
) -> tuple[Proposal, CodeDistribution]:
    nothing = policy.signature.nothing(len(uniforms))
    proposal = policy.propose(nothing, uniforms, Sampling(temperature, sendable))
    assert proposal.distribution is not None
    return proposal, proposal.distribution


def test_actions_are_the_codes_decoded_plus_the_policys_offset(fixed_policy: Callable[..., Policy]) -> None:
    policy = fixed_policy(PROBABILITIES, offset=0.25, chunk_length=3)
    proposal, drawn = propose(policy, np.random.default_rng(0).random((50, 2)))
    np.testing.assert_allclose(drawn.probabilities, [PROBABILITIES] * 50, atol=1 / UNITS)
    assert proposal.actions.shape == (50, 3, 2)
    np.testing.assert_array_equal(proposal.actions[..., 0] - 0.25, drawn.codes[:, :1].repeat(3, axis=1))
    np.testing.assert_array_equal(proposal.actions[..., 1] - 0.25, 10 * drawn.codes[:, 1:].repeat(3, axis=1))
    np.testing.assert_array_equal(drawn.actions_of(drawn.codes), proposal.actions)


def test_the_probabilities_are_those_of_the_temperature_sampled_at(
    fixed_policy: Callable[..., Policy],
) -> None:
    _, drawn = propose(fixed_policy(PROBABILITIES), np.zeros((1, 2)), 0.5)
    squared = np.array(PROBABILITIES) ** 2
    np.testing.assert_allclose(
        drawn.probabilities[0], squared / squared.sum(axis=1, keepdims=True), atol=1 / UNITS
    )


def test_the_codes_are_sampled_from_what_is_sent(fixed_policy: Callable[..., Policy]) -> None:
    _, drawn = propose(fixed_policy(PROBABILITIES), np.zeros((1, 2)), 0.7)
    assert drawn.counts is not None
    np.testing.assert_array_equal(drawn.counts, counted(drawn.probabilities))
    assert propose(fixed_policy(PROBABILITIES), np.zeros((1, 2)), 0.7, sendable=False)[1].counts is None
