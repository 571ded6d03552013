# SPDX-License-Identifier: Apache-2.0
"""Figures of robots as metrics of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adahi_ros.nodes.common.metrics_server import metric
from adahi_ros.nodes.monitoring.robot_status import LEVELS, Figures
from adahi_ros.robot.session import VerifierState

HEALTH = {level: number for number, level in enumerate(LEVELS.values())}
VERIFIER = {state.name.lower(): state.value for state in VerifierState}
NUMBERS = {**HEALTH, **VERIFIER}
METRICS = (
    ("age_seconds", "age_s", 1.0, "", "Time since the last control step"),
    ("health", "diagnostics.level", 1.0, "", f"By number: {HEALTH}"),
    ("verifier", "link.verifier", 1.0, "", f"State of the verifier, by number: {VERIFIER}"),
    ("steps_total", "since_activation.steps", 1.0, "", "Control steps since the activation"),
    ("fallbacks_total", "since_activation.fallbacks", 1.0, "reason", "Steps that fell back"),
    ("control_rate_hertz", "recent.rate_hz", 1.0, "", "Recent control steps per second"),
    ("sent_ratio", "recent.transmission_rate", 1.0, "", "Share of recent steps that sent a request"),
    ("kept_ratio", "recent.acceptance", 1.0, "", "Share of recent drafts that the target kept"),
    ("verify_seconds", "recent.verify_ms", 1e-3, "percentile", "Recent verifications"),
    ("step_seconds", "recent.total_ms", 1e-3, "percentile", "Recent whole steps"),
    ("plan_left_steps", "plan.left", 1.0, "", "Steps left in the plan"),
    ("requests_total", "link.requests", 1.0, "", "Requests since the activation"),
    ("replies_total", "link.replies", 1.0, "", "Requests with a reply in time, since the activation"),
    ("link_rtt_seconds", "link.rtt_ms", 1e-3, "", "Average round trip, without the target's compute"),
    ("link_loss_ratio", "link.loss", 1.0, "", "Average share of requests with a probable packet loss"),
    ("link_miss_ratio", "link.misses", 1.0, "", "Average share of requests without a reply by the deadline"),
    ("enabled", "safety.enabled", 1.0, "", "1 while the robot may move"),
    ("holding", "safety.holding", 1.0, "", "1 while the safety layer holds the robot"),
    ("interventions_total", "safety.counts", 1.0, "limit", "Interventions of the safety layer"),
)
"""Name, place in `Figures`, scale, label of its parts, and text. Names of counters end with `_total`."""


class RobotMetrics:
    """Makes metrics of the newest figures; any thread may collect them.

    Attributes:
        robots: figures of each, from `SeenRobot.figures`.
    """

    def __init__(self) -> None:
        self.robots: Sequence[Figures] = ()
        self._names: dict[str, str] = {}  # by topic, the first: a publisher may send any number of names

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of all robots, each labelled with its topic and name."""
        robots = {robot["topic"]: robot for robot in self.robots}  # two may look alike when printed
        for topic, robot in robots.items():
            self._names[topic] = self._names.get(topic) or robot["robot_id"]
        for name, place, scale, label, what in METRICS:
            rows = []
            for topic, robot in robots.items():
                found = _figure(robot, place)
                for part, value in found.items() if isinstance(found, Mapping) else [("", found)]:
                    value = NUMBERS.get(value) if isinstance(value, str) else value
                    labels = {"topic": topic, "robot": self._names[topic], **({label: part} if label else {})}
                    if value is not None:
                        rows.append((labels, scale * value))
            yield metric(f"adahi_robot_{name}", what, rows)


def _figure(robot: Figures, place: str) -> Any:
    """Return a figure; None where it, or what it is part of, is missing."""
    found: Any = robot
    for key in place.split("."):
        found = None if found is None else found[key]
    return found
