"""Success against transmission rate, for every gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adahi_ros.evaluation.evaluate import Comparison, Outcome, Progress, batches, outcome_figures, play
from adahi_ros.evaluation.methods import gates_of_methods
from adahi_ros.parallel import Job, run_jobs

RATES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # falling: each starts from the one before
SWEPT = gates_of_methods()
FIXED = ("draft", "plan_2", "plan_4", "plan_8")


@dataclass(frozen=True)
class Point:
    """One method at one threshold.

    Attributes:
        method: a key of `METHODS`.
        figures: see `outcome_figures`.
    """

    method: str
    figures: dict[str, Any]


def _next_threshold(outcome: Outcome, rate: float) -> float:
    """Return the quantile of a run's scores that would let a share of them through.

    0 where no score is finite: what is let through is then the same at any threshold.
    """
    scores = outcome.log.score[outcome.log.active]
    known = scores[np.isfinite(scores)]
    if len(known) == 0:
        return 0.0
    share = min(1.0, (1.0 - rate) * len(scores) / len(known))
    return float(np.quantile(known, share))


def sweep(
    comparison: Comparison,
    episodes: Sequence[int],
    workers: int,
    rates: Sequence[float] = RATES,
    fixed: Sequence[str] = FIXED,
    on_done: Progress = lambda name, episodes: None,
) -> list[Point]:
    """Run every gate at falling rates on the same episodes.

    The threshold of each rate is the quantile of the scores at the rate before it. What a gate lets
    through changes the scores, so the rate that results is near the wanted one, and is measured.

    Args:
        comparison: what on what; its thresholds are not used.
        episodes: their numbers.
        workers: processes.
        rates: wanted transmission rates, falling, the first one 1.
        fixed: methods with a rate of their own, run once.
        on_done: told a method and how many of its episodes have just ended.
    """
    parts = batches(episodes)

    def run(wanted: dict[str, Comparison]) -> dict[str, Outcome]:
        jobs: list[Job[Outcome]] = [
            (play, (each, name, part)) for name, each in wanted.items() for part in parts
        ]
        outcomes = run_jobs(jobs, workers, lambda index: on_done(jobs[index][1][1], len(jobs[index][1][2])))
        return {
            name: Outcome.side_by_side(outcomes[row * len(parts) : (row + 1) * len(parts)])
            for row, name in enumerate(wanted)
        }

    def measured(outcomes: dict[str, Outcome]) -> list[Point]:
        return [Point(name, outcome_figures(outcome)) for name, outcome in outcomes.items()]

    points = measured(run(dict.fromkeys(fixed, comparison)))
    thresholds = dict.fromkeys(SWEPT, 0.0)
    for rate, following in zip(rates, [*rates[1:], None], strict=True):
        wanted = {}
        for name, gate in SWEPT.items():
            threshold = 1.0 - rate if gate == "random" else thresholds[name]
            calibration = replace(comparison.calibration, thresholds={gate: threshold})
            wanted[name] = replace(comparison, calibration=calibration)
        outcomes = run(wanted)
        points += measured(outcomes)
        if following is not None:
            thresholds = {name: _next_threshold(outcome, following) for name, outcome in outcomes.items()}
    return points
