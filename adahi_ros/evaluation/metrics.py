"""The figures of the paper's section IV, from logs."""

from __future__ import annotations

import math

import numpy as np

from adahi_ros.trajectories import Trajectories

Z95 = 1.959963984540054


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson, 1927)."""
    share = successes / trials
    spread = Z95**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    # At the ends the bounds are 0 and 1 exactly; rounding would leave the share outside its own interval.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


def transmission_rate(transmitted: np.ndarray, active: np.ndarray) -> float:
    """Return TR, the share of actions that were transmitted; both (T, E) bool."""
    return float(transmitted[active].mean())


def true_skip_ratio(transmitted: np.ndarray, accepted: np.ndarray, active: np.ndarray) -> float | None:
    """Return TSR, the share of skipped drafts that the target would have accepted whole.

    Args:
        transmitted: (T, E) bool.
        accepted: (T, E, N) bool.
        active: (T, E) bool.

    Returns:
        None where nothing was skipped, or nothing drafted (N is 0).
    """
    skipped = active & ~transmitted
    if accepted.shape[-1] == 0 or not skipped.any():
        return None
    return float(accepted[skipped].all(axis=-1).mean())


def squared_error(
    trajectories: Trajectories, actions: np.ndarray, active: np.ndarray, scale: np.ndarray
) -> float:
    """Return the mean squared error to recorded actions, in units of the action scale.

    Args:
        trajectories: E recorded episodes.
        actions: (T, E, A) executed at the recorded observations.
        active: (T, E) bool.
        scale: (A,).
    """
    # Transposed, so that the active entries come episode by episode as the recording has them.
    executed = actions.transpose(1, 0, 2)[active.T]
    return float((((executed - trajectories.actions) / scale) ** 2).mean())
