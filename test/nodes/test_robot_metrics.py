"""Figures of robots, as Prometheus reads them over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("prometheus_client")

from adahi_ros.nodes.common.metrics_server import MetricsServer
from adahi_ros.nodes.monitoring.robot_metrics import METRICS, RobotMetrics
from adahi_ros.nodes.monitoring.robot_status import SeenRobot
from adahi_ros.protocol.records import StepRecord
from test.nodes.test_metrics_server import at, samples
from test.nodes.test_robot_status import counts, diagnostics, link_state

Make = Callable[..., StepRecord]
Read = Callable[..., dict[tuple[str, ...], float]]


@pytest.fixture
def served() -> Iterator[tuple[RobotMetrics, Read]]:
    """The metrics, and what reads one of them: from the values of its labels to its value."""
    metrics = RobotMetrics()
    server = MetricsServer("--serve", "127.0.0.1", 0, metrics.collect)

    def read(name: str, *labels: str) -> dict[tuple[str, ...], float]:
        found = {key: value for key, value in samples(at(server)).items() if key[0] == f"adahi_robot_{name}"}
        return {
            tuple(dict(given)[label] for label in labels or ("topic",)): v for (_, given), v in found.items()
        }

    yield metrics, read
    server.close()


def safety_state(**changes: Any) -> Any:
    quiet = {"robot_id": "r1", "enabled": True, "holding": False, "message": "", "interventions": []}
    return SimpleNamespace(**{**quiet, **changes})


def a_robot(topic: str, make: Make, **changes: Any) -> SeenRobot:
    robot = SeenRobot(topic, window_s=5.0)
    for step in range(11):
        reasons = counts(step + 1, deadline=int(step > 5))
        robot.add_step(
            make(**{"robot_id": "r1", "reason_counts": reasons, "verify_ms": 4.0, **changes}), step / 10
        )
    return robot


def test_metrics_have_the_figures_in_seconds_and_without_what_is_unknown(
    served: tuple[RobotMetrics, Read], step_record: Make
) -> None:
    metrics, read = served
    robot = a_robot("/r1/draft_status", step_record, verified=True, transmitted=True, total_ms=8.0)
    robot.add("link", link_state(rtt_ms=12.0, requests=9), 1.0)
    robot.add("safety", safety_state(counts=[3, 0], holding=True), 1.0)
    robot.add("diagnostics", diagnostics("/r1/draft_policy", level=b"\1"), 1.0)
    metrics.robots = [robot.figures(1.5), SeenRobot("/r2/draft_status", 5.0).figures(1.5)]
    first = ("/r1/draft_status",)
    assert read("age_seconds", "topic", "robot") == {(*first, "r1"): pytest.approx(0.5)}
    assert read("steps_total") == {first: 11.0}
    assert read("fallbacks_total", "reason") == {("deadline",): 1.0}
    assert read("control_rate_hertz") == {first: pytest.approx(10.0)}
    assert read("sent_ratio") == {first: 1.0}
    assert read("verify_seconds", "percentile") == {
        ("p50",): pytest.approx(0.004),
        ("p95",): pytest.approx(0.004),
    }
    assert read("step_seconds", "percentile")["p95",] == pytest.approx(0.008)
    assert read("plan_left_steps") == {}  # it drafts
    assert read("link_rtt_seconds") == {first: pytest.approx(0.012)}
    assert read("requests_total") == {first: 9.0}
    assert read("holding") == {first: 1.0}
    assert read("interventions_total", "limit") == {("position",): 3.0, ("velocity",): 0.0}
    assert read("health") == {first: 1.0}  # WARN
    assert read("verifier") == {first: 1.0}  # ready


def test_every_metric_has_a_figure_of_a_robot_that_plans(
    served: tuple[RobotMetrics, Read], step_record: Make
) -> None:
    metrics, read = served
    planned = {"plan_age": 3, "plan_left": 5, "planned_action": (1.0,), "accepted": (True,)}
    robot = a_robot("/draft_status", step_record, verified=True, **planned)
    robot.add("link", link_state(), 1.0)
    robot.add("safety", safety_state(counts=[1]), 1.0)
    robot.add("diagnostics", diagnostics("/draft_policy"), 1.0)
    metrics.robots = [robot.figures(1.0)]
    assert [name for name, *_ in METRICS if not read(name)] == []


def test_a_robot_keeps_its_first_name_and_levels_are_known_ones(
    served: tuple[RobotMetrics, Read], step_record: Make
) -> None:
    """Any publisher may send any name: each would be a row for ever."""
    metrics, read = served
    robot = SeenRobot("/draft_status", 5.0)
    names = []
    for number in range(5):
        metrics.robots = [robot.figures(0.0), robot.figures(0.0)]  # two topics that look alike
        names += [robot for _, robot in read("age_seconds", "topic", "robot")]
        robot.add_step(step_record(robot_id=f"invented {number}"), 0.0)
    assert names == ["invented 0"] * 4
    robot.add("diagnostics", diagnostics("/draft_policy", level=b"\x7f"), 0.0)
    metrics.robots = [robot.figures(0.0)]
    assert read("health") == {}
