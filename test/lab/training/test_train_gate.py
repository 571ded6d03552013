"""What the learned gate learns, from lessons whose harm is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from adahi_ros.core.signature import OBSERVATION, Feature, Observations, Signature
from adahi_ros.gates.interface import GateContext, PlanContext
from adahi_ros.gates.learned import SIGNS, HarmModel
from adahi_ros.lab.training.train_gate import (
    Lessons,
    NotingGate,
    rank_correlations,
    reliability,
    train_harm_model,
)
from test.lab.toys import Constant

F, N = len(SIGNS), 6000


@pytest.fixture(scope="module")
def taught() -> Lessons:
    draw = np.random.default_rng(1)
    signs = draw.normal(size=(N, F))
    signs[:, F - 1] = np.nan
    signs[::7, 2] = np.inf
    harm = draw.exponential(size=N) * (0.1 + np.exp(signs[:, 0] - signs[:, 1]))
    return Lessons(signs, harm, np.arange(N) // 100)


@pytest.fixture(scope="module")
def trained(taught: Lessons) -> tuple[HarmModel, Lessons]:
    return train_harm_model(taught, seed=3)


def test_it_learns_what_harm_depends_on_and_by_how_much(trained: tuple[HarmModel, Lessons]) -> None:
    model, test = trained
    assert set(test.episode % 5) == {1}
    found = reliability(model, test)
    single = rank_correlations(test, list(SIGNS))
    assert found["rank_correlation"] > max(single.values()) + 0.1 > 0.3
    assert list(SIGNS)[F - 1] not in single
    expected, measured = np.array(found["expected"]), np.array(found["measured"])
    np.testing.assert_allclose(expected[2:-1], measured[2:-1], rtol=0.35)
    assert abs(expected.mean() - measured.mean()) < 0.15 * measured.mean()


def test_what_never_varied_does_not_count_where_it_does(trained: tuple[HarmModel, Lessons]) -> None:
    model, test = trained
    other = test.signs.copy()
    other[:, F - 1] = 1e3
    np.testing.assert_array_equal(model.harm(other), model.harm(test.signs))


def test_too_few_steps_are_refused(taught: Lessons) -> None:
    with pytest.raises(ValueError, match="episodes: 150 steps in all, must be more"):
        train_harm_model(taught.rows(np.arange(N) < 150), seed=3)


def test_harm_is_the_distance_from_a_fresh_plan_in_action_scales() -> None:
    planner = Constant(Signature(1, 4, 2, (Feature(OBSERVATION, 1),)), [3.0, 3.0])
    noting = NotingGate(planner, np.array([1.0, 2.0]), 0, [4, 5])
    intended = np.array([[3.0, 1.5], [4.0, 2.5]])
    course = PlanContext(intended, intended, np.zeros((2, 3, 2)), np.array([3, 3]))
    seen, nothing = np.zeros((2, 1), np.float32), np.zeros(2)
    observations: Observations = SimpleNamespace()  # type: ignore[assignment]
    known = GateContext(
        0, {OBSERVATION: seen}, observations, None, nothing, nothing, np.array([0.2, 0.7]), None, course
    )
    np.testing.assert_array_equal(noting.score(known), [0.2, 0.7])
    np.testing.assert_allclose(noting.harm[0], [0.0, 1.0], atol=1e-6)
    assert noting.signs[0].shape == (2, F)
