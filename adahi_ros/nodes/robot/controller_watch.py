# SPDX-License-Identifier: Apache-2.0
"""Looks whether the controllers that take the commands are there, with our joints, full speed, our time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.core.texts import shortened
from adahi_ros.nodes.common.graph import publishers_of, subscriptions_of
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.robot.other_publishers import TRAJECTORY

UNKNOWN = "_NODE_NAME_UNKNOWN_"  # until DDS has discovered the subscription's node
STATE_TOPIC = "controller_state"
STATE = "control_msgs/msg/JointTrajectoryControllerState"
FULL_SPEED = 0.99  # share; below, a controller lags behind the curve, and jumps ahead at each message
AHEAD_S, BEHIND_S = 0.01, 0.02  # allowed of a controller's clock; a message in transit makes it seem behind
STATES = 50  # of these the one with the shortest transit counts, where the controller seems behind
MATCHED_S = 3.0  # until a controller that starts knows this node's publisher; earlier commands are lost
PARTICIPANT = 12  # leading bytes of a GID, which a process has in all
SILENT_S, SILENT_INTERVALS = 0.25, 5.0  # after so long without its state, a controller is gone
SILENT_LOOKS = 5  # with fewer, this process stood still, and the states wait
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
        on_left: called with a topic that must not be braked, because its controller has ended, is another one
            from now on, or has a fault; with whether the controller may still follow commands, and for how
            long it may miss them.
        opened: closes it.
    """

    def __init__(
        self,
        node: Node,
        joints: Mapping[str, Sequence[str]],
        measured: Iterable[str],
        on_state: Callable[[str, bool], None],
        on_left: Callable[[str, bool, float], None],
        opened: ExitStack,
    ) -> None:
        self._node, self._on_state, self._on_left = node, on_state, on_left
        self._measured = tuple(measured)
        self._joints = {topic: frozenset(names) for topic, names in joints.items()}
        self._active, self._said = False, ("", True)
        self._takes: dict[str, dict[bytes, str]] = {}  # the controller's subscriptions, by topic: their nodes
        self._there: dict[str, frozenset[bytes]] = {}  # all subscriptions then, of nodes with a known name
        self._faults: dict[str, str] = {}  # of the controllers' own states, by topic
        self._spoke: dict[
            str, tuple[float, float, int]
        ] = {}  # when, how long after the one before, looks since
        self._lost: set[str] = set()  # topics without a controller, or with a silent one
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
        state, received = f"{_controller(topic)}/{STATE_TOPIC}", partial(self._received, topic)
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
        if sent_ns and not self._node.get_parameter("use_sim_time").value:  # simulated time moves in steps
            ahead_s.append((sent_ns - now_ns) / NANOSECONDS)
            now_s = time.monotonic()
            self._spoke[topic] = now_s, now_s - self._spoke.get(topic, (now_s,))[0], 0
        else:
            ahead_s.clear()
        if ahead_s and (max(ahead_s) > AHEAD_S or (len(ahead_s) == STATES and max(ahead_s) < -BEHIND_S)):
            apart = f"{1e3 * abs(max(ahead_s)):.0f} ms {'ahead' if max(ahead_s) > 0.0 else 'behind'}"
            fault = fault or f"{_controller(topic)} has a clock that is {apart}; use chrony"
        changes = bool(fault) != bool(self._faults.get(topic))
        self._faults[topic] = fault
        if changes and self._active:
            self._on_left(topic, True, 0.0)  # at another speed or time, each braking message makes a jump
            self.compare_subscriptions()

    def begin(self) -> None:
        """Look from now on: the node is active."""
        self._active = True
        self.compare_subscriptions()

    def end(self) -> None:
        """Look no more: nothing is commanded."""
        self._active = False
        for known in (self._takes, self._there, self._lost):
            known.clear()
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
            self._lose(topic)
            return f"{controller} has ended", True
        if not found:
            if self._takes.pop(topic, None) is not None:
                self._on_left(topic, False, 0.0)
            return f"nothing subscribes to {topic}; start the controller", False
        if before is None and not takes and len(known) < len(found):
            return self._faults.get(topic, ""), True
        # One that was killed remains for DDS for a while. The name of one that comes may be known 3 s later,
        # but its process publishes its state, or that of the joints.
        came = (takes or found).keys() - there
        if takes and before and (nameless := found.keys() - known.keys() - there):
            came |= {gid for gid in nameless if gid[:PARTICIPANT] in self._participants(topic)}
        changed = came or (not takes and there - found.keys())
        self._takes[topic], self._there[topic] = takes, frozenset({*known, *came, *(there & found.keys())})
        if before is not None and self._silent(topic) and not changed:
            self._lose(topic)
            return f"{controller} is silent", True
        self._lost.discard(topic)
        if before is None or not changed:
            return self._faults.get(topic, ""), True
        self._on_left(topic, False, MATCHED_S)
        for of_former in (self._faults, self._ahead_s, self._spoke):
            of_former.pop(topic, None)
        self._scaled.discard(topic)
        text = f"{controller} has started" if takes else f"other programs subscribe to {topic} than before"
        return text, True

    def _lose(self, topic: str) -> None:
        """Leave a topic once."""
        if topic not in self._lost:
            self._lost.add(topic)
            self._on_left(topic, False, 0.0)

    def _silent(self, topic: str) -> bool:
        if topic not in self._spoke:
            return False
        spoke_s, interval_s, looks = self._spoke[topic]
        self._spoke[topic] = spoke_s, interval_s, looks + 1
        longest_s = max(SILENT_S, SILENT_INTERVALS * interval_s)
        return looks >= SILENT_LOOKS and time.monotonic() - spoke_s > longest_s

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
