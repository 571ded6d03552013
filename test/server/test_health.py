"""What a verifier says of itself, from report to report."""

from __future__ import annotations

from collections import Counter

import pytest

from adahi_ros.core.health_level import Level
from adahi_ros.server.server_health import Counts, HealthWatch


@pytest.mark.parametrize(
    ("counts", "shared", "serving", "level", "message"),
    [
        (Counts(), {}, False, Level.OK, "inactive, serves no robots"),
        (Counts(refused=2), {}, False, Level.WARN, "inactive, serves no robots; 2 requests refused"),
        (
            Counts(refused=3),
            {"arm": 1},
            True,
            Level.WARN,
            "3 requests refused; two robots are named 'arm': sessions have come back 1 times",
        ),
        (
            Counts(),
            {"arm": 1, "leg": 7, "eye": 3},
            True,
            Level.WARN,
            "two robots are named 'leg': sessions have come back 7 times",
        ),
    ],
)
def test_troubles(counts: Counts, shared: dict[str, int], serving: bool, level: Level, message: str) -> None:
    health = HealthWatch().report(counts, shared, serving=serving)
    assert (health.level, health.message) == (level, message)


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


def test_news_are_since_the_report_before_and_a_shared_name_stays() -> None:
    watch = HealthWatch()
    reports = [(2, {}), (2, {"arm": 1}), (2, {"arm": 1}), (3, {})]
    messages = [watch.report(Counts(refused=refused), shared).message for refused, shared in reports]
    shared = "two robots are named 'arm': sessions have come back 1 times"
    assert messages == ["2 requests refused", shared, shared, "1 requests refused"]
    assert watch.report(Counts(refused=3), {}).level is Level.OK
