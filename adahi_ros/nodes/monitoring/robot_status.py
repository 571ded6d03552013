# SPDX-License-Identifier: Apache-2.0
"""Collects the status messages of robots into figures to show. Callers pass times."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from adahi_ros.core.texts import printable
from adahi_ros.protocol.records import ON_COURSE, UNSAID, Reason, StepRecord
from adahi_ros.robot.session import VerifierState
from adahi_ros.safety.intervention import Intervention

if TYPE_CHECKING:
    from adahi_msgs.msg import LinkState, SafetyState
    from diagnostic_msgs.msg import DiagnosticStatus

Figures = Mapping[str, Any]
"""A robot's figures, as JSON has them."""
STATUS_TYPE = "adahi_msgs/msg/DraftStatus"
ROBOTS_MOST = 256
PERCENTILES = {"p50": 50, "p95": 95}
LEVELS = {b"\0": "OK", b"\1": "WARN", b"\2": "ERROR", b"\3": "STALE"}  # as numbered in DiagnosticStatus
LINK_FIGURES = (
    *("rtt_ms", "rtt_deviation_ms", "loss", "misses", "goodput_bytes_s"),
    *("requests", "replies", "windows_resent"),
)


class SeenRobot:
    """The messages received from one robot.

    Args:
        topic: of its `draft_status`, which identifies it.
        window_s: how long a step counts as recent.
    """

    def __init__(self, topic: str, window_s: float) -> None:
        self.topic = topic
        self.namespace = topic.rpartition("/")[0]
        self._window_s = window_s
        self._steps: deque[tuple[float, StepRecord]] = deque()  # with the time of arrival
        self._newest: dict[str, tuple[float, Any]] = {}  # message by kind, with the time of arrival

    def add_step(self, record: StepRecord, now_s: float) -> None:
        """Take in a control step; smaller counts than before mean that the node was activated again."""
        if self._steps and sum(record.reason_counts) < sum(self._steps[-1][1].reason_counts):
            self._steps.clear()
        self._steps.append((now_s, record))
        self._forget(now_s)
        self._newest["step"] = now_s, record

    def add(self, kind: str, message: LinkState | SafetyState | DiagnosticStatus, now_s: float) -> None:
        """Take in a LinkState, a SafetyState or a DiagnosticStatus; `kind` is link, safety or diagnostics."""
        self._newest[kind] = now_s, message

    @property
    def robot_id(self) -> str:
        """Name of the robot in its messages; empty before the first one."""
        for kind in ("step", "link", "safety"):
            if kind in self._newest:
                return str(self._newest[kind][1].robot_id)
        if "diagnostics" in self._newest:
            return str(self._newest["diagnostics"][1].hardware_id)
        return ""

    def figures(self, now_s: float) -> Figures:
        """Return the figures, fit for JSON: numbers that are not finite are None.

        `recent` covers the steps received in the last `window_s`, `since_activation` has the robot's counts.
        Ages are in seconds; the plan's age is in control steps. `plan` is None for a robot that drafts
        without plans.
        """
        self._forget(now_s)
        at_s, step = self._newest.get("step", (None, None))
        return {
            "topic": self.topic,
            "namespace": self.namespace or "/",
            "robot_id": self.robot_id,
            "age_s": None if at_s is None else now_s - at_s,
            "gate": None if step is None else step.gate,
            "deviation": None if step is None else _finite(step.deviation),
            "score": None if step is None else _finite(step.score),
            "threshold": None if step is None else _finite(step.threshold),
            "message": "" if step is None else step.message,
            "plan": None if step is None else _plan(step),
            "recent": self._recent(),
            "since_activation": self._since_activation(),
            "link": self._read_newest("link", now_s, _link),
            "safety": self._read_newest("safety", now_s, _safety),
            "diagnostics": self._read_newest("diagnostics", now_s, _diagnostics),
        }

    def _forget(self, now_s: float) -> None:
        while self._steps and self._steps[0][0] < now_s - self._window_s:
            self._steps.popleft()

    def _read_newest(
        self, kind: str, now_s: float, read: Callable[[Any], dict[str, object]]
    ) -> dict[str, object] | None:
        if kind not in self._newest:
            return None
        at_s, message = self._newest[kind]
        return {"age_s": now_s - at_s, **read(message)}

    def _recent(self) -> dict[str, object]:
        steps = [step for _, step in self._steps]
        verified = [step for step in steps if step.verified]
        coded = [step for step in verified if step.accepted]
        return {
            "window_s": self._window_s,
            "steps": len(steps),
            "rate_hz": self._rate_hz(),
            "transmission_rate": _rate(sum(step.transmitted for step in steps), len(steps)),
            "acceptance": _rate(sum(all(step.accepted) for step in coded), len(coded)),
            "fallbacks": _fallbacks(Counter(step.reason for step in steps)),
            "person": sum(step.by_person for step in steps),
            "held": sum(not step.action and not step.by_person for step in steps),
            "verify_ms": _percentiles([step.verify_ms for step in verified]),
            "total_ms": _percentiles([step.total_ms for step in steps]),
            "scores": [_finite(step.score) for step in steps],
        }

    def _rate_hz(self) -> float | None:
        """Return steps per second, including steps with a lost status message."""
        if len(self._steps) < 2:
            return None
        (first_s, first), (last_s, last) = self._steps[0], self._steps[-1]
        steps = sum(last.reason_counts) - sum(first.reason_counts)
        return steps / (last_s - first_s) if last_s > first_s else None

    def _since_activation(self) -> dict[str, object]:
        newest = self._newest.get("diagnostics")
        values = {} if newest is None else {pair.key: pair.value for pair in newest[1].values}
        figures: dict[str, object] = {
            name: _number(values.get(name)) for name in ("transmission_rate", "acceptance")
        }
        if "step" not in self._newest:
            return {"steps": None, "fallbacks": {}, "person": 0, **figures}
        counts = self._newest["step"][1].reason_counts
        reasons = dict(zip(Reason, counts, strict=False))
        person = int(reasons.get(Reason.PERSON, 0))
        return {"steps": sum(counts), "fallbacks": _fallbacks(reasons), "person": person, **figures}


