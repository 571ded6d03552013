# SPDX-License-Identifier: Apache-2.0
"""Success against transmission rate, for every gate and every period of plans; and the area under it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from adahi_lab.evaluation.evaluate import Comparison, Outcome, Progress, Run, outcome_figures, play_runs
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.metrics import area_under
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS, gates_of_methods

RATES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)  # falling: each starts at the last
SWEPT = gates_of_methods()
PERIODS = (2, 4, 8, 16, 32)  # steps from one plan to the next
COUNTED = (0.02, 0.5)  # transmission rates over which the area is taken


@dataclass(frozen=True)
class Point:
    """One method at one threshold.

    Attributes:
        method: a key of `METHODS`.
        figures: see `outcome_figures`.
    """

    method: str
    figures: Figures


@dataclass(frozen=True)
class Area:
    """The area under a curve of success against transmission rate.

    Attributes:
        area: mean success over the rates `COUNTED`; see `area_under`.
        rates: the lowest and the highest measured one; beyond them the curve is constant.
        points: their number.
    """

    area: float
    rates: tuple[float, float]
    points: int


def fixed_methods(policies: Policies) -> tuple[str, ...]:
    """Return the methods with a rate that needs no threshold: the draft, and plans of every period."""
    if policies.plans is None:
        return ("draft",)
    kinds = ("plan",) if policies.corrector is None else ("plan", "corrector")
    periods = [steps for steps in PERIODS if steps <= policies.plans.signature.horizon]
    return ("draft", *(f"{kind}_{steps}" for kind in kinds for steps in periods))


def curve_of(method: str) -> str:
    """Return the curve of a point: its method, or plan_K for plans of all periods."""
    return re.sub(r"^(plan|corrector)_\d+$", r"\1_K", method)


def areas(points: Sequence[Point]) -> dict[str, Area]:
    """Return the area under each curve of more than one point."""
    curves: dict[str, list[Figures]] = {}
    for point in points:
        curves.setdefault(curve_of(point.method), []).append(point.figures)
    found = {}
    for name, figures in curves.items():
        rates = np.array([each["transmission_rate"] for each in figures])
        if len(rates) > 1:
            success = np.array([each["success_rate"] for each in figures])
            reach = float(rates.min()), float(rates.max())
            found[name] = Area(area_under(rates, success, *COUNTED), reach, len(rates))
    return found


def _next_threshold(outcome: Outcome, rate: float) -> float:
    """Return the quantile of a run's scores that lets a given share of them through.

    0 where no score is finite: the threshold then has no effect.
    """
    scores = outcome.log.score[outcome.log.active]
    known = scores[np.isfinite(scores)]
    if len(known) == 0:
        return 0.0
    share = min(1.0, (1.0 - rate) * len(scores) / len(known))
    return float(np.quantile(known, share))


def episodes_run(episodes: int, policies: Policies) -> int:
    """Return how many episodes `sweep` runs in all, for progress."""
    return episodes * (len(fixed_methods(policies)) + len(SWEPT) * len(RATES))


def sweep_figures(points: Sequence[Point]) -> Figures:
    """Return the figures of a sweep, as they are written."""
    return {
        "sweep": [asdict(point) for point in points],
        "area": {name: {**asdict(each), "rates": list(each.rates)} for name, each in areas(points).items()},
    }


def sweep(
    comparison: Comparison,
    episodes: Sequence[int],
    workers: int,
    rates: Sequence[float] = RATES,
    fixed: Sequence[str] = ("draft",),
    on_done: Progress = lambda name, episodes: None,
) -> list[Point]:
    """Run every gate at falling rates on the same episodes.

    The threshold of each rate is the quantile of the scores at the rate before it. Requests change the
    scores, so the resulting rate only approximates the wanted one; it is measured.

    Args:
        comparison: task and policies; its thresholds are not used.
        episodes: their numbers.
        workers: processes.
        rates: wanted transmission rates, falling, the first one 1.
        fixed: methods with a fixed rate, run once.
        on_done: called with a method and the number of its episodes that have just ended.
    """

    def run(wanted: Mapping[str, Comparison]) -> dict[str, Outcome]:
        runs = {name: Run(METHODS[name], on, episodes) for name, on in wanted.items()}
        return play_runs(runs, workers, on_done)

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
