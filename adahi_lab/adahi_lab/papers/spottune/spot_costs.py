# SPDX-License-Identifier: Apache-2.0
"""What trials cost on a trace of the spot market, by what rents their instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from adahi_lab.figures import Figures
from adahi_lab.papers.spottune.spot import (
    Bill,
    Chooser,
    Predictor,
    Rules,
    by_trend,
    cheapest_spot,
    on_demand,
    replay,
)
from adahi_lab.papers.spottune.spot_trace import SpotTrace
from adahi_ros.core.files import read_json

ON_DEMAND, CHEAPEST, TREND, TREND_ALONE = "on demand", "cheapest spot", "by trend", "by trend, no refund"
LEVEL = 0.95


@dataclass(frozen=True)
class Search:
    """The trials of a search that are replayed.

    Attributes:
        trials: how many; their starts are spread over the second half of the trace.
        work: of a trial, in hours of an instance of speed 1; the mean of all.
        shares: of that work, of one trial after the other, from the start again after the last.

    Raises:
        ValueError: a value is out of range; names it.
    """

    trials: int = 200
    work: float = 40.0
    shares: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not 1 <= self.trials <= 100_000:
            raise ValueError(f"trials: {self.trials}, must be 1 to 100000")
        if not 0.0 < self.work <= 1e6:
            raise ValueError(f"work: {self.work}, must be above 0, and at most 1e6")

    @classmethod
    def measured(cls, file: Path, work: float) -> Search:
        """Return the trials of a search as `adahi lab tune --json` measured them, by their processor time.

        Raises:
            ValueError: it is no such file, or no trial took time.
        """
        trials = read_json(file).get("trials")
        took = trials if isinstance(trials, list) else []
        try:
            cpu_s = np.array([float(trial["costs"]["cpu_s"]) for trial in took])
        except (KeyError, TypeError, ValueError):
            cpu_s = np.zeros(0)
        cpu_s = cpu_s[np.isfinite(cpu_s) & (cpu_s > 0.0)]
        if not cpu_s.size:
            raise ValueError(f"{file}: no trial has costs: cpu_s, must be a file of 'adahi lab tune --json'")
        return cls(len(cpu_s), work, tuple((cpu_s / cpu_s.mean()).tolist()))


def costs(trace: SpotTrace, search: Search, rules: Rules) -> Figures:
    """Return what the trials cost on the second half of a trace; the predictor learned from the first.

    Returns:
        `by` what rents: `cost` of a trial, `hours`, `revocations`, `of_on_demand`, the cost as a share of
        that on demand, and `performance_per_cost`, SpotTune's rate (1 / hours / cost) as a multiple of that
        on demand.

    Raises:
        ValueError: the trace is too short for it, or a trial does not end within it.
    """
    half = trace.periods // 2
    predictor = Predictor(trace, half)
    unpaid = replace(rules, refund=False)
    choosers: dict[str, tuple[Chooser, Rules]] = {
        ON_DEMAND: (on_demand(trace), rules),
        CHEAPEST: (cheapest_spot(trace), rules),
        f"{CHEAPEST}, no refund": (cheapest_spot(trace), unpaid),
        TREND: (by_trend(trace, predictor, rules), rules),
        TREND_ALONE: (by_trend(trace, predictor, unpaid), unpaid),
    }
    longest = search.work * max(search.shares)
    room = round(1.5 * longest / min(each.speed for each in trace.types)) * trace.hour
    starts = np.linspace(half, max(half, trace.periods - room), search.trials).astype(int)
    works = [search.work * share for share in islice(cycle(search.shares), search.trials)]
    trials = list(zip(works, map(int, starts), strict=True))
    found = {
        name: _mean([replay(trace, choose, by, work, start) for work, start in trials])
        for name, (choose, by) in choosers.items()
    }
    whole = found[ON_DEMAND]
    for each in found.values():
        each["of_on_demand"] = each["cost"] / whole["cost"]
        each["performance_per_cost"] = whole["cost"] * whole["hours"] / (each["cost"] * each["hours"])
    return {"by": found, "prediction": quality(trace, predictor, half)}


def _mean(bills: Sequence[Bill]) -> dict[str, float]:
    hours = np.array([bill.hours for bill in bills])
    if not np.isfinite(hours).all():
        raise ValueError(f"work: {np.isinf(hours).sum()} trials do not end within the trace; must be less")
    return {
        "cost": float(np.mean([bill.cost for bill in bills])),
        "hours": float(hours.mean()),
        "revocations": float(np.mean([bill.revocations for bill in bills])),
    }


def quality(trace: SpotTrace, predictor: Predictor, first: int) -> dict[str, float]:
    """Return how good the outlook is from a period on: AUC of revocations, errors of price, in shares.

    `price_kept` is the error of a price that is taken as constant.
    """
    times = range(first, trace.periods - trace.hour)
    outlooks = [predictor.outlook(now) for now in times]
    ahead = [slice(now + 1, now + 1 + trace.hour) for now in times]
    taken = np.array([trace.revoked[:, part].any(axis=1) for part in ahead]).ravel()
    scores = np.array([each.revocation for each in outlooks]).ravel()
    price = np.array([trace.prices[:, part].mean(axis=1) for part in ahead])
    kept = trace.prices[:, first : trace.periods - trace.hour].T
    count = int(taken.sum())
    ranks = rankdata(scores)[taken].sum() - count * (count + 1) / 2
    pairs = count * (len(taken) - count)
    return {
        "revocation_auc": float(ranks / pairs) if pairs else 0.5,
        "price": float(np.abs(np.array([each.price for each in outlooks]) / price - 1.0).mean()),
        "price_kept": float(np.abs(kept / price - 1.0).mean()),
    }


def over_traces(found: Sequence[Figures]) -> dict[str, tuple[float, float]]:
    """Return the mean cost as a share of that on demand, and half its interval of 95 %, by what rents."""
    result = {}
    for name in found[0]["by"]:
        shares = np.array([each["by"][name]["of_on_demand"] for each in found])
        half = 0.0
        if len(shares) > 1:
            half = student.ppf(0.5 + LEVEL / 2, len(shares) - 1) * shares.std(ddof=1) / np.sqrt(len(shares))
        result[name] = float(shares.mean()), float(half)
    return result
