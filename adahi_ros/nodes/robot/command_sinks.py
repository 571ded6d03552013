# SPDX-License-Identifier: Apache-2.0
"""Outputs of commands: a topic or a ROS action for each sink."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol

import numpy as np
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.commanded import Commanded, check_topics_apart
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.sinks import SINKS, message_sink
from adahi_ros.contract.sinks.interface import ActionSink, Command, MessageSink
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.common.graph import subscriptions_of, takers
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos, message_type, new_message
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.safety.followed_commands import FollowedCommands

LONGEST_MATCH_S = 1.0
REPEATED_S = 1.0  # a last velocity of 0 is repeated for this time: with best effort a link may lose it
MATCHED_S = 3.0  # until the other end knows this publisher; after a kill and a restart it takes so long
LEASE_S = 20.0  # a program that hangs is gone for DDS by then; another one only acknowledges slowly
FAR_END_S = 0.05  # until the other end of a new connection has it too; the first command would be lost
HEARD = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LAST_SENT = 256  # commands; this node receives its own ones, too


class OpenSink(Protocol):
    """Takes one sink's part of every command."""

    holds_by_itself: bool
    """After `hold` it needs no commands that brake."""

    @property
    def fault(self) -> str:
        """Reason why it cannot stop the robot; empty if it can."""

    def send(self, command: np.ndarray, stamp_ns: int, curve: Curve | None = None) -> None:
        """Send a command.

        Args:
            command: (D,).
            stamp_ns: of the observation that it belongs to, 0 for none; with a curve, of the curve's begin.
            curve: see `Command`.
        """

    def hold(self) -> None:
        """Stop motions that continue without commands: the robot is held."""


