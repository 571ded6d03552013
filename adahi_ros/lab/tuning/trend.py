# SPDX-License-Identifier: Apache-2.0
"""When to stop a trial: where the trend of its curve does not lead to what others have reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from optuna.pruners import BasePruner, MedianPruner, NopPruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

LATEST = 3  # stages that a trend is of
WARM_UP = 2  # stages before which nobody is stopped
STARTUP = 4  # trials that must have ended before
MARGIN = 0.05  # of the objective, that noise may hide


def predicted_end(values: Sequence[float], stages: int) -> float:
    """Return what a curve leads to: the most that its past makes likely.

    SpotTune (Li et al., 2020) fits each stage of a curve apart, and goes on by the latest. Here each stage of
    training is one point of the curve, and the latest few are continued by a straight line. Learning curves
    flatten, so a line is rather too high than too low: who is stopped by it would not have got there. A curve
    that falls is taken to stay where it is.

    Args:
        values: after each stage from the first on, the larger the better.
        stages: in all.
    """
    latest = np.asarray(values[-LATEST:], dtype=float)
    if len(latest) < 2:
        return float("inf")
    slope, _ = np.polyfit(np.arange(len(latest)), latest, 1)
    return float(latest.mean() + max(0.0, slope) * (stages - len(values) + (len(latest) - 1) / 2))


class TrendPruner(BasePruner):
    """Stops a trial whose trend does not lead to the best that others have ended with.

    Args:
        stages: in all.
        margin: that the trend may be short of the best.
    """

    def __init__(self, stages: int, margin: float = MARGIN) -> None:
        self._stages = stages
        self._margin = margin

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether to stop it; see `BasePruner`."""
        values = [value for _, value in sorted(trial.intermediate_values.items())]
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        best = max((each.value for each in ended if each.value is not None), default=float("-inf"))
        if len(values) < WARM_UP or len(ended) < STARTUP:
            return False
        return predicted_end(values, self._stages) < best - self._margin


PRUNERS: dict[str, Callable[[int], BasePruner]] = {
    "trend": TrendPruner,
    "median": lambda stages: MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=WARM_UP),
    "never": lambda stages: NopPruner(),
}
"""By `StageConfig.stop`, made of the number of stages."""
