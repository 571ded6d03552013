"""Draws at other temperatures: as often different as they should be, the same every time, none for free."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from adahi_lab.papers.u_hlm.sampled_uncertainty import SampledUncertaintyGate, spread
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.gates.interface import GateContext


def context(probabilities: np.ndarray, codes: np.ndarray, seed: int = 0) -> GateContext:
    robots = len(codes)
    drawn = CodeDistribution(probabilities.astype(np.float32), codes, lambda codes: np.zeros((0, 1, 1)))
    proposal = Proposal(np.zeros((robots, 1, 1), np.float32), drawn)
    nothing = np.zeros(robots)
    uniforms = np.random.default_rng(seed).random(robots)
    return GateContext(0, {}, Observations({}, {}), proposal, nothing, nothing, uniforms)


def test_the_share_is_that_of_the_perturbed_distributions() -> None:
    robots, samples = 4000, 5
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    codes = np.array([0, 1])
    score = SampledUncertaintyGate(samples).score(
        context(np.tile(p, (robots, 1, 1)), np.tile(codes, (robots, 1)))
    )
    temperatures = 2.0 * np.arange(1, samples + 1) / samples
    perturbed = p[None] ** (1 / temperatures[:, None, None])
    perturbed /= perturbed.sum(axis=-1, keepdims=True)
    differs = 1 - perturbed[:, [0, 1], codes]
    spread_of_one = np.sqrt((differs * (1 - differs)).sum()) / differs.size
    assert abs(score.mean() - differs.mean()) < 5 * spread_of_one / np.sqrt(robots)
    assert abs(score.std() - spread_of_one) < 0.05 * spread_of_one  # the draws are independent


def test_a_draft_without_a_choice_is_certain_and_an_unlikely_one_is_not() -> None:
    p = np.tile([1.0, 0.0, 0.0], (3, 2, 1))
    gate = SampledUncertaintyGate()
    assert (gate.score(context(p, np.zeros((3, 2), int))) == 0.0).all()
    assert (gate.score(context(p, np.ones((3, 2), int))) == 1.0).all()


def test_the_same_step_has_the_same_draws_with_any_robots_beside_it() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(16), size=(6, 2))
    seen = context(p, np.zeros((6, 2), int))
    assert seen.proposal is not None
    drawn = seen.proposal.distribution
    assert drawn is not None
    gate = SampledUncertaintyGate()
    some = replace(
        seen,
        uniforms=seen.uniforms[2:4],
        proposal=Proposal(
            seen.proposal.actions[2:4],
            replace(drawn, probabilities=drawn.probabilities[2:4], codes=drawn.codes[2:4]),
        ),
    )
    np.testing.assert_array_equal(gate.score(seen)[2:4], gate.score(some))
    assert (gate.score(seen) != gate.score(replace(seen, uniforms=1 - seen.uniforms))).any()


def test_spread_draws_are_uniform_and_do_not_depend_on_each_other() -> None:
    draws = spread(np.random.default_rng(2).random(2000), 4)
    assert ((draws >= 0) & (draws < 1)).all()
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(draws.T) - np.eye(4)).max() < 5 / np.sqrt(2000)


def test_without_codes_it_asks() -> None:
    seen = replace(context(np.ones((2, 1, 1)), np.zeros((2, 1), int)), proposal=None)
    assert np.isinf(SampledUncertaintyGate().score(seen)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples: 0, must be a whole number from 1 to 1000"),
        ({"samples": 2.5}, "samples: 2.5, must be a whole number"),
        ({"hottest": 0.0}, "hottest: 0.0, must be above 0 and finite"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SampledUncertaintyGate(**arguments)  # type: ignore[arg-type]