class TopicSink:
    """Publishes each command with the current time as its stamp, while it is open.

    To know who has to stop the robot, it subscribes to velocities and efforts, too.

    `DraftStatus` names the observation. Only in lockstep do commands have the observation's stamp.

    Args:
        node: gets the publisher.
        topic: relative, or absolute.
        what: the commanded joints and field.
        messages: makes the messages.
        period_s: control period.
        opened: closes it.
        lockstep: commands carry the stamp of their observation.

    Attributes:
        topic: as given.
        drives: this node's last velocities were not 0, and no other program has moved the robot since.
        theirs: another program has moved it since this node did, or may have.
    """

    drives, theirs = False, True
    holds_by_itself = False
    fault = ""

    def __init__(
        self,
        node: LifecycleNode,
        topic: str,
        what: Commanded,
        messages: MessageSink,
        period_s: float,
        opened: ExitStack,
        lockstep: bool = False,
    ) -> None:
        self._node, self.topic = node, topic
        self._clock = node.get_clock()
        self._lockstep = lockstep
        self._what = what
        self._messages = messages
        self._period_s = period_s
        self._kind = message_type(messages.kind)
        self._flows = what.field != "positions" and not lockstep  # a controller goes on with the last one
        self._out: Any = None
        self._heard: Any = None
        self._sent: deque[bytes] = deque(maxlen=LAST_SENT)  # commands that were not 0, until they come back
        self._velocities = self._flows and what.field == "velocities"  # efforts of 0 may let an arm fall
        self._zero_s: float | None = None  # from when on a last velocity or effort of 0 is repeated
        self._moved_s = -math.inf  # when another program moved the robot
        self._owed = self._left = False  # the 0 is for a new subscription; another's goal may be executed
        self._log = ThrottledLog(node)
        self._matched = self._seen = 0  # subscriptions at the last command, and at the last look
        self._there: set[bytes] = set()  # subscriptions of other nodes then
        self._unacked_s = math.inf  # since when not all is acknowledged
        self._new_s = -math.inf  # when the first one was new, or this publisher was
        self.followed = FollowedCommands()
        """Of the commands since then."""
        opened.callback(self.close)

    def open(self) -> None:
        """Make the publisher, and wait until there are subscriptions and all match, for a second at most.

        A simulator in lockstep may subscribe later: it waits for the commands. It is not a lifecycle
        publisher: a robot that is deactivated in motion still has to stop. It exists only while commands may
        come, because a publisher on this topic keeps other nodes from being active.

        Raises:
            ValueError: this node may not subscribe to what is commanded.
        """
        if self._out is not None:
            return
        out = self._node.create_publisher(
            self._kind,
            self.topic,
            command_qos(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        if self._flows:
            try:
                self._heard = self._node.create_subscription(self._kind, self.topic, self._received, HEARD)
            except RuntimeError:
                self._node.destroy_publisher(out)
                text = f"{out.topic_name}: cannot be subscribed to; allow it in the SROS 2 policy"
                raise ValueError(text) from None
        self._out = out
        end_s = time.monotonic() + LONGEST_MATCH_S
        count = partial(self._node.count_subscribers, out.topic_name)
        while count() <= self._flows and not self._lockstep and time.monotonic() < end_s:
            time.sleep(FAR_END_S)
        if wanted := count():
            while (matched := out.get_subscription_count()) < wanted and time.monotonic() < end_s:
                time.sleep(FAR_END_S)
            if matched < wanted:
                self._node.get_logger().warning(
                    f"{out.topic_name}: {matched} of {wanted} subscriptions match; compare their QoS "
                    "by 'ros2 topic info --verbose'"
                )
            time.sleep(FAR_END_S)
        self._seen = 0
        self.followed.clear()

    def _received(self, message: Any) -> None:
        """Note who commanded a motion last: it has to stop it, too."""
        if self._heard is None:  # the events executor queued it before the subscription was destroyed
            return
        try:
            action = self._messages.action(message, self._what.names, self._what.field)
        except ValueError:  # this node sends no such message
            action = np.full(1, np.nan)
        own = next((sent for sent in self._sent if action.tobytes() == sent), None)
        if own is not None:
            self._sent.remove(own)  # each comes back once
        elif action.any():
            now_s = self._moved_s = time.monotonic()
            repeating = self._zero_s is not None and now_s < self._zero_s + REPEATED_S
            self.drives, self.theirs = False, True
            self._zero_s = now_s + REPEATED_S if repeating and self._owed else None

    def count_subscriptions(self) -> bool:
        """Note, and return, whether there are new subscriptions; called every period."""
        count = 0 if self._out is None else self._out.get_subscription_count()
        new = count > self._seen
        if self._flows and self._out is not None:
            there, before = subscriptions_of(self._node, self._out.topic_name).keys(), self._there
            self._there = set(there)
            if there - before and not self.drives:  # a base that comes back may still move, by whomever
                now_s = time.monotonic()
                if self._velocities and not self._left:
                    self._owed, self._zero_s = True, max(now_s, self._moved_s + REPEATED_S)
                elif self._zero_s is not None:
                    self._zero_s = now_s
        if new:
            self.followed.clear()
            self._unacked_s = math.inf
            if not self._seen:  # later ones may be recorders, or are controllers that `ControllerWatch` names
                self._new_s = time.monotonic()
        self._seen = count
        return new

    def close(self) -> None:
        """End the publisher; before that, for a second at most, repeat and wait for a last 0."""
        if self._out is not None:
            if self.drives:
                self._stop()
            begin_s = time.monotonic()
            while (self._zero_s or math.inf) <= begin_s and time.monotonic() < begin_s + REPEATED_S:
                if self._reliable and self._out.wait_for_all_acked(Duration()):
                    break
                self._stop()  # DDS by itself sends a lost one again after seconds
                time.sleep(FAR_END_S)
            self._node.destroy_publisher(self._out)
            if self._heard is not None:
                self._node.destroy_subscription(self._heard)
            self._out, self._heard, self._there, self._matched, self._seen = None, None, set(), 0, 0
            self.drives, self.theirs, self._zero_s, self._moved_s = False, True, None, -math.inf
            self._left, self._owed, self._unacked_s = False, False, math.inf
            self._sent.clear()

    def leave(self, stops: bool, theirs: bool = False) -> None:
        """Send no more motion: the controller has ended, is another, or has another's goal: it is `theirs`.

        `stops` sends velocities or efforts of 0 first, again and again; nothing changes where it is theirs.
        """
        if self._out is None or (stops and self.theirs):  # a 0 that is owed to a new subscription stays
            return
        self._zero_s = None
        if stops and self._what.field != "positions":
            self._stop()
        if theirs:
            self.drives, self.theirs, self._left, self._zero_s = False, True, True, None

    def repeat_zero(self) -> None:
        """Send a last velocity or effort of 0 again, for a second at least and until it has arrived."""
        since_s = math.inf if self._out is None else self._zero_s or math.inf
        if (now_s := time.monotonic()) < since_s:
            return
        if now_s < since_s + REPEATED_S or not self._out.wait_for_all_acked(Duration()):
            self._stop()

    @property
    def _reliable(self) -> bool:
        """Whether every subscription acknowledges."""
        found = takers(self._node, self._out.topic_name)
        return all(each.qos_profile.reliability == ReliabilityPolicy.RELIABLE for each in found)

    def _stop(self) -> None:
        self.send(np.zeros(len(self._what.names)), 0)

    def reaches(self) -> bool:
        """Return whether commands reach all present subscriptions.

        Until then a controller may miss commands, and would catch up with all of them at once. One that hangs
        is gone for DDS some seconds later. One with best effort, as those of ros2_control, acknowledges
        nothing: it says itself which curves it follows, or has time to know this publisher.
        """
        out = self._out
        if out is None or not self.catches_up:
            return True
        self.count_subscriptions()
        if not 0 < self._seen <= self._matched:
            return False
        if self.followed.known:
            return True
        now_s = time.monotonic()
        self._unacked_s = math.inf if out.wait_for_all_acked(Duration()) else min(self._unacked_s, now_s)
        if now_s - LEASE_S < self._unacked_s < math.inf:
            text = f"waits: not every subscription of {out.topic_name} has acknowledged a command yet"
            self._log.warning("reaches", text)
            return False
        if now_s > self._new_s + MATCHED_S:
            return True
        return self._reliable

    @property
    def catches_up(self) -> bool:
        """Whether a controller that misses commands is then asked for their distance at once."""
        return self._what.field == "positions" and not self._lockstep

    @property
    def interpolated(self) -> bool:
        """Whether a controller interpolates its commands."""
        return self._messages.kind == JointTrajectorySink.kind and self.catches_up

    def send(self, command: np.ndarray, stamp_ns: int, curve: Curve | None = None) -> None:
        what, messages = self._what, self._messages
        curve = curve if self.interpolated else None
        if curve is None and not self._lockstep:
            stamp_ns = 0 if messages.zero_is_receipt else self._clock.now().nanoseconds
        sent = Command(what.names, what.field, command, self._period_s, stamp_ns, curve)
        if self._out is not None:
            self._matched = self._out.get_subscription_count()
            self.followed.note_command(stamp_ns)
            if self._flows and command.any():
                self._sent.append(np.asarray(command, dtype=np.float64).tobytes())
                self.drives, self.theirs, self._zero_s = self._velocities, False, None
                self._left = self._owed = False
            elif self._flows and not self.theirs:
                self.drives, self._zero_s = False, self._zero_s or time.monotonic()
            self._out.publish(messages.message(sent, new_message))

    def hold(self) -> None:
        """Do nothing: further commands bring the robot to rest."""


def open_sinks(
    node: LifecycleNode,
    contract: Contract,
    parts: list[Commanded],
    opened: ExitStack,
    lockstep: bool = False,
) -> list[OpenSink]:
    """Open the contract's sinks, in its order.

    Args:
        node: gets publishers and clients.
        contract: of the robot.
        parts: what each sink commands.
        opened: closes them.
        lockstep: commands carry the stamp of their observation, for a simulator that waits for each.

    Raises:
        ParameterError: one cannot be opened, or does not fit; names parameter, value and what is allowed.
    """
    sinks = contract.action.sinks
    found: list[OpenSink] = []
    try:
        check_topics_apart(sinks, [node.resolve_topic_name(sink.channel.topic) for sink in sinks])
        for sink, part in zip(sinks, parts, strict=True):
            kind = sink.channel.kind
            if kind not in SINKS:
                raise ValueError(f"contract: commands are {kind}, must be one of {', '.join(SINKS)}")
            make = SINKS[kind]
            if issubclass(make, ActionSink):
                from adahi_ros.nodes.robot.goal_sink import GoalSink  # few robots have one

                found.append(GoalSink(node, sink, make(**sink.arguments), opened))
                continue
            messages = message_sink(kind, part, sink.arguments)
            topic, period_s = sink.channel.topic, contract.period_s
            if messages.lasts(part.field) and not lockstep:
                raise ValueError(
                    f"contract: {sink.key}: {kind} with {part.field}: when this node ends, the arm goes on; "
                    "watchdog_s of the action must be the time, s, after which its driver stops it"
                )
            found.append(TopicSink(node, topic, part, messages, period_s, opened, lockstep))
    except ValueError as error:
        raise ParameterError(str(error)) from None
    return found
