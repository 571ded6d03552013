"""What the robots of a domain say of themselves, gathered for `adahi top`.

Only listens, best effort: no robot waits for it, sends anything again for it, or keeps anything for it.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
import rclpy
from adahi_msgs.msg import DraftStatus, LinkState, SafetyState
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.utilities import try_shutdown

from adahi_ros.nodes.common.messages import from_status
from adahi_ros.wire.records import Reason, StepRecord

STATUS_TYPE = "adahi_msgs/msg/DraftStatus"
LISTENING = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
POLL_S = 0.1  # Ctrl-C waits for so long at most
LOOK_S = 0.5  # from one look for new robots to the next
PERCENTILES = {"p50": 50, "p95": 95}
LEVELS = {
    DiagnosticStatus.OK: "OK",
    DiagnosticStatus.WARN: "WARN",
    DiagnosticStatus.ERROR: "ERROR",
    DiagnosticStatus.STALE: "STALE",
}
LINK_FIGURES = (
    *("rtt_ms", "rtt_deviation_ms", "loss", "misses", "goodput_bytes_s"),
    *("questions", "answers", "windows_resent"),
)


def _labels(message: type, prefix: str) -> dict[int, str]:
    """Return what the numbers of a message's constants mean, for people."""
    names = (name for name in dir(message) if name.startswith(prefix))
    return {getattr(message, name): name.removeprefix(prefix).lower().replace("_", " ") for name in names}


VERIFIERS = _labels(LinkState, "VERIFIER_")
INTERVENTIONS = _labels(SafetyState, "INTERVENTION_")