class SeenRobots:
    """The robots among the topics of a domain. A robot that is gone stays in the list, and its age grows.

    Every published topic of type DraftStatus is a robot, whatever its name; the first `ROBOTS_MOST` are kept.

    Args:
        namespace: of the robots, including namespaces below it; empty for all.
        window_s: how long a step counts as recent.

    Attributes:
        robots: by topic.
        elsewhere: topics of robots in other namespaces.
    """

    def __init__(self, namespace: str, window_s: float) -> None:
        self._inside = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
        self._window_s = window_s
        self.robots: dict[str, SeenRobot] = {}
        self.elsewhere: set[str] = set()

    def find(self, topics: Mapping[str, Sequence[str]], published: Callable[[str], bool]) -> list[SeenRobot]:
        """Return the robots that are new.

        Args:
            topics: of the domain, with their types.
            published: whether a topic has a publisher.
        """
        found = []
        for topic, kinds in topics.items():
            if STATUS_TYPE not in kinds or topic in self.robots:
                continue
            if not topic.startswith(self._inside):
                self.elsewhere.add(topic)
            elif len(self.robots) < ROBOTS_MOST and published(topic):
                self.robots[topic] = SeenRobot(topic, self._window_s)
                found.append(self.robots[topic])
        return found

    def add_diagnostics(
        self, status: DiagnosticStatus, publishers: Callable[[str], set[str]], now_s: float
    ) -> None:
        """Take in a DiagnosticStatus of any node.

        It belongs to a robot if its node is in the robot's namespace, and publishes the robot's status. In a
        played bag the node differs; then the robot's name must match.

        Args:
            status: from `/diagnostics`.
            publishers: returns the full names of the nodes that publish a topic.
            now_s: when it arrived.
        """
        node = status.name.partition(":")[0]  # the rest is the node's task
        for robot in self.robots.values():
            if node.rpartition("/")[0] != robot.namespace:
                continue
            if node in publishers(robot.topic) or status.hardware_id == robot.robot_id:
                robot.add("diagnostics", status, now_s)

    def figures(self, now_s: float) -> list[Figures]:
        """Return `SeenRobot.figures` of each, by topic."""
        return [_printable(self.robots[topic].figures(now_s)) for topic in sorted(self.robots)]


def _printable(figures: Any) -> Any:
    """Return figures with printable texts: any publisher may have sent them."""
    if isinstance(figures, str):
        return printable(figures)
    if isinstance(figures, Mapping):
        return {printable(key): _printable(value) for key, value in figures.items()}
    return [_printable(each) for each in figures] if isinstance(figures, list) else figures


def _plan(step: StepRecord) -> dict[str, object] | None:
    if step.draft_action and not step.planned:  # it drafts
        return None
    correction = step.correction
    return {
        "proposer": step.proposer,
        "age": step.plan_age if step.planned else None,
        "left": step.plan_left,
        "expected_error": None if step.expected_error == UNSAID else _finite(step.expected_error),
        "correction": None if correction is None else _finite(correction),
        "requests_pending": step.requests_pending,
    }


def _link(message: LinkState) -> dict[str, object]:
    figures = {name: _finite(getattr(message, name)) for name in LINK_FIGURES}
    return {"verifier": _label(VerifierState, message.verifier), **figures}


def _safety(message: SafetyState) -> dict[str, object]:
    return {
        "enabled": message.enabled,
        "holding": message.holding,
        "message": message.message,
        "interventions": [_label(Intervention, kind) for kind in message.interventions],
        "counts": {_label(Intervention, kind): int(count) for kind, count in enumerate(message.counts)},
    }


def _diagnostics(message: DiagnosticStatus) -> dict[str, object]:
    return {
        "level": LEVELS.get(message.level, str(message.level)),
        "message": message.message,
        "values": {pair.key: pair.value for pair in message.values},
    }


def _label(kind: type[IntEnum], number: int) -> str:
    """Return a number's label for people; the number itself if it is unknown."""
    try:
        return _words(kind(number))
    except ValueError:
        return str(number)


def _words(member: IntEnum) -> str:
    return member.name.lower().replace("_", " ")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else _finite(float(text))
    except ValueError:
        return None


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _fallbacks(reasons: dict[Reason, int]) -> dict[str, int]:
    """Return the count of each reason that occurred."""
    return {
        _words(reason): reasons[reason]
        for reason in Reason
        if reason not in ON_COURSE and reasons.get(reason)
    }


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    found = np.percentile(values, list(PERCENTILES.values()))
    return dict(zip(PERCENTILES, map(float, found), strict=True))
