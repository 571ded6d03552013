# SPDX-License-Identifier: Apache-2.0
"""Proposers with a Kalman filter of executed actions: its extrapolation, or a draft that is compared with it.

KERV (arXiv 2603.01581) completes an action of tokens by a filter: `adahi_ros.acceptance.compensated`. Here
the robot itself rejects a draft, which saves a request, and rests for four steps after a repair.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext

# On demonstrations of ball, kitchen and Meta-World these predict the next action best. With a constant
# velocity of actions (kept = 1) the prediction is worse than the previous action, on each of the three.
KEPT, DRIVE, NOISE = 0.5, 4.0, 1.0
CONTEXT = 10  # actions that determine the variability of a motion
KNOWN = 2  # actions before a motion is known
VAGUE = 1e6


class VelocityFilter:
    """Kalman filters of B robots' actions, entry by entry: each change continues with a decaying rate.

    The state of an entry is its value and its change per step, of which a share is kept; changes are driven
    by white noise. Units are the caller's: only the ratio of the two variances matters for the prediction.

    Args:
        robots: B.
        entries: A.
        kept: share of a change that the next one keeps; 1 is a constant velocity.
        drive: variance of the noise that drives the change, per step.
        noise: variance of the measurement of the value.
    """

    def __init__(
        self, robots: int, entries: int, kept: float = KEPT, drive: float = DRIVE, noise: float = NOISE
    ) -> None:
        self._onward = np.array([[1.0, kept], [0.0, kept]])
        self._drive = drive * np.array([[0.25, 0.5], [0.5, 1.0]])
        self._noise = noise
        self._state = np.zeros((robots, entries, 2))
        self._covariance = np.broadcast_to(VAGUE * np.eye(2), (robots, 2, 2)).copy()

    def predict(self) -> tuple[np.ndarray, np.ndarray]:
        """Advance by one step; return the expected measurement (B, A), and its variance (B,)."""
        self._state = self._state @ self._onward.T
        self._covariance = self._onward @ self._covariance @ self._onward.T + self._drive
        return self._state[..., 0].copy(), self._covariance[:, 0, 0] + self._noise

    def update(self, measured: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Add values (B, A) of some robots (B,), by mask; return the innovations (B, A) of all."""
        innovation: np.ndarray = measured - self._state[..., 0]
        gain = self._covariance[:, :, 0] / (self._covariance[:, 0, 0] + self._noise)[:, None]
        gain = np.where(which[:, None], gain, 0.0)
        self._state = self._state + np.where(which[:, None], innovation, 0.0)[..., None] * gain[:, None]
        self._covariance = self._covariance - gain[:, :, None] * self._covariance[:, None, 0, :]
        return innovation


