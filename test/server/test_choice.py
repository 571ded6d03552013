"""Of several plans, the one that goes best with what the robot does meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import Feature, Observations, Signature
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import Sampling
from adahi_ros.server.nearest_sample import NearestPlan

SAMPLES, HORIZON = 4, 3
SCALE = np.array([1.0, 10.0])


class Drawn(DirectPolicy):
    """Plans the same action thrice, as it was drawn; no numbers for a first draw below 0.1."""

    def __init__(self) -> None:
        signature = Signature(1, HORIZON, 2, (Feature("observation", 1),))
        super().__init__(signature, ActionRange(np.zeros(2), np.ones(2)), SCALE, "drawn", draws=2)
        self.requested: list[int] = []

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        self.requested.append(len(draws))
        plans = np.repeat(draws[:, None], HORIZON, axis=1)
        return np.where(draws[:, :1, None] < 0.1, np.nan, plans)


def chosen(draws: list[list[float]], committed: list[list[float]] | None) -> np.ndarray:
    """Return the first action of the plan that is chosen for one robot, of draws (N, 2)."""
    policy = NearestPlan(Drawn(), len(draws))
    known = None if committed is None else np.array([committed], np.float32)
    observations, flat = policy.signature.nothing(), np.array(draws).reshape(1, -1)
    actions = policy.propose(observations, flat, Sampling(committed=known)).actions
    assert actions.shape == (1, HORIZON, 2)
    return np.asarray(actions[0, 0])


FAR, NEAR, NONE = [0.9, 0.9], [0.4, 0.5], [0.0, 0.5]
NAN = [np.nan, np.nan]


def test_only_what_a_robot_has_committed_to_counts() -> None:
    np.testing.assert_allclose(chosen([NEAR, FAR], [[0.8, 0.8], NAN]), FAR)
    np.testing.assert_allclose(chosen([NEAR, FAR], [[0.4, 0.5], [0.9, 0.9], [0.9, 0.9]]), FAR)


@pytest.mark.parametrize("committed", [None, [], [NAN, NAN]])
def test_who_has_committed_to_nothing_gets_the_first(committed: list[list[float]] | None) -> None:
    known = None if committed is None else np.reshape(committed, (-1, 2)).tolist()
    np.testing.assert_allclose(chosen([FAR, NEAR], known), FAR)


def test_a_plan_that_is_no_number_is_chosen_only_where_there_is_no_other() -> None:
    np.testing.assert_allclose(chosen([NONE, FAR], [[0.5, 0.5]]), FAR)
    assert np.isnan(chosen([NONE, NONE], [[0.5, 0.5]])).all()


def test_robots_are_served_together_as_one_by_one() -> None:
    inner = Drawn()
    policy = NearestPlan(inner, SAMPLES)
    assert policy.draws == SAMPLES * inner.draws
    draw = np.random.default_rng(2)
    draws = draw.random((5, policy.draws))
    committed = draw.random((5, 2, 2)).astype(np.float32)
    committed[3] = np.nan
    together = policy.propose(policy.signature.nothing(5), draws, Sampling(committed=committed)).actions
    for row in range(5):
        alone = policy.propose(
            policy.signature.nothing(), draws[row : row + 1], Sampling(committed=committed[row : row + 1])
        )
        np.testing.assert_array_equal(alone.actions[0], together[row])
    assert inner.requested == [5 * SAMPLES, *(1 if row == 3 else SAMPLES for row in range(5))]
    np.testing.assert_allclose(together[3, 0], draws[3, :2], rtol=1e-6)


def test_there_is_at_least_one_plan() -> None:
    with pytest.raises(ValueError, match="samples: 0, must be at least 1"):
        NearestPlan(Drawn(), 0)
