# SPDX-License-Identifier: Apache-2.0
"""Looks for others that command the arm, by messages or goals, or that publish the states of its joints."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from rclpy.node import Node

from adahi_ros.nodes.common.executors import sequence_of, with_info
from adahi_ros.nodes.common.graph import publishers_of
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.controller_goals import ControllerGoals
from adahi_ros.safety.holds import Event, Hold, Holds, State
from adahi_ros.safety.measured_twice import AGAIN_S, MeasuredTwice

LOOK_PERIOD_S = 0.25
TRAJECTORY = "/joint_trajectory"  # of a joint_trajectory_controller
OVER = {
    Event.COMMANDED_ALONE: "another program commanded the arm",
    Event.MEASURED_ONCE: "two programs measured a joint",
}
ALLOW = "end it, or allow it by safety.shared_command: true"


class OtherPublishers:
    """Raises a hold while another program commands the arm, by messages or a goal, or two measure a joint.

    A node that is not active may not command, so it looks for others only to end a hold.

    Args:
        node: that commands.
        ours: topics that only this node may publish while it is active, and what their publishers do.
        joints: topics of commanded joints that are measured, by joint.
        active: whether the node is active.
        holds: get the events.
        changed: called after each.
        on_goal: called with a command topic when a goal on its controller begins or ends.
        opened: closes it.
    """

    def __init__(
        self,
        node: Node,
        ours: Mapping[str, str],
        joints: Mapping[str, str],
        active: Callable[[], bool],
        holds: Holds,
        changed: Callable[[], None],
        on_goal: Callable[[str], None],
        opened: ExitStack,
    ) -> None:
        self._node = node
        self._ours = {node.resolve_topic_name(topic): what for topic, what in ours.items()}
        by_topic: dict[str, list[str]] = {}
        for joint, topic in joints.items():
            by_topic.setdefault(topic, []).append(joint)
        self._measured = {topic: MeasuredTwice(names) for topic, names in by_topic.items()}
        self._active, self._holds, self._changed = active, holds, changed
        self._texts: dict[Event, str] = {}
        self._since_s = time.monotonic()
        self._closed = False
        self._goals = ControllerGoals(node)

        def received(topic: str) -> None:
            if not self._closed:
                on_goal(topic)
            self.compare_publishers()

        for topic in self._ours:
            if topic.endswith(TRAJECTORY):
                controller = topic.removesuffix(TRAJECTORY)
                self._goals.watch(controller, partial(received, topic))
        opened.callback(self._goals.close)
        opened.callback(self._close)
        steady_timer(node, LOOK_PERIOD_S, self.compare_publishers, opened)

    def check(self) -> None:
        """Check that this node may become active.

        Raises:
            ValueError: another node has its name, or commands the arm; names it.
        """
        name, namespace = self._node.get_name(), self._node.get_namespace()
        if (count := self._node.get_node_names_and_namespaces().count((name, namespace))) > 1:
            raise ValueError(
                f"{count} nodes are named {self._node.get_fully_qualified_name()}; end the others, "
                "or give each a name and a namespace"
            )
        if text := self._commanded():
            raise ValueError(text)

    def watched(self, topic: str, called: Callable[[Any], None]) -> Callable[..., None]:
        """Return the callback of an observed topic that also counts who measures commanded joints.

        Args:
            topic: as the contract names it.
            called: the callback without that.
        """
        measured = self._measured.get(topic)
        if measured is None:
            return called

        def received(message: Any, information: Mapping[str, int]) -> None:
            sequence = sequence_of(information)
            if sequence is not None and measured.received(message.name, sequence, time.monotonic()):
                self.compare_publishers()
            called(message)

        counted: Callable[..., None] = with_info(received)
        return counted

    def _own(self) -> list[str]:
        return [publisher.topic_name for publisher in self._node.publishers]

    def _close(self) -> None:
        self._closed = True

    def glance(self) -> None:
        """Look if the number of publishers has changed; called at every command, so cheap."""
        if self._commanded():
            self.compare_publishers()

    def compare_publishers(self) -> None:
        """Compare the publishers with those at the last look; called several times a second."""
        if self._closed:  # the events executor queued a message before its subscription was destroyed
            return
        commanded = self._commanded()
        if not (self._active() or self._holds[Hold.SHARED] is State.LASTS):
            commanded = ""
        news = self._news(commanded, Event.COMMANDED_TWICE, Event.COMMANDED_ALONE)
        measured = self.measured_twice()
        if measured is not None:
            news |= self._news(measured, Event.MEASURED_TWICE, Event.MEASURED_ONCE)
        if news:
            self._changed()

    def _news(self, text: str, begins: Event, ends: Event) -> bool:
        if self._texts.get(begins) == text:
            return False
        self._texts[begins] = text
        self._holds.happen(begins if text else ends, text or OVER[ends])
        return True

    def _commanded(self) -> str:
        """Return who else publishes what only this node may; empty for no one."""
        own = self._own()
        for topic, what in self._ours.items():
            if self._node.count_publishers(topic) == own.count(topic):  # costs a tenth of the next question
                continue
            names = Counter(publishers_of(self._node, topic).values())  # another node may have our name
            names[self._node.get_fully_qualified_name()] -= own.count(topic)
            if others := sorted(names.elements()):
                return f"{', '.join(others)} {what} on {topic}; {ALLOW}"
        goal = self._goals.executing()
        return f"{goal}; {ALLOW}" if goal else ""

    def measured_twice(self) -> str | None:
        """Return the joints that two publishers measure, and these; empty for none, None if it may be so."""
        now_s, several = time.monotonic(), False
        for topic, measured in self._measured.items():
            resolved, publishers = self._node.resolve_topic_name(topic), {}
            if self._node.count_publishers(resolved) > 1:
                publishers, several = publishers_of(self._node, resolved), True
            if joints := measured.joints_measured_twice(publishers, now_s):
                who = ", ".join(sorted(publishers.values()))
                return f"{', '.join(joints)} on {resolved}, of {who}; end one of these"
        return None if several and now_s - self._since_s < AGAIN_S else ""
