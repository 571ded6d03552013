# SPDX-License-Identifier: Apache-2.0
"""The figures of the paper's section IV, from logs, with confidence intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest, norm

from adahi_lab.datasets.trajectories import Trajectories

Z95 = 1.959963984540054
LEVEL = 0.05  # a difference with a smaller probability by chance is significant
MARGIN = 0.03  # of success: a method that is worse by less is no worse


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson, 1927)."""
    share = successes / trials
    spread = Z95**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    # At the ends the bounds are exactly 0 and 1; rounding could exclude the share itself.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


class Paired(NamedTuple):
    """Two methods on the same episodes.

    Attributes:
        only_this, only_other: episodes in which one alone succeeds.
        p: probability that they are as far apart, or farther, by chance.
        no_worse: probability of this result, or a better one, where this method is worse by `MARGIN`.
    """

    only_this: int
    only_other: int
    p: float
    no_worse: float = 1.0

    def __str__(self) -> str:
        """Return a cell of a table."""
        return f"{self.only_this}:{self.only_other} ({self.p:.2f})"

    @property
    def verdict(self) -> str:
        """Whether this method is better than the other, worse, no worse, or nothing of that at 5 %."""
        if self.p >= LEVEL:
            return "no worse" if self.no_worse < LEVEL else "undecided"
        return "better" if self.only_this > self.only_other else "worse"


def mcnemar(this: np.ndarray, other: np.ndarray) -> Paired:
    """Compare two methods by their success (E,) bool in the same episodes; McNemar's exact test, two-sided.

    Only episodes in which exactly one succeeds count: equally good methods would each win half of them
    (McNemar, 1947). This finds smaller differences than two non-overlapping intervals, because easy and hard
    episodes are the same for both.
    """
    only_this, only_other = int((this & ~other).sum()), int((other & ~this).sum())
    apart = only_this + only_other
    p = float(binomtest(only_this, apart).pvalue) if apart else 1.0
    return Paired(only_this, only_other, p, no_worse(only_this, only_other, len(this)) if len(this) else 1.0)


def no_worse(only_this: int, only_other: int, episodes: int) -> float:
    """Return the one-sided p of the hypothesis that one method is worse than another by `MARGIN` or more.

    The score test of a difference of paired shares (Tango, 1998), from the episodes in which one alone
    succeeds.
    """
    # The likeliest share of episodes that only the other wins, if it wins more by the margin.
    linear = -only_this - only_other - (2 * episodes - only_this + only_other) * MARGIN
    constant = only_other * MARGIN * (1.0 + MARGIN)
    share = (math.sqrt(linear**2 - 8 * episodes * constant) - linear) / (4 * episodes)
    variance = episodes * (2.0 * share - MARGIN - MARGIN**2)
    return float(norm.sf((only_this - only_other + episodes * MARGIN) / math.sqrt(variance)))


def holm(p: Sequence[float]) -> list[float]:
    """Return the p values of several tests, adjusted for their number (Holm, 1979)."""
    order, least, adjusted = np.argsort(p), 0.0, [1.0] * len(p)
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = least
    return adjusted


def transmission_rate(transmitted: np.ndarray, active: np.ndarray) -> float:
    """Return TR, the share of actions that were transmitted; both (T, E) bool."""
    return float(transmitted[active].mean())


def true_skip_ratio(transmitted: np.ndarray, accepted: np.ndarray, active: np.ndarray) -> float | None:
    """Return TSR, the share of skipped drafts that the target would have accepted whole.

    Args:
        transmitted: (T, E) bool.
        accepted: (T, E, N) bool; of the primary code alone, as the paper counts rejections, N is 1.
        active: (T, E) bool.

    Returns:
        None if no step was skipped, or without drafts (N is 0).
    """
    skipped = active & ~transmitted
    if accepted.shape[-1] == 0 or not skipped.any():
        return None
    return float(accepted[skipped].all(axis=-1).mean())


def information_age(age: np.ndarray, active: np.ndarray) -> dict[str, float | None]:
    """Return the age of what robots act by, in control steps, where they have a reply.

    The age of information at a receiver (Kaul, Yates and Gruteser, "Real-time status: how often should one
    update?", 2012), sampled at every control step.

    Args:
        age: (T, E), infinite where no reply has arrived yet.
        active: (T, E) bool.

    Returns:
        `mean` and `p95`, None where no step has one.
    """
    of_steps = age[active]
    known = of_steps[np.isfinite(of_steps)]
    mean, p95 = (float(known.mean()), float(np.percentile(known, 95))) if len(known) else (None, None)
    return {"mean": mean, "p95": p95}


def squared_error(
    trajectories: Trajectories, actions: np.ndarray, active: np.ndarray, scale: np.ndarray
) -> float:
    """Return the mean squared error to recorded actions, in units of the action scale.

    Args:
        trajectories: E recorded episodes.
        actions: (T, E, A) executed at the recorded observations; NaN does not count, such as before the first
            plan of a robot without a draft.
        active: (T, E) bool.
        scale: (A,).
    """
    # Transposed: active entries in the recording's order, episode by episode.
    executed = actions.transpose(1, 0, 2)[active.T]
    return float(np.nanmean(((executed - trajectories.actions) / scale) ** 2))


def area_under(rates: np.ndarray, success: np.ndarray, low: float, high: float) -> float:
    """Return the mean success over transmission rates from low to high: the area under a curve, by its width.

    The curve consists of straight lines through the measured points, sorted by rate; points of one rate are
    averaged. It is not smoothed, and dominated points stay in. Beyond its first and last point the curve is
    constant: below its lowest measured rate, a method keeps the success measured there.

    Args:
        rates: (P,) of the points, in any order.
        success: (P,) of them.
        low: of the rates that count.
        high: likewise, above `low`.
    """
    known, which = np.unique(rates, return_inverse=True)
    mean = np.bincount(which, success) / np.bincount(which)
    inside = known[(known > low) & (known < high)]
    knots = np.concatenate([[low], inside, [high]])
    heights = np.interp(knots, known, mean)
    return float((np.diff(knots) * (heights[1:] + heights[:-1]) / 2.0).sum() / (high - low))
