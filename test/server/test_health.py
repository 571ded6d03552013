"""What a verifier says of itself, from report to report."""

from __future__ import annotations

from collections import Counter

from adahi_ros.core.health_level import Level
from adahi_ros.server.server_health import Counts, HealthWatch


def test_a_verifier_that_nobody_has_asked_serves() -> None:
    health = HealthWatch().report(Counts(), {})
    assert (health.level, health.message) == (Level.OK, "serving")
    assert health.values == {
        "requests": 0,
        "compute_ms_mean": "0.000",
        "batch_size_mean": "0.00",
        "compute_ms_p50": "nan",
        "compute_ms_p95": "nan",
        "waiting_most": 0,
        "shared_names": 0,
        "unheard": 0,
    }


def test_one_that_is_inactive_says_so_and_is_not_in_trouble_for_that() -> None:
    health = HealthWatch().report(Counts(), {}, serving=False)
    assert (health.level, health.message) == (Level.OK, "inactive, serves nobody")
    health = HealthWatch().report(Counts(refused=2), {}, serving=False)
    assert (health.level, health.message) == (Level.WARN, "inactive, serves nobody; 2 requests refused")


def test_figures_by_hand() -> None:
    counts = Counts(
        Counter(ok=4, window_unknown=2, wrong_shape=1), refused=1, compute_ms=7.0, batches=2, served=7
    )
    counts.recent_ms.extend([1.0, 2.0, 1.0, 1.0])
    machine = {"device": "cuda:0", "memory_bytes": 7}
    assert HealthWatch().report(counts, {"arm": 1, "leg": 2}, waiting_most=3, machine=machine).values == {
        "requests": 7,
        "compute_ms_mean": "1.000",
        "batch_size_mean": "3.50",
        "compute_ms_p50": "1.000",
        "compute_ms_p95": "1.850",
        "waiting_most": 3,
        "replies.ok": 4,
        "replies.window_unknown": 2,
        "replies.wrong_shape": 1,
        "shared_names": 2,
        "unheard": 0,
        "device": "cuda:0",
        "memory_bytes": 7,
    }


def test_refusals_are_told_once() -> None:
    watch = HealthWatch()
    told = [watch.report(Counts(refused=refused), {})[:2] for refused in (2, 2, 3)]
    assert told == [
        (Level.WARN, "2 requests refused"),
        (Level.OK, "serving"),
        (Level.WARN, "1 requests refused"),
    ]


def test_a_shared_name_is_told_for_as_long_as_it_is_and_the_worst_by_name() -> None:
    watch = HealthWatch()
    shared = {"arm": 1, "leg": 7, "eye": 3}
    for _ in range(2):
        health = watch.report(Counts(), shared)
        assert health.level is Level.WARN
        assert health.message == "two robots are named 'leg': sessions have come back 7 times"
    assert watch.report(Counts(), {}).level is Level.OK


def test_all_troubles_are_told() -> None:
    health = HealthWatch().report(Counts(refused=3), {"arm": 1})
    assert health.level is Level.WARN
    assert health.message == (
        "3 requests refused; two robots are named 'arm': sessions have come back 1 times"
    )
