"""How many replicas meet an objective: against a simulated queue, in simulated time."""

from __future__ import annotations

import heapq
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.server.ray.fleet_file import FleetFileError, read_fleet
from adahi_ros.server.ray.scaling import (
    PASS_S,
    RATE_HZ,
    WINDOW_S,
    Load,
    ObjectiveScaling,
    replicas_for,
)

PASS, BATCH = 0.02, 8


def simulated_s(rate_hz: float, replicas: int, seed: int = 0) -> float:
    """Return the 95th percentile of 20,000 requests' times at replicas that serve batches."""
    draw = np.random.default_rng(seed)
    arrivals = np.cumsum(draw.exponential(1.0 / rate_hz, 20_000))
    free = [0.0] * replicas
    times: list[float] = []
    first = 0
    while first < len(arrivals):
        start = max(heapq.heappop(free), arrivals[first])
        last = min(first + BATCH, int(np.searchsorted(arrivals, start, side="right")))
        times += (start + PASS - arrivals[first:last]).tolist()
        heapq.heappush(free, start + PASS)
        first = last
    return float(np.quantile(times, 0.95))


@pytest.mark.parametrize("rate_hz", [20.0, 80.0, 300.0, 900.0, 2000.0])
@pytest.mark.parametrize("objective_s", [0.025, 0.03, 0.045, 0.08])
def test_the_objective_is_met_and_not_by_many_more_than_needed(rate_hz: float, objective_s: float) -> None:
    chosen = replicas_for(rate_hz, PASS, BATCH, objective_s, 200)
    assert simulated_s(rate_hz, chosen) <= 1.05 * objective_s
    needed = next(count for count in range(1, 200) if simulated_s(rate_hz, count) <= objective_s)
    assert chosen <= 2 * needed + 1


def context(now: int, rates: list[float], pass_s: float = PASS) -> Any:
    measured = {RATE_HZ: dict(enumerate(rates)), PASS_S: dict.fromkeys(range(len(rates)), pass_s)}
    return SimpleNamespace(target_num_replicas=now, aggregated_metrics=measured)


def test_it_follows_the_load_within_its_bounds() -> None:
    scale = ObjectiveScaling(30.0, BATCH, least=2, most=12)
    assert scale(context(2, []))[0] == 2
    assert scale(SimpleNamespace(target_num_replicas=5, aggregated_metrics=None))[0] == 5
    assert scale(context(2, [1.0, 1.0]))[0] == 2
    busy = scale(context(2, [150.0, 150.0]))[0]
    assert busy == replicas_for(300.0, PASS, BATCH, 0.03, 12) > 2
    assert scale(context(2, [1e5]))[0] == 12


def test_a_replica_measures_its_load() -> None:
    now = [0.0]
    load = Load(lambda: now[0])
    assert load.figures() == {RATE_HZ: 0.0, PASS_S: 0.0}
    for _ in range(10):
        load.served(5, PASS)
    assert load.figures() == {RATE_HZ: pytest.approx(50 / WINDOW_S), PASS_S: pytest.approx(PASS)}
    now[0] = WINDOW_S + 1.0
    assert load.figures() == {RATE_HZ: 0.0, PASS_S: pytest.approx(PASS)}


def fleet(folder: Path, **replicas: object) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump({"policies": {"arm": {"checkpoint": "a/b", "replicas": replicas}}}))
    return path


def test_replicas_fit_into_their_budget(tmp_path: Path) -> None:
    (policy,) = read_fleet(fleet(tmp_path, least=1, most=9, memory_mib=100, budget_mib=450)).named
    assert policy.replicas.fitting == 4
    (policy,) = read_fleet(fleet(tmp_path, least=1, most=3, memory_mib=100, budget_mib=450)).named
    assert policy.replicas.fitting == 3
    (policy,) = read_fleet(fleet(tmp_path, least=1, most=9)).named
    assert policy.replicas.fitting == 9


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [
        ({"least": 5, "memory_mib": 100, "budget_mib": 450}, "budget_mib: 450, must be at least 500"),
        ({"least": 1, "budget_mib": 450}, "memory_mib: 0, must be given with a budget"),
        ({"least": 1, "objective_ms": -1}, "objective_ms: -1, must be a number from 0 to 60000"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(
    replicas: dict[str, object], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(FleetFileError, match=reason):
        read_fleet(fleet(tmp_path, **replicas))
