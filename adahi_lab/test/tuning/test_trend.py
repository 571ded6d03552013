from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

optuna = pytest.importorskip("optuna", reason="pip install -r requirements/tune.txt")

from adahi_lab.tuning.trend import MARGIN, STARTUP, TrendPruner, predicted_end  # noqa: E402

STAGES = 6


def ended_with(*values: float) -> Any:
    study = optuna.create_study(direction="maximize")
    for value in values:
        study.add_trial(optuna.create_trial(value=value))
    return study


def stops(study: Any, curve: Sequence[float]) -> bool:
    trial = study.ask()
    for stage, value in enumerate(curve, start=1):
        trial.report(value, stage)
    (running,) = study.get_trials(states=(optuna.trial.TrialState.RUNNING,))
    stopped = TrendPruner(STAGES).prune(study, running)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return stopped


def test_a_line_is_continued_to_the_end_and_a_fall_is_not() -> None:
    assert predicted_end([0.1, 0.2, 0.3], 6) == pytest.approx(0.6)
    assert predicted_end([0.9, 0.1, 0.2, 0.3], 6) == pytest.approx(0.5)  # by the latest alone
    assert predicted_end([0.5, 0.4, 0.3], 6) == pytest.approx(0.4)
    assert predicted_end([0.2], 6) == float("inf")


def test_who_does_badly_is_stopped_and_who_still_rises_is_not() -> None:
    study = ended_with(*[0.4] * (STARTUP - 1), 0.8)
    assert stops(study, [0.0, 0.0])
    assert stops(study, [0.3, 0.35, 0.4])
    assert not stops(study, [0.0, 0.2])
    assert not stops(study, [0.7, 0.78])


def test_no_trial_is_stopped_before_there_is_a_trend_and_a_best() -> None:
    assert not stops(ended_with(*[0.8] * STARTUP), [0.0])
    assert not stops(ended_with(*[0.8] * (STARTUP - 1)), [0.0, 0.0, 0.0])


def test_what_noise_may_hide_stops_no_one() -> None:
    study = ended_with(*[0.8] * STARTUP)
    assert not stops(study, [0.8 - 0.9 * MARGIN] * 3)
    assert stops(study, [0.8 - 1.1 * MARGIN] * 3)