class Robot:
    """What has been heard of one robot.

    Args:
        topic: of its `draft_status`, which is what it is known by.
        window_s: how long a step counts among the recent ones.
    """

    def __init__(self, topic: str, window_s: float) -> None:
        self.topic = topic
        self.namespace = topic.rpartition("/")[0]
        self._window_s = window_s
        self._steps: deque[tuple[float, StepRecord]] = deque()  # with the time of arrival
        self._newest: dict[str, tuple[float, Any]] = {}  # message by kind, with the same

    def add_step(self, record: StepRecord, now_s: float) -> None:
        """Take in a control step; counts that fall back tell that the node was activated anew."""
        if self._steps and sum(record.reason_counts) < sum(self._steps[-1][1].reason_counts):
            self._steps.clear()
        self._steps.append((now_s, record))
        self._forget(now_s)
        self._newest["step"] = now_s, record

    def add(self, kind: str, message: Any, now_s: float) -> None:
        """Take in a message; `kind` is link, safety or diagnostics."""
        self._newest[kind] = now_s, message

    @property
    def robot_id(self) -> str:
        """As the robot calls itself; empty before it has said so."""
        for kind in ("step", "link", "safety"):
            if kind in self._newest:
                return str(self._newest[kind][1].robot_id)
        if "diagnostics" in self._newest:
            return str(self._newest["diagnostics"][1].hardware_id)
        return ""

    def figures(self, now_s: float) -> dict[str, Any]:
        """Return what there is to show, fit for JSON: numbers that are not finite are None.

        `recent` is of the steps heard in the last `window_s`, `since_activation` as the robot counts.
        Ages are in seconds.
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
            "recent": self._recent(),
            "since_activation": self._since_activation(),
            "link": self._of("link", now_s, _link),
            "safety": self._of("safety", now_s, _safety),
            "diagnostics": self._of("diagnostics", now_s, _diagnostics),
        }

    def _forget(self, now_s: float) -> None:
        while self._steps and self._steps[0][0] < now_s - self._window_s:
            self._steps.popleft()

    def _of(self, kind: str, now_s: float, read: Any) -> dict[str, Any] | None:
        if kind not in self._newest:
            return None
        at_s, message = self._newest[kind]
        return {"age_s": now_s - at_s, **read(message)}

    def _recent(self) -> dict[str, Any]:
        steps = [step for _, step in self._steps]
        verified = [step for step in steps if step.verified]
        return {
            "window_s": self._window_s,
            "steps": len(steps),
            "rate_hz": self._rate_hz(),
            "transmission_rate": _share(sum(step.transmitted for step in steps), len(steps)),
            "acceptance": _share(sum(all(step.accepted) for step in verified), len(verified)),
            "fallbacks": _fallbacks(Counter(step.reason for step in steps)),
            "verify_ms": _percentiles([step.verify_ms for step in verified]),
            "total_ms": _percentiles([step.total_ms for step in steps]),
            "scores": [_finite(step.score) for step in steps],
        }

    def _rate_hz(self) -> float | None:
        """Return steps per second, those included whose status got lost on its way here."""
        if len(self._steps) < 2:
            return None
        (first_s, first), (last_s, last) = self._steps[0], self._steps[-1]
        steps = sum(last.reason_counts) - sum(first.reason_counts)
        return steps / (last_s - first_s) if last_s > first_s else None

    def _since_activation(self) -> dict[str, Any]:
        told = self._newest.get("diagnostics")
        values = {} if told is None else {pair.key: pair.value for pair in told[1].values}
        figures: dict[str, Any] = {
            name: _number(values.get(name)) for name in ("transmission_rate", "acceptance")
        }
        if "step" not in self._newest:
            return {"steps": None, "fallbacks": {}, **figures}
        counts = self._newest["step"][1].reason_counts
        reasons = dict(zip(Reason, counts, strict=False))
        return {"steps": sum(counts), "fallbacks": _fallbacks(reasons), **figures}


def _link(message: LinkState) -> dict[str, Any]:
    figures = {name: _finite(getattr(message, name)) for name in LINK_FIGURES}
    return {"verifier": VERIFIERS.get(message.verifier, str(message.verifier)), **figures}


def _safety(message: SafetyState) -> dict[str, Any]:
    return {
        "enabled": message.enabled,
        "holding": message.holding,
        "interventions": [INTERVENTIONS.get(kind, str(kind)) for kind in message.interventions],
        "counts": {
            INTERVENTIONS.get(kind, str(kind)): int(count) for kind, count in enumerate(message.counts)
        },
    }


def _diagnostics(message: DiagnosticStatus) -> dict[str, Any]:
    return {
        "level": LEVELS.get(message.level, str(message.level)),
        "message": message.message,
        "values": {pair.key: pair.value for pair in message.values},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else _finite(float(text))
    except ValueError:
        return None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _fallbacks(reasons: dict[Reason, int]) -> dict[str, int]:
    """Return how often each reason came that did come."""
    return {
        reason.name.lower().replace("_", " "): reasons[reason]
        for reason in Reason
        if reason is not Reason.NONE and reasons.get(reason)
    }


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    found = np.percentile(values, list(PERCENTILES.values()))
    return dict(zip(PERCENTILES, map(float, found), strict=True))


class Watcher:
    """Listens to every draft policy node of a domain. Use as a context manager.

    A robot is found by its topic of type DraftStatus, whatever that is called; its other topics are expected
    in the same namespace. One that has gone stays, and grows old.

    Args:
        namespace: of the robots to watch, those below it included; empty for all.
        domain: ROS domain; None for that of the environment.
        window_s: what counts as recent.
    """

    def __init__(self, namespace: str = "", domain: int | None = None, window_s: float = 5.0) -> None:
        self._inside = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
        self._window_s = window_s
        self._robots: dict[str, Robot] = {}
        self.elsewhere: set[str] = set()
        """Topics of robots that are not in the namespace."""
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.domain = self._context.get_domain_id()
        # Names that begin with an underscore are hidden from 'ros2 node list'.
        self._node = Node(
            f"_adahi_top_{os.getpid()}",
            context=self._context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, LISTENING)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._next_look_s = 0.0

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        try_shutdown(context=self._context)

    def listen(self, seconds: float) -> None:
        """Take in what comes in so many seconds, of robots that come meanwhile too."""
        end_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < end_s:
            if now_s >= self._next_look_s:
                self._look()
                self._next_look_s = now_s + LOOK_S
            self._executor.spin_once(timeout_sec=min(POLL_S, end_s - now_s))

    def find(self, deadline_s: float) -> bool:
        """Listen until there is a robot, for so long at most; return whether there is one."""
        end_s = time.monotonic() + deadline_s
        while not self._robots and (left_s := end_s - time.monotonic()) > 0:
            self.listen(min(POLL_S, left_s))
        return bool(self._robots)

    def figures(self) -> list[dict[str, Any]]:
        """Return `Robot.figures` of each, by topic."""
        now_s = time.monotonic()
        return [self._robots[topic].figures(now_s) for topic in sorted(self._robots)]

    def _look(self) -> None:
        for topic, kinds in self._node.get_topic_names_and_types():
            if STATUS_TYPE not in kinds or topic in self._robots:
                continue
            if not topic.startswith(self._inside):
                self.elsewhere.add(topic)
            elif self._node.count_publishers(topic):  # else there is only somebody who listens
                self._robots[topic] = self._listen_to(Robot(topic, self._window_s))

    def _listen_to(self, robot: Robot) -> Robot:
        def on_status(message: DraftStatus) -> None:
            robot.add_step(from_status(message), time.monotonic())

        def on(kind: str, message: Any) -> None:
            robot.add(kind, message, time.monotonic())

        subscribe = self._node.create_subscription
        subscribe(DraftStatus, robot.topic, on_status, LISTENING)
        subscribe(LinkState, f"{robot.namespace}/link_state", partial(on, "link"), LISTENING)
        subscribe(SafetyState, f"{robot.namespace}/safety_state", partial(on, "safety"), LISTENING)
        return robot

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for robot in self._robots.values():
                if status.name.rpartition("/")[0] != robot.namespace:
                    continue
                # By name where the node itself speaks; by identity where a bag is played.
                if status.name in self._publishers(robot) or status.hardware_id == robot.robot_id:
                    robot.add("diagnostics", status, time.monotonic())

    def _publishers(self, robot: Robot) -> set[str]:
        """Return the names of the nodes that publish a robot's status."""
        found = self._node.get_publishers_info_by_topic(robot.topic)
        return {f"{each.node_namespace.rstrip('/')}/{each.node_name}" for each in found}
