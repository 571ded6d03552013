# SPDX-License-Identifier: Apache-2.0
"""Stops a trial if the trend of its curve does not reach the best result of other trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from optuna.pruners import BasePruner, MedianPruner, NopPruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

LATEST = 3  # stages in a trend
WARM_UP = 2  # stages before any trial is stopped
STARTUP = 4  # trials that must have ended before that
MARGIN = 0.05  # of the objective, for noise


def predicted_end(values: Sequence[float], stages: int) -> float:
    """Return the extrapolated end of a curve, an optimistic estimate.

    SpotTune (Li et al., 2020) fits each stage of a curve separately, and extrapolates the latest. Here each
    stage of training is one point, and a straight line extrapolates the latest few. Learning curves flatten,
    so a line rather overestimates: a stopped trial would not have reached the best. A falling curve is taken
    as constant.

    Args:
        values: after each stage from the first on; larger is better.
        stages: in all.
    """
    latest = np.asarray(values[-LATEST:], dtype=float)
    if len(latest) < 2:
        return float("inf")
    slope, _ = np.polyfit(np.arange(len(latest)), latest, 1)
    return float(latest.mean() + max(0.0, slope) * (stages - len(values) + (len(latest) - 1) / 2))


class TrendPruner(BasePruner):
    """Stops a trial if its trend does not reach the best result of other trials.

    Args:
        stages: in all.
        margin: by which the trend may miss the best.
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
"""By `StageConfig.stop`: makes a pruner from the number of stages."""
