"""Instances by the trend of prices and revocations, on traces whose outcome can be worked out by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.papers.spottune.spot import (
    Predictor,
    Rules,
    replay,
)
from adahi_lab.papers.spottune.spot_costs import CHEAPEST, ON_DEMAND, TREND, Search, costs
from adahi_lab.papers.spottune.spot_trace import InstanceType, SpotTrace, load_trace, made_trace
from adahi_ros.core.assets import asset

SPOT, FIXED = (0, False), (0, True)
AT_ONCE = Rules(startup_h=0.0)


def steady(*revoked: int, periods: int = 100, price: float = 0.3) -> SpotTrace:
    """Return a market of one type, four periods an hour, with one price."""
    return SpotTrace(15, (InstanceType("only", 2.0, 1.0, (price,) * periods, revoked),))


@pytest.mark.parametrize(
    ("choice", "revoked", "rules", "cost", "hours", "revocations"),
    [
        (FIXED, (2,), AT_ONCE, 3.0, 3.0, 0),  # six hours of work at speed 2
        (SPOT, (), AT_ONCE, 0.9, 3.0, 0),
        (SPOT, (), Rules(startup_h=0.5), 1.05, 3.5, 0),
        (SPOT, (8,), AT_ONCE, 0.9, 3.0, 1),  # at the end of a period with a saved state: nothing is lost
        (SPOT, (2,), AT_ONCE, 0.75, 3.0, 1),  # revoked after half an hour, which is free
        (SPOT, (2,), Rules(0.0, refund=False), 0.9, 3.0, 1),
        (SPOT, (8,), Rules(0.0, checkpoint_h=1.0), 0.9, 3.0, 1),
        (SPOT, (7,), Rules(0.0, checkpoint_h=1.0), 1.125, 3.75, 1),  # three quarters of an hour are lost
    ],
)
def test_a_bill_is_of_what_was_used_and_lost(
    choice: tuple[int, bool],
    revoked: tuple[int, ...],
    rules: Rules,
    cost: float,
    hours: float,
    revocations: int,
) -> None:
    bill = replay(steady(*revoked), lambda now, present: choice, rules, 6.0, 0)
    assert (bill.cost, bill.hours, bill.revocations) == pytest.approx((cost, hours, revocations))


def test_a_trial_that_does_not_end_in_the_trace_takes_for_ever() -> None:
    assert replay(steady(), lambda now, present: SPOT, AT_ONCE, 60.0, 0).hours == float("inf")
    with pytest.raises(ValueError, match=r"work: 3 trials do not end"):
        costs(steady(periods=400), Search(3, 120.0), AT_ONCE)


@pytest.mark.smoke
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_by_trend_work_is_cheaper_than_by_either_baseline(seed: int) -> None:
    found = costs(made_trace(seed), Search(60), Rules())
    assert found["by"][TREND]["cost"] < found["by"][CHEAPEST]["cost"] < found["by"][ON_DEMAND]["cost"]
    assert found["by"][TREND]["revocations"] < found["by"][CHEAPEST]["revocations"]
    assert found["prediction"]["revocation_auc"] > 0.8


def test_the_rate_of_a_search_is_work_by_time_and_by_money() -> None:
    found = costs(made_trace(0), Search(60), Rules())["by"]
    assert found[ON_DEMAND]["performance_per_cost"] == 1.0
    dear, cheap = found[ON_DEMAND], found[TREND]
    expected = dear["cost"] / cheap["cost"] * dear["hours"] / cheap["hours"]
    assert cheap["performance_per_cost"] == pytest.approx(expected)


def test_trials_of_a_search_are_as_long_as_they_took(tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    took = [{"costs": {"cpu_s": cpu_s}} for cpu_s in (10.0, 30.0, 0.0)]
    file.write_text(json.dumps({"trials": took}))
    search = Search.measured(file, 20.0)
    assert (search.trials, search.work, search.shares) == (2, 20.0, (0.5, 1.5))
    market = steady(periods=400)
    on_demand = costs(market, search, AT_ONCE)["by"][ON_DEMAND]
    assert on_demand["hours"] == pytest.approx(10.0)  # 20 h at speed 2, on average of 5 h and 15 h
    file.write_text(json.dumps({"trials": []}))
    with pytest.raises(ValueError, match=r"no trial has costs: cpu_s, must be a file of 'adahi lab tune"):
        Search.measured(file, 20.0)


def test_the_future_does_not_change_a_choice() -> None:
    trace = made_trace(0, days=8)
    half = trace.periods // 2
    types = [
        replace(
            each,
            prices=(*each.prices[: half + 1], *(9.0,) * (half - 1)),
            revoked=(*(period for period in each.revoked if period <= half), half + 1),
        )
        for each in trace.types
    ]
    changed = replace(trace, types=tuple(types))
    first, second = (Predictor(each, half).outlook(half) for each in (trace, changed))
    np.testing.assert_array_equal(first.price, second.price)
    np.testing.assert_array_equal(first.revocation, second.revocation)


def test_the_shipped_trace_is_made_by_its_command(tmp_path: Path) -> None:
    made_trace(0).save(tmp_path / "made.json")
    shipped = asset("config/spot/made.json")
    assert (tmp_path / "made.json").read_bytes() == shipped.read_bytes()
    assert load_trace(shipped).periods == 28 * 96


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"minutes": 7}, "minutes: 7, must divide 60"),
        ({"minutes": 0}, "minutes: 0, must be an integer from 1 to 60"),
        ({"types": []}, "types: 0 with [] prices, must be 1 to 256"),
        ({"prices": [0.1, -0.1]}, "must be a number above 0"),
        ({"revoked": [1, 0]}, "revoked: of only, must be rising periods below 2"),
        ({"revoked": [2]}, "revoked: of only, must be rising periods below 2"),
        ({"colour": 1}, "colour: unknown"),
    ],
)
def test_what_is_no_trace_is_refused(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    kind = {"name": "only", "speed": 1.0, "on_demand": 1.0, "prices": [0.1, 0.2], "revoked": []}
    whole: dict[str, object] = {"minutes": 15, "types": [kind]}
    (kind if change.keys() <= kind.keys() else whole).update(change)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=re.escape(reason)) as refused:
        load_trace(path)
    assert str(refused.value).startswith(str(path))


def test_a_short_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="until: 10, must be 48 to 100 periods"):
        Predictor(steady(), 10)
