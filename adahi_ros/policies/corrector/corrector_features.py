# SPDX-License-Identifier: Apache-2.0
"""What a corrector reads: the observation, what has changed, and what the plan says next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.core.signature import Signature

AHEAD = (0, 1, 2, 4)  # steps from now whose planned actions it reads, as long as there are some
CHANGE_UNIT = 3.0  # of the last change's standard deviation


@dataclass(frozen=True)
class PlanView:
    """What B robots know of their plan when it is to be corrected.

    Attributes:
        observation: (B, O) newest.
        previous: (B, O) one step before; at the first step the same.
        at_request: (B, O) when the plan was asked for.
        goal: (B, G) that the robot has been told; G = 0 for none.
        ahead: (B, T, A) what is left of the plan, the present action first, the last one repeated.
        left: (B,) how many actions are left, at least 1.
        age: (B,) steps since the plan was asked for.
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
        """Return one robot's that is all zero: to measure with, and to warm up."""
        observation = np.zeros((1, signature.observation_dim), dtype=np.float32)
        goal = np.zeros((1, signature.goal_dim), dtype=np.float32)
        ahead = np.zeros((1, signature.horizon, signature.action_dim), dtype=np.float32)
        left, age = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(observation, observation, observation, goal, ahead, left, age)

    def without_plan(self) -> PlanView:
        """Return what is left of it for who is told no plan: one of a single action, all zero."""
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
    """Units of what a corrector reads, each float32 and of the demonstrations.

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
    """Return F, how many numbers `features` gives for one robot."""
    return 3 * observation_dim + goal_dim + (len(AHEAD) + 2) * action_dim + 2


def features(view: PlanView, scales: FeatureScales) -> np.ndarray:
    """Return what a corrector reads, (B, F) float32.

    The observation, its last change and its change since the plan was asked for; the goal; the planned
    actions at `AHEAD`, the last and the mean of what is left; how much is left, and how old it is.
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
