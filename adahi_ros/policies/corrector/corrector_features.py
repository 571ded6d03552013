# SPDX-License-Identifier: Apache-2.0
"""Input of a corrector: the observation, its changes, and the planned actions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.core.signature import Signature

AHEAD = (0, 1, 2, 4)  # steps from now at which it reads planned actions, while there are some
CHANGE_UNIT = 3.0  # of the last change's standard deviation


@dataclass(frozen=True)
class PlanView:
    """Plans of B robots when they are corrected.

    Attributes:
        observation: (B, O) newest.
        previous: (B, O) one step before; at the first step the newest.
        at_request: (B, O) when the plan was requested.
        goal: (B, G); G = 0 for none.
        ahead: (B, T, A) what is left of the plan, the present action first, the last one repeated.
        left: (B,) how many actions are left, at least 1.
        age: (B,) steps since the plan was requested.
    """

    observation: np.ndarray
    previous: np.ndarray
    at_request: np.ndarray
    goal: np.ndarray
    ahead: np.ndarray
    left: np.ndarray
    age: np.ndarray

    @classmethod
    def nothing(cls, signature: Signature) -> PlanView:
        """Return zeros for one robot, for measurements and warm-up."""
        observation = np.zeros((1, signature.observation_dim), dtype=np.float32)
        goal = np.zeros((1, signature.goal_dim), dtype=np.float32)
        ahead = np.zeros((1, signature.horizon, signature.action_dim), dtype=np.float32)
        left, age = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(observation, observation, observation, goal, ahead, left, age)

    def without_plan(self) -> PlanView:
        """Return the remaining plan for a robot without plans: a single action of zeros."""
        batch, _, action_dim = self.ahead.shape
        return replace(
            self,
            at_request=self.observation,
            ahead=np.zeros((batch, 1, action_dim), dtype=np.float32),
            left=np.ones(batch, dtype=np.int64),
            age=np.zeros(batch, dtype=np.int64),
        )


@dataclass(frozen=True)
class FeatureScales:
    """Mean and scale of a corrector's inputs, each float32 and from the demonstrations.

    Attributes:
        observation_mean, observation_scale: (O,).
        change_scale: (O,), standard deviation of the change from one step to the next.
        goal_mean, goal_scale: (G,).
        action_mean, action_scale: (A,).
    """

    observation_mean: np.ndarray
    observation_scale: np.ndarray
    change_scale: np.ndarray
    goal_mean: np.ndarray
    goal_scale: np.ndarray
    action_mean: np.ndarray
    action_scale: np.ndarray


def feature_count(observation_dim: int, goal_dim: int, action_dim: int) -> int:
    """Return F, the number of features of one robot."""
    return 3 * observation_dim + goal_dim + (len(AHEAD) + 2) * action_dim + 2


def features(view: PlanView, scales: FeatureScales) -> np.ndarray:
    """Return a corrector's input, (B, F) float32.

    The observation, its last change and its change since the plan was requested; the goal; the planned
    actions at `AHEAD`, the last and the mean of the remaining ones; the plan's remaining length and age.
    """
    observation, action = scales.observation_scale, scales.action_scale
    horizon = view.ahead.shape[1]
    ahead = (view.ahead - scales.action_mean) / action
    within = np.arange(horizon) < view.left[:, None]
    mean = (ahead * within[..., None]).sum(axis=1) / view.left[:, None]
    parts = [
        (view.observation - scales.observation_mean) / observation,
        (view.observation - view.previous) / (CHANGE_UNIT * scales.change_scale),
        (view.observation - view.at_request) / observation,
        (view.goal - scales.goal_mean) / scales.goal_scale,
        *(ahead[:, min(step, horizon - 1)] for step in AHEAD),
        ahead[:, -1],
        mean,
        view.left[:, None] / horizon,
        view.age[:, None] / horizon,
    ]
    return np.concatenate(parts, axis=1).astype(np.float32)
