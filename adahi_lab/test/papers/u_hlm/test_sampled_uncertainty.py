"""Draws at other temperatures: as often different as they should be, the same every time, none for free."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.papers.u_hlm.sampled_uncertainty import SampledUncertaintyGate
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
