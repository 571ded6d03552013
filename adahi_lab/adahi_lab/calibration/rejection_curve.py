# SPDX-License-Identifier: Apache-2.0
"""Calibration: from hybrid logs to the rejection probability by deviation, and to a threshold.

Paper, sections III-A and III-C. Its equations (6), (9) and (10), reconstructed:

    P(d) = a d + b         or     a ln d + b         fitted to the rejection probability per bin
    d_th = (P_th - b) / a  or     exp((P_th - b) / a)
    P_th = F^-1(1 - rate), F the distribution of P(d): for a rising fit, d_th is the same quantile of d

Only the primary code counts as rejected here, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import linregress, spearmanr

BINS = 20
RATE_TOLERANCE = 0.002
MOST_TRIALS = 12


@dataclass(frozen=True)
class Fit:
    """A fit of the rejection probability P to the deviation d: slope * f(d) + intercept.

    Attributes:
        kind: "linear", f(d) = d, or "logarithmic", f(d) = ln d.
        slope, intercept: of the least squares line over the bins.
        r2: share of the bins' variance that it explains; 0 where they have none.
    """

    kind: str
    slope: float
    intercept: float
    r2: float

    def rejection(self, deviation: np.ndarray) -> np.ndarray:
        """Return the fitted rejection probability, not clipped to [0, 1]."""
        x = np.log(deviation) if self.kind == "logarithmic" else deviation
        fitted: np.ndarray = self.slope * x + self.intercept
        return fitted

    def threshold(self, rejection: float) -> float:
        """Return the deviation at which the fitted rejection probability is `rejection`: equation (9).

        Raises:
            ValueError: not a probability, or the fit does not rise.
        """
        if not 0.0 <= rejection <= 1.0:
            raise ValueError(f"rejection: {rejection}, must be 0 to 1")
        if self.slope <= 0.0:
            raise ValueError(f"slope: {self.slope:.4g}, must be above 0: deviation tells nothing here")
        x = (rejection - self.intercept) / self.slope
        if self.kind == "linear":
            return max(x, 0.0)
        try:
            return math.exp(x)
        except OverflowError:
            raise ValueError(f"rejection: {rejection}, is not reached at any deviation") from None


@dataclass(frozen=True)
class RejectionCurve:
    """Rejection rate of the primary code, by deviation.

    Attributes:
        deviation: (bins,) mean deviation of each equal-count bin, rising.
        rejection: (bins,) share rejected in it.
        rank_correlation: Spearman's, over single actions; 0 where all or none are rejected.
        linear, logarithmic: the two fits.
        actions: number of actions.
    """

    deviation: np.ndarray
    rejection: np.ndarray
    rank_correlation: float
    linear: Fit
    logarithmic: Fit
    actions: int

    @property
    def best(self) -> Fit:
        """The fit with the higher r2."""
        return max((self.linear, self.logarithmic), key=lambda fit: fit.r2)


def _fit(kind: str, x: np.ndarray, y: np.ndarray) -> Fit:
    line = linregress(x, y)
    return Fit(kind, float(line.slope), float(line.intercept), float(line.rvalue**2) if np.ptp(y) else 0.0)


def rejection_curve(deviation: np.ndarray, rejected: np.ndarray) -> RejectionCurve:
    """Measure rejection against deviation.

    Args:
        deviation: (T,), of drafts; infinite ones (before the first action) and zeros are left out.
        rejected: (T,) bool, whether the target rejected the primary code.

    Raises:
        ValueError: too few actions for `BINS` bins of equal count, or all with one deviation.
    """
    known = np.isfinite(deviation) & (deviation > 0.0)
    deviation, rejected = deviation[known], rejected[known]
    if len(deviation) < 2 * BINS or deviation.min() == deviation.max():
        raise ValueError(
            f"deviation: {len(deviation)} usable actions, must be at least {2 * BINS} that differ"
        )
    order = np.argsort(deviation, kind="stable")
    groups = np.array_split(order, BINS)
    mean_deviation = np.array([deviation[group].mean() for group in groups])
    mean_rejection = np.array([rejected[group].mean() for group in groups])
    return RejectionCurve(
        mean_deviation,
        mean_rejection,
        float(spearmanr(deviation, rejected).statistic) if np.ptp(mean_rejection) else 0.0,
        _fit("linear", mean_deviation, mean_rejection),
        _fit("logarithmic", np.log(mean_deviation), mean_rejection),
        len(deviation),
    )


def threshold_for_rate(
    trial: Callable[[float], tuple[np.ndarray, float]], rate: float
) -> tuple[float, float]:
    """Find the threshold at which a gate transmits at a wanted rate, in closed loop.

    The quantile of logged scores is not enough: the gate changes the robot's path, and with it the scores.
    So each trial measures the rate, and the quantile of its own scores is the next threshold; where that does
    not narrow the interval, it is halved.

    Args:
        trial: runs the gate at a threshold; returns the scores (T,) of its steps and its rate.
        rate: wanted, 0 to 1.

    Returns:
        The threshold, and its measured rate: the nearest, where the wanted one cannot be reached.

    Raises:
        ValueError: `rate` is not between 0 and 1.
    """
    if not 0.0 < rate < 1.0:
        raise ValueError(f"rate: {rate}, must be between 0 and 1")
    too_low, too_high = -math.inf, math.inf
    best = (math.inf, 0.0, 0.0)
    threshold, stride = 0.0, 0.5
    for _ in range(MOST_TRIALS):
        scores, measured = trial(threshold)
        best = min(best, (abs(measured - rate), threshold, measured))
        if best[0] <= RATE_TOLERANCE:
            break
        if measured > rate:
            too_low = max(too_low, threshold)
        else:
            too_high = min(too_high, threshold)
        known = scores[np.isfinite(scores)]
        # Steps without a finite score (an episode's first) are transmitted at any threshold, and so are
        # requests of a robot at the end of its plan.
        unasked = max(0.0, measured - float((scores > threshold).mean())) if len(scores) else 0.0
        share = min(1.0, (1.0 - rate + unasked) * len(scores) / max(1, len(known)))
        quantile = float(np.quantile(known, share)) if len(known) else 0.0
        bracketed = math.isfinite(too_low) and math.isfinite(too_high)
        if bracketed and (stride > 2.0 or not too_low < quantile < too_high):
            threshold = (too_low + too_high) / 2
        elif too_low < quantile < too_high:
            # Where requests lower the scores, quantiles converge slowly: increasing steps do not.
            threshold += max(1.0, stride / 2.0) * (quantile - threshold)
            stride *= 2.0
        else:
            break  # every score is on one side: no threshold is nearer
    return best[1], best[2]
