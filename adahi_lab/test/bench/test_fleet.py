"""Figures of calls, and of a fleet that asks."""

from __future__ import annotations

from typing import Any

import pytest

from adahi_lab.bench.call_figures import STARVED_MOST, call_figures, fleet_figures
from adahi_lab.bench.fleet_bench import OPENPI, measure_fleet
from adahi_lab.bench.fleet_load import FleetLoad
from adahi_lab.nodes.fleet_robot import FleetClock
from adahi_lab.peers import environments

INSTALLED = environments.folder("openpi_websocket")  # as it is before a test changes where it would be


def record(**changes: Any) -> dict[str, Any]:
    return {
        "steps": 100,
        "starved": 0,
        "requests": 4,
        "replies": 4,
        "rtt_ms": [1.0, 2.0],
        "plan_ages": [1, 3],
        "reasons": {},
        "bytes_up": 400,
        "bytes_down": 800,
        **changes,
    }


def test_figures_by_hand() -> None:
    late = record(
        starved=round(100 * STARVED_MOST) + 1, replies=0, rtt_ms=[], reasons={"deadline": 2, "busy": 1}
    )
    found = fleet_figures([record(), record(starved=1), late, record(steps=0)], 2.0)
    assert (found["robots"], found["served_in_time"]) == (4, 2)
    assert (found["periods"], found["starved_periods"]) == (300, 3)
    assert (found["requests"], found["replies"], found["replies_per_s"]) == (16, 12, 6.0)
    assert found["rtt_ms"]["p50"] == 1.5
    assert found["plan_age"]["mean"] == 2.0
    assert found["lost"] == {"deadline": 2, "busy": 1}
    assert (found["bytes_per_request"], found["bytes_per_reply"]) == (100.0, 3200 / 12)


def test_of_nothing_nothing_is_reported() -> None:
    found = fleet_figures([record(steps=0, requests=0, replies=0, rtt_ms=[], plan_ages=[])], 1.0)
    assert (found["served_in_time"], found["rtt_ms"], found["plan_age"]) == (0, None, None)


class Stepped:
    """In the place of a robot: when it stepped."""

    def __init__(self) -> None:
        self.at_s: list[float] = []

    def step(self, now_s: float) -> None:
        self.at_s.append(now_s)


def test_each_robot_steps_at_its_rate_and_phase() -> None:
    fleet: list[Any] = [Stepped() for _ in range(4)]
    clock = FleetClock(fleet, 10.0, 5.0)
    while clock.next_s < 5.999:
        clock.go_on(clock.next_s)
    for number, robot in enumerate(fleet):
        assert robot.at_s == pytest.approx([5.0 + number / 40 + step / 10 for step in range(10)])
    late = len(fleet[0].at_s)
    clock.go_on(7.0)  # steps that could not be made in time are made, not lost
    assert len(fleet[0].at_s) == late + 11
    assert FleetClock([], 10.0, 5.0).next_s == float("inf")


def test_a_server_as_openpi_has_it_serves_the_same_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    if not INSTALLED.is_dir():
        pytest.skip("not installed; 'python -m adahi_lab.peers.environments openpi_websocket' does")
    monkeypatch.setattr(environments, "environment", lambda name: INSTALLED)
    found = measure_fleet(FleetLoad(3, 10.0, 2.0, OPENPI, "ball/plans/target"))[OPENPI]
    assert found["robots"] == 3
    assert found["requests"] > 0
    assert found["bytes_per_request"] > 0
    assert set(found["lost"]) <= {"deadline", "superseded"}


def driven(times_ms: list[float | None], bytes_up: int) -> dict[str, Any]:
    """What a driver writes down; None for a call that failed."""
    calls = [{"ms": ms or 99.0, "compute_ms": 0.5, "ok": ms is not None} for ms in times_ms]
    return {"calls": calls, "bytes_up": bytes_up, "bytes_down": 60}


def test_turns_are_taken_together_and_each_warms_up() -> None:
    figures = call_figures([driven([50.0, 1.0, 2.0], 300), driven([70.0, None, 3.0], 600)], skipped=1)
    assert figures["rtt_ms"]["p50"] == 2.0
    assert figures["rtt_ms"]["max"] == 3.0
    assert (figures["calls"], figures["failed"]) == (6, 1)
    assert figures["bytes_up_per_call"] == 150.0
    assert figures["bytes_down_per_call"] == 20.0
    assert figures["bytes_per_call"] == 170.0
