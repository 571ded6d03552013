from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adahi_ros.policy.distribution import UNITS, counted
from adahi_ros.policy.drafting import draft_action
from adahi_ros.policy.interface import Policy

PROBABILITIES = [[0.5, 0.25, 0.125, 0.125], [0.0625, 0.1875, 0.25, 0.5]]


def inputs(batch: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((batch, 2, 3), np.float32), np.zeros((batch, 1), np.float32)


def test_a_draft_is_its_codes_decoded_plus_the_policys_offset(fixed_policy: Callable[..., Policy]) -> None:
    policy = fixed_policy(PROBABILITIES, offset=0.25, chunk_length=3)
    uniforms = np.random.default_rng(0).random((50, 2))
    draft = draft_action(policy, *inputs(50), uniforms, 1.0)
    np.testing.assert_allclose(draft.probabilities, [PROBABILITIES] * 50, atol=1 / UNITS)
    assert draft.chunk.shape == (50, 3, 2)
    np.testing.assert_array_equal(draft.chunk[..., 0] - 0.25, draft.codes[:, :1].repeat(3, axis=1))
    np.testing.assert_array_equal(draft.chunk[..., 1] - 0.25, 10 * draft.codes[:, 1:].repeat(3, axis=1))
    np.testing.assert_array_equal(draft.action, draft.chunk[:, 0])


def test_a_uniform_selects_by_the_cumulative_probability(fixed_policy: Callable[..., Policy]) -> None:
    uniforms = np.array([[0.0, 0.0], [0.49, 0.07], [0.51, 0.26], [0.99, 0.99]])
    draft = draft_action(fixed_policy(PROBABILITIES), *inputs(4), uniforms, 1.0)
    np.testing.assert_array_equal(draft.codes, [[0, 0], [0, 1], [1, 2], [3, 3]])


def test_the_probabilities_are_those_of_the_temperature_sampled_at(
    fixed_policy: Callable[..., Policy],
) -> None:
    draft = draft_action(fixed_policy(PROBABILITIES), *inputs(1), np.zeros((1, 2)), 0.5)
    squared = np.array(PROBABILITIES) ** 2
    np.testing.assert_allclose(
        draft.probabilities[0], squared / squared.sum(axis=1, keepdims=True), atol=1 / UNITS
    )


def test_the_codes_are_sampled_from_what_is_sent(fixed_policy: Callable[..., Policy]) -> None:
    draft = draft_action(fixed_policy(PROBABILITIES), *inputs(1), np.zeros((1, 2)), 0.7)
    np.testing.assert_array_equal(draft.counts, counted(draft.probabilities))