class Motion:
    """The expected next actions of B robots, and the recent accuracy of this; in action scales.

    Actions that the filter itself proposed are ignored.

    Args:
        scale: (A,), of the actions.
    """

    _measured: np.ndarray  # (B,), how many actions the filter used
    _weight: np.ndarray  # (B,), how many of its innovations count
    _ratio: np.ndarray  # (B,), of their squares to their variances, on average

    def __init__(self, scale: np.ndarray) -> None:
        self._scale = scale
        self._begin(0)

    def go_on(self, executed: np.ndarray | None, robots: int) -> np.ndarray:
        """Add the last executed actions, (B, A) in action units; return the expected next ones, likewise."""
        if executed is None or np.isnan(executed).all() or robots != len(self._measured):
            self._begin(robots)
        else:
            self._take(executed / self._scale)
        self._expected, self._variance = self._filter.predict()
        self.deviation = np.sqrt(np.where(self._weight > 0.0, self._ratio * self._variance, np.inf))
        predicted = (self._expected * self._scale).astype(np.float32)
        self.predicted = np.where(self.known[:, None], predicted, np.float32(np.nan))
        return self.predicted

    @property
    def known(self) -> np.ndarray:
        """Robots with a known motion, (B,) bool."""
        return self._measured >= KNOWN

    def _begin(self, robots: int) -> None:
        self._filter = VelocityFilter(robots, len(self._scale))
        self._expected = np.zeros((robots, len(self._scale)))
        self._measured, self._weight = np.zeros(robots, dtype=np.int64), np.zeros(robots)
        self._ratio = np.zeros(robots)
        self.predicted = np.full_like(self._expected, np.nan, dtype=np.float32)

    def _take(self, executed: np.ndarray) -> None:
        own = np.abs(executed - self.predicted / self._scale).max(axis=1) < 1e-6
        which = ~own & ~np.isnan(executed).any(axis=1)
        innovation = self._filter.update(executed, which)
        counted = which & self.known
        ratio = np.square(innovation).mean(axis=1) / self._variance
        weight = np.where(counted, self._weight + 1.0, self._weight)
        share = np.where(counted, np.maximum(1.0 / np.maximum(weight, 1.0), 1.0 / CONTEXT), 0.0)
        self._ratio = self._ratio + share * (np.nan_to_num(ratio) - self._ratio)
        self._weight, self._measured = weight, self._measured + which


class KalmanProposer(Proposer):
    """Extrapolates recent actions by a Kalman filter; drafts at first.

    Args:
        policy: the draft.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._motion = Motion(policy.action_scale)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; the expected error is the filter's, infinite for a draft."""
        sampling = Sampling(context.temperature, sendable=True)
        proposal = self._policy.propose(context.observations, context.draws, sampling)
        predicted = self._motion.go_on(context.executed, len(context.draws))
        known = self._motion.known
        actions = proposal.actions.copy()
        actions[known] = predicted[known, None]
        return replace(
            proposal, actions=actions, expected_error=np.where(known, self._motion.deviation, np.inf)
        )


class RectifiedProposer(Proposer):
    """Drafts; replaces a draft far from the extrapolation by the extrapolation, rarely twice in a row.

    A draft is rejected where its distance from the filter's expectation exceeds a threshold, which follows
    the filter's innovations within bounds. The expected action is then executed instead, without a request;
    for the next `resting` steps, a rejected draft is to be verified.

    Args:
        policy: the draft.
        tolerance: threshold, in standard deviations of the innovations.
        least, most: its bounds, in action scales.
        resting: steps. Where infinite, no draft is ever replaced.
    """

    def __init__(
        self,
        policy: Policy,
        tolerance: float = 1.0,
        least: float = 0.25,
        most: float = 0.75,
        resting: float = 4,
    ) -> None:
        self._policy = policy
        self._motion = Motion(policy.action_scale)
        self._tolerance, self._least, self._most, self._resting = tolerance, least, most, resting
        self._rests = np.zeros(0)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; the expected error is the excess of a rejected draft over the threshold."""
        sampling = Sampling(context.temperature, sendable=True)
        proposal = self._policy.propose(context.observations, context.draws, sampling)
        predicted = self._motion.go_on(context.executed, len(context.draws))
        known = self._motion.known
        if len(self._rests) != len(known) or not known.any():
            self._rests = np.zeros(len(known))
        off = np.sqrt(
            np.square((proposal.actions[:, 0] - predicted) / self._policy.action_scale).mean(axis=1)
        )
        allowed = np.clip(self._tolerance * self._motion.deviation, self._least, self._most)
        beyond = np.where(known, np.maximum(off - allowed, 0.0), np.inf)
        repaired = known & (beyond > 0.0) & (self._rests == 0) & np.isfinite(self._resting)
        self._rests = np.where(repaired, self._resting, np.maximum(self._rests - 1, 0))
        actions = proposal.actions.copy()
        actions[repaired] = predicted[repaired, None]
        return replace(proposal, actions=actions, expected_error=np.where(repaired, 0.0, beyond))
