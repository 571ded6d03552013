# SPDX-License-Identifier: Apache-2.0
"""Collects the status of all robots of a domain for `adahi watch`.

It subscribes with best effort, so that robots neither wait nor resend for it.
"""

from __future__ import annotations

import time
from functools import partial

from adahi_msgs.msg import DraftStatus, LinkState, SafetyState
from diagnostic_msgs.msg import DiagnosticArray

from adahi_ros.bags.rerun_recording import RerunRecording
from adahi_ros.nodes.common.graph import publishers_of
from adahi_ros.nodes.common.listener import POLL_S, Listener
from adahi_ros.nodes.common.messages import from_status
from adahi_ros.nodes.common.qos import LISTENING, message_type
from adahi_ros.nodes.monitoring.robot_status import Figures, SeenRobot, SeenRobots

LOOK_S = 0.5  # between searches for new robots
TOPICS_MOST = 256


class Watcher(Listener):
    """Subscribes to every draft policy node of a domain. Use as a context manager.

    `SeenRobots` finds the robots; their other topics are expected in the same namespace.

    Args:
        namespace: of the robots, including namespaces below it; empty for all.
        domain: ROS domain; None for that of the environment.
        window_s: how long a step counts as recent.
    """

    def __init__(self, namespace: str = "", domain: int | None = None, window_s: float = 5.0) -> None:
        super().__init__("top", domain)
        self._fleet = SeenRobots(namespace, window_s)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, LISTENING)
        self._next_look_s = 0.0
        self._recorded: set[str] = set()

    def listen(self, seconds: float) -> None:
        """Receive messages for a time, also from robots that appear meanwhile."""
        end_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < end_s:
            if now_s >= self._next_look_s:
                self._find_robots()
                self._next_look_s = now_s + LOOK_S
            self.serve(end_s - now_s)

    def find(self, deadline_s: float) -> bool:
        """Wait for a robot, at most `deadline_s`; return whether there is one."""
        end_s = time.monotonic() + deadline_s
        while not self._fleet.robots and (left_s := end_s - time.monotonic()) > 0:
            self.listen(min(POLL_S, left_s))
        return bool(self._fleet.robots)

    def record(self, recording: RerunRecording) -> None:
        """Subscribe to topics that a recording shows and that are new."""
        for topic, (kind, *_) in self.node.get_topic_names_and_types():
            wanted = topic not in self._recorded and recording.shows(topic, kind)
            if not wanted or len(self._recorded) == TOPICS_MOST:
                continue
            self._recorded.add(topic)

            def on_message(message: object, topic: str = topic) -> None:
                recording.add(topic, message, time.time_ns())

            self.node.create_subscription(message_type(kind), topic, on_message, LISTENING)

    @property
    def elsewhere(self) -> set[str]:
        """Topics of robots in other namespaces."""
        return self._fleet.elsewhere

    def figures(self) -> list[Figures]:
        """Return `SeenRobot.figures` of each, by topic."""
        return self._fleet.figures(time.monotonic())

    def _find_robots(self) -> None:
        topics = dict(self.node.get_topic_names_and_types())
        for robot in self._fleet.find(topics, lambda topic: self.node.count_publishers(topic) > 0):
            self._listen_to(robot)

    def _listen_to(self, robot: SeenRobot) -> None:
        def on_status(message: DraftStatus) -> None:
            robot.add_step(from_status(message), time.monotonic())

        def on(kind: str, message: object) -> None:
            robot.add(kind, message, time.monotonic())

        subscribe = self.node.create_subscription
        subscribe(DraftStatus, robot.topic, on_status, LISTENING)
        subscribe(LinkState, f"{robot.namespace}/link_state", partial(on, "link"), LISTENING)
        subscribe(SafetyState, f"{robot.namespace}/safety_state", partial(on, "safety"), LISTENING)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self._fleet.add_diagnostics(status, self._publishers, time.monotonic())

    def _publishers(self, topic: str) -> set[str]:
        """Return the names of the nodes that publish a topic."""
        return set(publishers_of(self.node, topic).values())
