# SPDX-License-Identifier: Apache-2.0
"""Looks whether the controllers that take the commands are there, with our joints, full speed, our time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.core.texts import shortened
from adahi_ros.nodes.common.graph import publishers_of, subscriptions_of
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.robot.other_publishers import TRAJECTORY

UNKNOWN = "_NODE_NAME_UNKNOWN_"  # until DDS has discovered the subscription's node
STATE = "control_msgs/msg/JointTrajectoryControllerState"
FULL_SPEED = 0.99  # share; below, a controller lags behind the curve, and jumps ahead at each message
AHEAD_S, BEHIND_S = 0.01, 0.02  # allowed of a controller's clock; a message in transit makes it seem behind
STATES = 50  # of these the one with the shortest transit counts, where the controller seems behind
STANDS, STANDS_S = 1e-3, 0.2  # rad or m, and how long: an arm has come to rest
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


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
        on_stood: called with the topic of a controller that is paused, and the positions by joint where the
            arm has come to rest: it would go on with its curve when its speed comes back.
        acknowledged: whether all subscriptions of a topic take the commands in time; one that was killed does
            not, and remains for DDS for a while.
        on_left: called with a topic that must not be braked, because its controller has ended, is another one
            from now on, or has a fault; and with whether the controller may still follow commands.
        opened: closes it.
    """

    def __init__(
        self,
        node: Node,
        joints: Mapping[str, Sequence[str]],
        measured: Iterable[str],
        on_state: Callable[[str, bool], None],
        on_left: Callable[[str, bool], None],
        on_stood: Callable[[str, Mapping[str, float]], None],
        acknowledged: Callable[[str], bool],
        opened: ExitStack,
    ) -> None:
        self._node, self._on_state, self._on_left = node, on_state, on_left
        self._on_stood, self._acknowledged = on_stood, acknowledged
        self._measured = tuple(measured)
        self._joints = {topic: frozenset(names) for topic, names in joints.items()}
        self._active, self._said = False, ("", True)
        self._takes: dict[str, dict[bytes, str]] = {}  # the controller's subscriptions, by topic: their nodes
        self._there: dict[str, frozenset[bytes]] = {}  # all subscriptions then, of nodes with a known name
        self._faults: dict[str, str] = {}  # of the controllers' own states, by topic
        self._paused: dict[str, tuple[float, list[float]]] = {}  # since when, and where, the arm stands
        self._scaled: set[str] = set()  # topics with a controller that has published a scaling of speeds
        self._ahead_s: dict[str, deque[float]] = {}  # how far its states' stamps were ahead of our clock
        for topic in joints:
            if topic.endswith(TRAJECTORY) and _controller(topic):
                self._watch_state(topic, opened)
        opened.callback(self.end)

    def _watch_state(self, topic: str, opened: ExitStack) -> None:
        try:
            kind = message_type(STATE)
        except ParameterError:  # without control_msgs the following error says it later
            return
        state, received = f"{_controller(topic)}/controller_state", partial(self._received, topic)
        subscription = self._node.create_subscription(kind, state, received, NEWEST)
        opened.callback(self._node.destroy_subscription, subscription)

    def _received(self, topic: str, message: Any) -> None:
        missing = sorted(self._joints[topic].difference(message.joint_names))
        has = f"{', '.join(missing)}; it has {shortened(', '.join(message.joint_names))}"
        fault = f"{_controller(topic)} has no joint {has}" if missing else ""
        scaling = getattr(message, "speed_scaling_factor", 0.0)
        if scaling > 0.0:  # older controllers leave it at 0
            self._scaled.add(topic)
        if topic in self._scaled and not scaling >= FULL_SPEED:  # true of NaN
            fault = fault or f"{_controller(topic)} runs at {scaling:.0%} of its speed, must be 100 %"
        ahead_s = self._ahead_s.setdefault(topic, deque(maxlen=STATES))
        sent_ns, now_ns = stamp_ns(message.header.stamp), self._node.get_clock().now().nanoseconds
        now_s = time.monotonic()
        if sent_ns and not self._node.get_parameter("use_sim_time").value:  # simulated time moves in steps
            ahead_s.append((sent_ns - now_ns) / NANOSECONDS)
        else:
            ahead_s.clear()
        if ahead_s and (max(ahead_s) > AHEAD_S or (len(ahead_s) == STATES and max(ahead_s) < -BEHIND_S)):
            apart = f"{1e3 * abs(max(ahead_s)):.0f} ms {'ahead' if max(ahead_s) > 0.0 else 'behind'}"
            fault = fault or f"{_controller(topic)} has a clock that is {apart}; use chrony"
        changes = bool(fault) != bool(self._faults.get(topic))
        self._faults[topic] = fault
        if changes and self._active:
            self._on_left(topic, True)  # at another speed or time, each braking message makes a jump
            self.compare_subscriptions()
            self._paused[topic] = now_s, []
        if topic in self._paused:
            self._pause(topic, message, now_s)

    def _pause(self, topic: str, message: Any, now_s: float) -> None:
        at, (since_s, there) = list(message.feedback.positions), self._paused[topic]
        if message.speed_scaling_factor != 0.0 or len(at) != len(message.joint_names):
            del self._paused[topic]
        elif len(at) != len(there) or not np.allclose(at, there, rtol=0.0, atol=STANDS):
            self._paused[topic] = now_s, at
        elif now_s - since_s >= STANDS_S:
            del self._paused[topic]
            self._on_stood(topic, dict(zip(message.joint_names, at, strict=True)))

    def begin(self) -> None:
        """Look from now on: the node is active."""
        self._active = True
        self.compare_subscriptions()

    def end(self) -> None:
        """Look no more: nothing is commanded."""
        self._active = False
        self._takes.clear()
        self._there.clear()
        self._say("", True)

    def compare_subscriptions(self) -> None:
        """Compare the subscriptions with those at the last look; called every period."""
        if self._active:
            faults = [self._fault(topic) for topic in self._joints]
            self._say(*max(faults, key=lambda each: (bool(each[0]), each[1]), default=("", True)))

    def unnamed(self) -> list[str]:
        """Return the topics that no node takes that they are named after."""
        return [topic for topic, takes in self._takes.items() if _controller(topic) not in takes.values()]

    def _say(self, fault: str, known: bool) -> None:
        if self._said != (fault, known):
            self._said = fault, known
            self._on_state(fault, known)

    def _fault(self, topic: str) -> tuple[str, bool]:
        found, before = subscriptions_of(self._node, topic), self._takes.get(topic)
        known = {gid: name for gid, name in found.items() if UNKNOWN not in name}
        takes, there = self._taking(topic, known, before or {}), self._there.get(topic, frozenset())
        controller = next(iter((takes or before or {}).values()), _controller(topic))
        if before and not takes:
            self._on_left(topic, False)
            return f"{controller} has ended", True
        if not found:
            if self._takes.pop(topic, None) is not None:
                self._on_left(topic, False)
            return f"nothing subscribes to {topic}; start the controller", False
        if before is None and not takes and len(known) < len(found):
            return self._faults.get(topic, ""), True
        # One that was killed remains for DDS for a while. The name of one that comes may be known 3 s later.
        nameless = found.keys() - known.keys() - there
        replaced = bool(before and nameless) and not self._acknowledged(topic)
        changed = replaced or bool((takes or found).keys() - there or (not takes and there - found.keys()))
        self._takes[topic] = takes
        self._there[topic] = frozenset(known if takes and not replaced else found) | (there & found.keys())
        if before is None or not changed:
            return self._faults.get(topic, ""), True
        for told in (self._faults, self._ahead_s):
            told.pop(topic, None)
        self._scaled.discard(topic)
        self._on_left(topic, False)
        return (
            f"{controller} has started" if takes else f"other programs subscribe to {topic} than before",
            True,
        )

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
