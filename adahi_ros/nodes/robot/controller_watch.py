# SPDX-License-Identifier: Apache-2.0
"""Looks whether the controllers that take the commands are there, with our joints, full speed, our time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.nodes.common.graph import UNKNOWN, publishers_of, subscriptions_of
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.robot.command_sinks import MATCHED_S
from adahi_ros.nodes.robot.other_publishers import TRAJECTORY
from adahi_ros.safety.controller_report import ControllerReport

STATE_TOPIC = "controller_state"
STATE = "control_msgs/msg/JointTrajectoryControllerState"
PARTICIPANT = 12  # leading bytes of a GID, which a process has in all
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


@dataclass
class _Taken:
    """By whom a topic is taken.

    Attributes:
        report: of the controller.
        by: the controller's subscriptions, and their nodes; None before one was seen.
        there: all subscriptions then, of nodes with a known name.
        lost: its controller is gone or silent.
    """

    report: ControllerReport
    by: dict[bytes, str] | None = None
    there: frozenset[bytes] = frozenset()
    lost: bool = False


class ControllerWatch:
    """Calls back whenever a controller ends, returns or has a fault, while commands may be sent.

    A controller of ros2_control is the node NAME that subscribes to NAME/joint_trajectory or NAME/commands.
    Where the topic has another name, it is the node that also publishes the joints' state; else each
    subscription that comes or goes may be the controller's.

    Args:
        node: that commands.
        joints: what each topic commands, by its resolved name.
        measured: resolved topics of the joints' state.
        on_state: called with a text for people, empty where all is well, and whether it is a fault: else
            nothing is known but that no one takes the commands yet.
        on_left: called with a topic that must not be braked, because its controller has ended, is another one
            from now on, or has a fault; with whether the controller may still follow commands, and for how
            long it may miss them.
        on_followed: called with a topic, and the stamp of the message that its controller says it follows.
        opened: closes it.
    """

    def __init__(
        self,
        node: Node,
        joints: Mapping[str, Sequence[str]],
        measured: Iterable[str],
        on_state: Callable[[str, bool], None],
        on_left: Callable[[str, bool, float], None],
        on_followed: Callable[[str, int], None],
        opened: ExitStack,
    ) -> None:
        self._node, self._on_state, self._on_left, self._on_followed = node, on_state, on_left, on_followed
        self._measured = tuple(measured)
        self._active, self._said = False, ("", True)
        self.receives = True
        """Whether states are received; not while the node closes, where silence means nothing."""
        self.moved = False
        """Whether commands have moved the arm since the activation; before, programs are discovered late."""
        self._taken = {topic: _Taken(ControllerReport(_controller(topic), joints[topic])) for topic in joints}
        for topic in joints:
            if topic.endswith(TRAJECTORY) and _controller(topic):
                self._watch_state(topic, opened)
        opened.callback(self.end)

    def _watch_state(self, topic: str, opened: ExitStack) -> None:
        try:
            kind = message_type(STATE)
        except ParameterError:  # without control_msgs the following error says it later
            return
        state, received = f"{_controller(topic)}/{STATE_TOPIC}", partial(self._received, topic)
        subscription = self._node.create_subscription(kind, state, received, NEWEST)
        opened.callback(self._node.destroy_subscription, subscription)

    def _received(self, topic: str, message: Any) -> None:
        report, sent_ns = self._taken[topic].report, stamp_ns(message.header.stamp)
        self._on_followed(topic, sent_ns - stamp_ns(message.reference.time_from_start))
        comparable = sent_ns and not self._node.get_parameter("use_sim_time").value  # which moves in steps
        ahead_ns = sent_ns - self._node.get_clock().now().nanoseconds
        before, scaling = report.fault, getattr(message, "speed_scaling_factor", 0.0)
        ahead_s = ahead_ns / NANOSECONDS if comparable else None
        report.take(message.joint_names, scaling, ahead_s, time.monotonic())
        if bool(report.fault) != bool(before) and self._active:
            self._on_left(topic, True, 0.0)  # at another speed or time, each braking message makes a jump
            self.compare_subscriptions()

    def begin(self) -> None:
        """Look from now on: the node is active."""
        self._active, self.moved = True, False
        self._taken = {topic: _Taken(each.report.afresh()) for topic, each in self._taken.items()}
        self.compare_subscriptions()

    def end(self) -> None:
        """Look no more: nothing is commanded."""
        self._active = False
        self._say("", True)

    def compare_subscriptions(self) -> None:
        """Compare the subscriptions with those at the last look; called every period."""
        if self._active:
            faults = [self._fault(topic) for topic in self._taken]
            self._say(*max(faults, key=lambda each: (bool(each[0]), each[1]), default=("", True)))

    def unnamed(self) -> list[str]:
        """Return the topics that no node takes that they are named after."""
        there = {topic: each.by for topic, each in self._taken.items() if each.by is not None}
        return [topic for topic, by in there.items() if _controller(topic) not in by.values()]

    def _say(self, fault: str, known: bool) -> None:
        if self._said != (fault, known):
            self._said = fault, known
            self._on_state(fault, known)

    def _fault(self, topic: str) -> tuple[str, bool]:
        taken, found = self._taken[topic], subscriptions_of(self._node, topic)
        before = taken.by
        known = {gid: name for gid, name in found.items() if UNKNOWN not in name}
        takes = self._taking(topic, known, before or {})
        controller = next(iter((takes or before or {}).values()), _controller(topic))
        if before and not takes:
            self._lose(topic)
            return f"{controller} has ended", True
        if not found:
            if before is not None:
                taken.by = None
                self._on_left(topic, False, 0.0)
            return f"nothing subscribes to {topic}; start the controller", False
        if before is None and not takes and len(known) < len(found):
            return taken.report.fault, True
        # One that was killed remains for DDS for a while. The name of one that comes may be known 3 s later,
        # but its process publishes its state, or that of the joints.
        there = taken.there
        came = (takes or found).keys() - there
        if takes and before and (nameless := found.keys() - known.keys() - there):
            came |= {gid for gid in nameless if gid[:PARTICIPANT] in self._participants(topic)}
        changed = came or (not takes and there - found.keys())
        taken.by, taken.there = takes, frozenset({*known, *came, *(there & found.keys())})
        silent = self.receives and before is not None and taken.report.silent(time.monotonic())
        if silent and not changed:
            self._lose(topic)
            return f"{controller} is silent", True
        taken.lost = False
        if before is None or not changed:
            return taken.report.fault, True
        self._on_left(topic, not takes, MATCHED_S)  # an unknown controller may still follow velocities
        taken.report = taken.report.afresh()
        if not self.moved:
            return "", True
        text = f"{controller} has started" if takes else f"other programs subscribe to {topic} than before"
        return text, True

    def _lose(self, topic: str) -> None:
        """Leave a topic once."""
        if not self._taken[topic].lost:
            self._taken[topic].lost = True
            self._on_left(topic, False, 0.0)

    def _participants(self, topic: str) -> set[bytes]:
        """Return the processes that publish the state of a topic's controller, or of the joints."""
        published = f"{_controller(topic)}/{STATE_TOPIC}", *self._measured
        return {gid[:PARTICIPANT] for each in published for gid in publishers_of(self._node, each)}

    def _taking(
        self, topic: str, found: Mapping[bytes, str], before: Mapping[bytes, str]
    ) -> dict[bytes, str]:
        """Return the subscriptions of the topic's controller, as far as it is known; no recorders."""
        names = {_controller(topic), *before.values()}
        if names.isdisjoint(found.values()):
            names = {name for each in self._measured for name in publishers_of(self._node, each).values()}
        return {gid: name for gid, name in found.items() if name in names and UNKNOWN not in name}


def _controller(topic: str) -> str:
    """Return the full name of the controller that a topic belongs to."""
    return topic.rpartition("/")[0]
