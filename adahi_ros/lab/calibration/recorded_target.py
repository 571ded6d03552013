# SPDX-License-Identifier: Apache-2.0
"""A target that was asked before, in the place of one that cannot be asked of what a recording alone has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_ros.core.action_range import ActionRange
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Feature, Observations, Signature
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.calibration.target_plans import Planned
from adahi_ros.policies.absent import LARGEST
from adahi_ros.policies.direct import DirectPolicy


class RecordedTarget(DirectPolicy):
    """Says of each recorded step what a target has planned for it.

    It is told which step it is, in the place of what the target alone sees: see `numbered`.

    Args:
        planned: what was planned.
        digest: of the target that has planned it.
    """

    def __init__(self, planned: Planned, digest: str) -> None:
        data, plans = planned.data, planned.plans
        goal_dim, action_dim = data.goals.shape[1], plans.shape[3]
        signature = Signature(
            1,
            planned.horizon,
            action_dim,
            (Feature(OBSERVATION, data.observations.shape[1]), Feature(IMAGE_FEATURES, 1)),
            (Feature(GOAL, goal_dim),) if goal_dim else (),
        )
        most = np.full(action_dim, LARGEST)
        super().__init__(signature, ActionRange(-most, most), planned.action_scale, digest, draws=1)
        self._plans = plans

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy`: one of the plans of each step."""
        rows = observations.features[IMAGE_FEATURES][:, -1, 0].astype(np.int64)
        which = (draws[:, 0] * self._plans.shape[1]).astype(np.int64)
        plans: np.ndarray = self._plans[rows, which]
        return plans


def numbered(planned: Planned) -> Trajectories:
    """Return the recorded steps with their numbers as what the target alone sees."""
    numbers = np.arange(len(planned.plans), dtype=np.float32)  # exact up to 2^24
    return replace(planned.data, image_features=numbers[:, None])
