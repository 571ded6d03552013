"""A target that counts, and recordings of what it does: of both it is known what a corrector is to learn."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.action_range import ActionRange
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.policies.corrector.corrector_features import FeatureScales
from adahi_ros.policies.direct import DirectPolicy

T = 4
LENGTHS = (3, 9, 6)


class Counting(DirectPolicy):
    """A target whose plan goes on from the number that it sees, one more at every step.

    Args:
        ways: what each of its draws adds to the whole plan, one of them at random.
        horizon: of its plans.
        spread: how far its draws move the whole plan.
    """

    def __init__(self, ways: tuple[float, ...] = (0.0,), horizon: int = T, spread: float = 0.0) -> None:
        signature = Signature(2, horizon, 1, (Feature(OBSERVATION, 1),), (Feature(GOAL, 1),))
        anything = ActionRange(np.array([-1e9]), np.array([1e9]))
        super().__init__(signature, anything, np.ones(1), "counting", draws=1)
        self._ways, self._spread = np.array(ways, np.float32), spread

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        newest = observations.features[OBSERVATION][:, -1]
        way = self._ways[(draws * len(self._ways)).astype(int)] + self._spread * (draws - 0.5)
        plans: np.ndarray = (newest + way)[:, None] + np.arange(self.signature.horizon)[:, None]
        return plans


def counted(lengths: tuple[int, ...] = LENGTHS) -> Trajectories:
    """Episodes whose observations count their steps, each from a number of its own; actions are those."""
    numbers = np.concatenate([100.0 * each + np.arange(length) for each, length in enumerate(lengths)])
    values, ends = numbers.astype(np.float32)[:, None], np.cumsum(lengths)
    return Trajectories("counting", values, values, np.zeros((len(lengths), 1), np.float32), ends)


def unit_scales() -> FeatureScales:
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    return FeatureScales(zero, one, one, zero, one, zero, one)
