"""Policies that say the same whatever they see, to be members of a committee."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import CodeDistribution, Proposal, counted, probabilities_of, sample
from adahi_ros.core.signature import OBSERVATION, CodeSpace, Feature, Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling

B, N, K, A = 5, 2, 4, 2


def nothing_seen(batch: int = B) -> Observations:
    return Observations({OBSERVATION: np.zeros((batch, 1, 1), np.float32)}, {})


class FixedAction(Policy):
    """Proposes the same action of every entry, and expects an error of itself; None where it says nothing."""

    draws = 0

    def __init__(self, action: float, expected_error: float | None = None) -> None:
        self.signature = Signature(1, 1, A, (Feature(OBSERVATION, 1),), parameters=10)
        self.digest = f"{action} {expected_error}"
        self.action_scale = np.ones(A, np.float32)
        self._action, self._error = action, expected_error

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        batch = len(observations.features[OBSERVATION])
        actions = np.full((batch, 1, A), self._action, np.float32)
        return Proposal(actions, None, None if self._error is None else np.full(batch, self._error))

    def sound(self, actions: np.ndarray) -> np.ndarray:
        return np.isfinite(actions).all(axis=(1, 2))

    def check(self, actions: np.ndarray) -> None:
        if not self.sound(actions).all():
            raise ValueError("not finite")


class FixedCodes(FixedAction):
    """Draws codes from one distribution (K,); the first of them is the action, with an offset of its own."""

    draws = N

    def __init__(self, distribution: np.ndarray, offset: float = 0.0) -> None:
        super().__init__(offset)
        self.signature = Signature(
            1, 1, A, (Feature(OBSERVATION, 1),), codes=CodeSpace("0" * 16, N, K), parameters=10
        )
        self.digest = f"{distribution} {offset}"
        self._distribution, self._offset = distribution, offset

    def actions_of(self, codes: np.ndarray) -> np.ndarray:
        actions: np.ndarray = np.repeat(codes[:, :1, None] + self._offset, A, axis=2).astype(np.float32)
        return actions

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        probabilities = np.tile(self._distribution, (len(draws), N, 1)).astype(np.float32)
        counts = counted(probabilities) if sampling.sendable else None
        if counts is not None:
            probabilities = probabilities_of(counts)
        codes = sample(probabilities if counts is None else counts, draws)
        distribution = CodeDistribution(probabilities, codes, self.actions_of, counts)
        return Proposal(self.actions_of(codes), distribution)
