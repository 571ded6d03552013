"""What a verifier says of itself, from report to report."""

from __future__ import annotations

from collections import Counter

import pytest

from adahi_ros.core.health_level import Level
from adahi_ros.server.server_health import HealthWatch
from adahi_ros.server.service import NAMED_MOST, OTHERS, Buckets, Counts


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
    counts = Counts(replies=Counter(ok=4, window_unknown=2, wrong_shape=1), refused=1)
    for took_s, requests in ((0.003, 3), (0.004, 4)):
        counts.batch_s.add(took_s)
        counts.batch_sizes.add(requests)
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


def test_a_bucket_has_the_values_up_to_its_bound() -> None:
    buckets = Buckets((1, 2.5))
    for value in (0.0, 1.0, 1.5, 2.5, 2.6, 100.0):
        buckets.add(value)
    assert (buckets.counts, buckets.total) == ([2, 2, 2], pytest.approx(107.6))


def test_invented_names_have_one_count_together_and_known_ones_their_own() -> None:
    counts = Counts(Counter({"named": 0}))
    for number in range(1000):
        counts.add(f"invented {number}", "busy")
        counts.add("named", "ok")
    counts.add("a\nb", "ok")  # a new name, too late
    assert len(counts.robots) == NAMED_MOST + 1
    assert (counts.robots["named"], counts.robots[OTHERS]) == (1000, 1000 - (NAMED_MOST - 1) + 1)
    assert counts.replies == {"busy": 1000, "ok": 1001}


@pytest.mark.parametrize(
    ("robot_id", "shown"),
    [("a\nb", "a?b"), ("x" * 65, "x" * 61 + "..."), ("\ud800", "?"), ("Größe-2", "Größe-2")],
)
def test_a_name_is_counted_as_it_can_be_shown(robot_id: str, shown: str) -> None:
    counts = Counts()
    counts.add(robot_id, "ok")
    assert counts.robots == {shown: 1}
