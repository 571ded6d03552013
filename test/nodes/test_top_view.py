from __future__ import annotations

import copy
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from adahi_ros.nodes.monitoring.top_view import COLUMNS, TopView, spark

REASONS = ("no verifier", "deadline", "refused", "bad reply", "superseded", "breaker open")
SAFETY = ("position", "velocity", "acceleration", "step", "not finite", "stale", "disabled", "deactivated")
FIGURES: dict[str, Any] = {
    "topic": "/r1/draft_status",
    "namespace": "/r1",
    "robot_id": "r1",
    "age_s": 0.03,
    "gate": "deviation",
    "deviation": 0.42,
    "score": 0.42,
    "threshold": 0.88,
    "message": "",
    "plan": None,
    "recent": {
        "window_s": 5.0,
        "steps": 100,
        "rate_hz": 20.0,
        "transmission_rate": 0.61,
        "acceptance": 0.34,
        "fallbacks": {"deadline": 3},
        "person": 0,
        "held": 0,
        "verify_ms": {"p50": 12.1, "p95": 18.3},
        "total_ms": {"p50": 13.0, "p95": 19.9},
        "scores": [index % 17 / 10 for index in range(100)],
    },
    "since_activation": {
        "steps": 24130,
        "transmission_rate": 0.6,
        "acceptance": 0.33,
        "fallbacks": dict.fromkeys(REASONS, 41),
        "person": 0,
    },
    "link": {
        "age_s": 0.1,
        "verifier": "ready",
        "rtt_ms": 5.1,
        "rtt_deviation_ms": 0.4,
        "loss": 0.02,
        "misses": 0.03,
        "goodput_bytes_s": 12100.0,
        "requests": 14000,
        "replies": 13900,
        "windows_resent": 3,
    },
    "safety": {
        "age_s": 0.2,
        "enabled": True,
        "holding": False,
        "message": "",
        "interventions": [],
        "counts": dict.fromkeys(SAFETY, 0) | {"velocity": 7},
    },
    "diagnostics": {"age_s": 0.4, "level": "WARN", "message": "input ignored", "values": {}},
}
PLAN: dict[str, Any] = {
    "proposer": "corrector",
    "age": 3,
    "left": 13,
    "expected_error": 0.214,
    "correction": 0.0312,
    "requests_pending": 1,
}
SILENT: dict[str, Any] = {
    **FIGURES,
    "namespace": "/",
    "topic": "/draft_status",
    "robot_id": "",
    **dict.fromkeys(("age_s", "gate", "deviation", "score", "threshold")),
    **dict.fromkeys(("plan", "link", "safety", "diagnostics")),
    "recent": {
        **dict.fromkeys(FIGURES["recent"]),
        "window_s": 5.0,
        "steps": 0,
        "fallbacks": {},
        "person": 0,
        "held": 0,
        "scores": [],
    },
    "since_activation": {
        "steps": None,
        "transmission_rate": None,
        "acceptance": None,
        "fallbacks": {},
        "person": 0,
    },
}


def figures(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FIGURES), **changes}


def shown(robots: list[dict[str, Any]], width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(TopView(robots, "domain 7"))
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_one_robot_is_shown_in_detail_on_one_screen(width: int) -> None:
    lines = shown([FIGURES], width)
    text = "\n".join(lines)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    for words in ("r1", "message 0.0 s", "WARN input ignored", "20.0", "61%", "24130", "rtt 5.1 ± 0.4 ms"):
        assert words in text
    for words in ("threshold 0.88", "12.1/18.3", "goodput 12.1 kB/s", "velocity 7", *REASONS):
        assert words in text
    assert "stale" not in text  # has not happened


@pytest.mark.parametrize("width", [80, 200])
def test_a_plan_is_reported_in_detail_on_the_same_screen(width: int) -> None:
    reasons = ("no verifier", "deadline", "bad reply", "no plan")
    since = {**FIGURES["since_activation"], "fallbacks": dict.fromkeys(reasons, 41)}
    lines = shown([figures(plan=PLAN, since_activation=since)], width)
    text = "\n".join(lines)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    for words in ("proposer corrector", "reply 3 steps old, 13 left", "requests pending 1"):
        assert words in text
    assert "expected error 0.214   correction 0.0312" in text
    without = {**PLAN, "age": None, "left": 0, "expected_error": None, "correction": None}
    text = "\n".join(shown([figures(plan=without)], width))
    assert "reply none" in text
    assert "expected error -   correction -" in text
    assert "reply none" not in "\n".join(shown([FIGURES], width))


def test_the_plan_has_a_column_where_a_robot_goes_by_one() -> None:
    drafting, over = figures(), figures(plan={**PLAN, "age": None, "left": 0})
    lines = shown([drafting, figures(plan=PLAN), over], 250)
    at = lines[1].index("plan")
    assert [line[: at + 4].split()[-1] for line in lines[2:]] == ["-", "3+13", "none"]
    assert "plan" not in shown([drafting, drafting], 250)[1]
    assert "plan" not in shown([figures(plan=PLAN)] * 2, 40)[1]  # others matter more


def test_what_was_not_received_is_reported_and_breaks_nothing() -> None:
    text = "\n".join(shown([SILENT]))
    for words in ("last message never", "link: no message", "safety: no message"):
        assert words in text
    assert len(shown([SILENT, SILENT])) == 4
    assert shown([]) == ["no robot in domain 7 yet"]


def test_diagnostics_that_stopped_are_not_health() -> None:
    lines = shown([figures(diagnostics={**FIGURES["diagnostics"], "age_s": 9.0})])
    assert lines[1].startswith("silent")


def test_several_robots_have_a_row_each() -> None:
    robots = [figures(namespace=f"/r{index}", robot_id=f"r{index}", plan=PLAN) for index in range(3)]
    lines = shown(robots, 250)
    assert lines[0] == "3 robots in domain 7"
    assert [line.split()[0] for line in lines[2:]] == ["/r0", "/r1", "/r2"]
    for column in COLUMNS:
        assert column.header in lines[1]


@given(st.integers(40, 260))
def test_a_row_never_leaves_the_screen_and_wider_shows_no_less(width: int) -> None:
    robots = [figures(), figures(namespace="/a_robot_of_a_long_name")]
    narrow, wide = shown(robots, width), shown(robots, width + 10)
    assert len(narrow) == 4
    assert max(map(len, narrow)) <= width
    headers = [column.header for column in COLUMNS]
    assert sum(header in wide[1] for header in headers) >= sum(header in narrow[1] for header in headers)


def test_a_robot_has_the_name_of_its_namespace_and_its_own() -> None:
    names = [("/", "arm"), ("/r1", "r1"), ("/r1", "left"), ("/r1", "")]
    robots = [figures(namespace=space, robot_id=named) for space, named in names]
    starts = [line[:20].split("  ")[0].strip() for line in shown(robots, 100)[2:]]
    assert starts == ["arm", "/r1", "/r1 left", "/r1/draft_status"]


def test_an_envelope_that_is_at_work_is_reported() -> None:
    safety = {**FIGURES["safety"], "holding": True}
    assert "holding" in "\n".join(shown([figures(safety=safety)]))
    assert "disabled" in "\n".join(shown([figures(safety={**safety, "enabled": False})]))
    limited = {**FIGURES["safety"], "message": "limited: elbow"}
    assert "limited: elbow" in "\n".join(shown([figures(safety=limited)]))
    recent = {**FIGURES["recent"], "held": 4}
    assert "held: no command" in "\n".join(shown([figures(recent=recent)]))
    lines = shown([figures(safety=safety), figures(safety={**safety, "enabled": False})], 100)
    assert "holding 7" in lines[2]
    assert "disabled 7" in lines[3]


def test_the_threshold_is_at_half_height() -> None:
    (line,) = spark([0.0, 0.25, 0.5, 0.75, 1.0, 50.0], 0.5, 10)
    assert line.plain == "▁▂▄▆██"
    assert [span.style for span in line.spans] == ["cyan"] * 3 + ["yellow"] * 3
    above, below = spark([0.25, 0.5, 0.75, 1.0], 0.5, 10, rows=2)
    assert above.plain == "  ▄█"
    assert below.plain == "▄███"


@pytest.mark.parametrize(("scores", "threshold"), [([None], 0.5), ([1.0], 0.0), ([1.0], None)])
def test_what_cannot_be_compared_is_a_dot(scores: list[float | None], threshold: float | None) -> None:
    assert [line.plain for line in spark(scores, threshold, 5, rows=2)] == [" ", "·"]


@given(st.lists(st.floats(0.0, 2.0), max_size=100), st.integers(1, 80))
def test_the_newest_scores_are_shown_in_the_colour_of_what_they_lead_to(
    scores: list[float], width: int
) -> None:
    (line,) = spark(scores, 1.0, width)
    assert [span.style for span in line.spans] == [
        "yellow" if score > 1.0 else "cyan" for score in scores[-width:]
    ]
