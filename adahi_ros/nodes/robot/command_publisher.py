# SPDX-License-Identifier: Apache-2.0
"""Publishes the robot's commands: each one passes the safety envelope, or holds the robot."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from adahi_msgs.msg import SafetyState
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.commanded import commanded, commanded_by_sink
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.command_curve import CommandCurve, Curve
from adahi_ros.core.texts import abridged
from adahi_ros.nodes.common.messages import to_stamp
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.command_sinks import TopicSink, open_sinks
from adahi_ros.nodes.robot.controller_watch import ControllerWatch
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.draft_policy_parts import limits_of
from adahi_ros.nodes.robot.other_publishers import TRAJECTORY, OtherPublishers
from adahi_ros.safety.commands import LONGEST_STOP_S, Commands, Outgoing, SafetyRecord
from adahi_ros.safety.envelope import RESTS, Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.named_limits import limits_warning, named_command_limits
from adahi_ros.safety.permission import Permission

AT_ONCE = 0  # as a stamp: the command belongs to no observation
STATE_PERIOD_S = 1.0  # of safety_state without news
STOP_LOOK_S = 0.05
LINK_STATE = "link_state"  # the topic of a policy that is active
ACTIVE, COMMANDS = "is an active policy of this namespace too,", "sends commands too,"
MESSAGE_LENGTH = 512


class CommandPublisher:
    """Sends actions as commands, as far as its guard allows, and holds the robot when the guard requires it.

    Args:
        node: gets publishers, subscriptions, services and timers.
        contract: of the robot.
        values: the node's parameters.
        permission: of the operator to move.
        opened: closes them.

    Raises:
        ValueError: names the parameter, its value and what is allowed; or the contract observes a commanded
            joint on two topics.
    """

    def __init__(
        self,
        node: LifecycleNode,
        contract: Contract,
        values: DraftPolicyParameters,
        permission: Permission,
        opened: ExitStack,
    ) -> None:
        self._node = node
        self._period_s, self._hold_after_s = contract.period_s, values.safety.hold_after_s
        self._robot_id, self._shared = values.robot_id, values.safety.shared_command
        self._action = contract.action
        self._episode: int | None = None
        self._numbered, self._lockstep = contract.episode is not None, values.command.lockstep
        parts, what = commanded_by_sink(contract.action), commanded(contract.action)
        measured = contract.measured(what.names)
        named, limits = values.safety.limits, limits_of(values, contract)
        self.limits = limits
        self._sinks = open_sinks(node, contract, parts, opened, values.command.lockstep)
        self._topics = [sink for sink in self._sinks if isinstance(sink, TopicSink)]
        interpolated = any(sink.interpolated for sink in self._topics)
        self._curve = CommandCurve(contract.period_s) if interpolated else None
        self._origin_ns, self._made_s = node.get_clock().now().nanoseconds, -math.inf
        config = GuardConfig(contract.period_s, values.safety.hold_after_s, interpolated)
        envelope = Envelope(limits, what.fields, contract.period_s)
        permission.configure(values.safety.require_enable, values.safety.enable_timeout_s)
        judges = named_command_limits(named, what)
        self.guard = Guard(envelope, config, permission, time.monotonic(), judges)
        self.measured = measured
        reaches = self._reaches if any(topic.catches_up for topic in self._topics) else None
        self.commands = Commands(self.guard, contract.action, measured, reaches)
        joints = self._joints = {
            node.resolve_topic_name(sink.topic): part.names
            for sink, part in zip(self._sinks, parts, strict=True)
            if isinstance(sink, TopicSink) and not values.command.lockstep  # its simulator waits for commands
        }

        self._names, self._positions = what.names, envelope.positions
        if any(topic.endswith(TRAJECTORY) for topic in joints):
            # A goal that executes is not known yet.
            self.guard.leave(np.zeros(len(what.names), dtype=bool), time.monotonic())
        ours = {LINK_STATE: ACTIVE, **{sink.topic: COMMANDS for sink in self._topics}}
        self.others = OtherPublishers(
            node,
            {} if self._shared else ours,
            measured.topics,
            lambda: self.guard.active,
            permission.holds,
            self.brake_if_held,
            self._on_goal,
            opened,
        )
        states = {node.resolve_topic_name(topic) for topic in measured.topics.values()}
        watched = self._on_controllers, self._leave, self._on_followed
        self._controllers = ControllerWatch(node, joints, states, *watched, opened)
        self._state_out = node.create_publisher(SafetyState, "safety_state", QoSProfile(depth=10))
        opened.callback(node.destroy_publisher, self._state_out)
        opened.callback(self.close)  # runs before its publishers are destroyed
        self._sent_s = self._lag_s = 0.0  # of the last command, and how far braking is behind time
        self._watch = steady_timer(node, contract.period_s, self.brake_if_held, opened)
        steady_timer(node, STATE_PERIOD_S, self._publish_state_again, opened)
        if warning := limits_warning(named, what, measured):
            node.get_logger().warning(warning)

    @property
    def enabled(self) -> bool:
        """Whether it may move the robot."""
        return self.guard.enabled(time.monotonic())

    def open(self) -> None:
        """Prepare to send commands.

        Raises:
            ValueError: another program commands the arm; names it. Or see `TopicSink.open`.
        """
        self.others.check()
        for topic in self._topics:
            topic.open()
            if self._shared and topic.topic.endswith(TRAJECTORY):  # where goals are not watched
                topic.leave(False, theirs=True)

    def start(self) -> None:
        """Commands may be sent from now on."""
        self.commands.start(time.monotonic())
        self._controllers.begin()

    def stop(self) -> None:
        """Hold the robot from now on; command no more actions."""
        self._controllers.compare_subscriptions()
        self._brake(self.commands.stop)

    def close(self) -> None:
        """Bring the robot to rest, and wait for that, because the node ends."""
        self._controllers.receives = False
        self._controllers.compare_subscriptions()
        self._brake(self.commands.close)
        while self.commands.closing(time.monotonic()):
            time.sleep(max(0.0, self._sent_s + min(self._period_s, STOP_LOOK_S) - time.monotonic()))
            self.brake_if_held()
        halted = self.commands.halt(time.monotonic())
        if halted.command is not None:
            self._node.get_logger().error(f"not at rest {LONGEST_STOP_S:g} s after the end; stopped at once")
        self._publish(halted)

    def observed(self) -> None:
        """There is a new observation that the policy can act on."""
        self.guard.observed(time.monotonic())

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        """Return what may be commanded of an action (A,); without an action, what holds the robot."""
        stamp_s = self.prepare(observation)
        return self.commands.limit(action, observation.read, time.monotonic(), stamp_s)

    def prepare(self, observation: Observation) -> float:
        """Look for new controllers and episodes before a command; return the observation's stamp, s."""
        self._controllers.compare_subscriptions()
        if self._numbered and observation.episode != self._episode:  # a simulator may have set the arm
            self._episode = observation.episode
            measured = self.measured.positions_in(observation.read)
            self.guard.new_episode(None if self._lockstep else measured)
        return observation.stamp_ns / NANOSECONDS

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        """Publish what was made of an observation; return the commanded action (A,), or None.

        A command from before this process stood still is not sent: its operator may have stopped it since.
        Nor does a controller get one that came while the policy computed it.
        """
        now_s = time.monotonic()
        if any(topic.count_subscriptions() for topic in self._topics):
            self._controllers.compare_subscriptions()
        if outgoing.action is not None and self._joints and now_s - self.guard.made_s > self._hold_after_s:
            self.guard.leave(self._positions, now_s)
            return None
        self._publish(outgoing, AT_ONCE if outgoing.brakes else observation.stamp_ns)
        if outgoing.command is not None:  # the timer brakes a period later at the earliest
            self._watch.reset()
            self.others.glance()
        return outgoing.action

    def commanded(self) -> np.ndarray | None:
        """Return the last commanded action (A,); None where there is none since the last call."""
        return self.commands.commanded()

    def resumes(self) -> bool:
        """Whether a hold ends, so that older plans are outdated; called once for each."""
        return self.guard.resumes(time.monotonic())

    def repeat(self, observation: Observation) -> None:
        """Send the last command again for a repeated observation, unless the robot was held."""
        self._publish(self.commands.repeat(time.monotonic()), observation.stamp_ns)

    def brake_if_held(self) -> None:
        """Hold the robot if due; called every control period, and when the permission changes."""
        for topic in self._topics:
            topic.count_subscriptions()
            topic.repeat_zero()
        self._controllers.compare_subscriptions()
        self._brake(self.commands.brake_if_held, self.guard.active)

    def _brake(self, look: Callable[[float], Outgoing], resumes: bool = False) -> None:
        """Publish a command that brakes, if any; a late one counts as on time, unless the robot may resume.

        Else a few milliseconds would let the velocity fade, which brakes harder than the limits allow. Lost
        time is not caught up: two commands are never closer than they count. A robot that rests stays there.
        """
        now_s = time.monotonic()
        since_s = now_s - self._sent_s
        ends = since_s < RESTS * self._period_s and not resumes
        lag_s = self._lag_s + max(0.0, since_s - self._period_s) if ends else 0.0
        outgoing = look(now_s - lag_s)
        self._publish(outgoing)
        if outgoing.command is not None:
            self._sent_s, self._lag_s = now_s, lag_s

    def _publish(self, outgoing: Outgoing, stamp_ns: int = AT_ONCE) -> None:
        """Send commands and the safety state; the stamp is that of the command's observation."""
        held = self.guard.holding
        if held:
            for sink in self._sinks:
                sink.hold()
        if outgoing.command is not None:
            self._controllers.moved |= not (outgoing.brakes or self.guard.waits)
            # It was computed at most a tenth of a period before.
            self._sent_s, self._lag_s = time.monotonic() - 0.1 * self._period_s, 0.0
            parts = self._action.parts(outgoing.command)
            curves: list[Curve | None] = [None] * len(parts)
            if self._curve is not None:
                stamp_ns, curves = self._followed(self._curve, outgoing.command)
            rests = [bool(each.all()) for each in self._action.parts(self.guard.resting)]
            if outgoing.left is not None:
                for place, each in enumerate(self._action.parts(outgoing.left)):
                    if each.all():
                        rests[place] = True
                        self._sinks[place].hold()  # an old goal may still have to be cancelled
            for sink, part, curve, stands in zip(self._sinks, parts, curves, rests, strict=True):
                if not (stands or (held and sink.holds_by_itself)):
                    sink.send(part, stamp_ns, curve)
        fault = next((sink.fault for sink in self._sinks if sink.fault), "")
        stuck = self.commands.sink(fault, time.monotonic()).record
        for record in (stuck, outgoing.record):
            if record is not None:
                self._publish_state(record)
        if not (self.guard.active or self.guard.moving):
            self._controllers.end()
            for topic in self._topics:
                topic.close()

    def _followed(self, curve: CommandCurve, command: np.ndarray) -> tuple[int, list[Curve | None]]:
        """Return the stamp, and the curve of each sink from there to a command (A,)."""
        now_s = (self._node.get_clock().now().nanoseconds - self._origin_ns) / NANOSECONDS
        guard, before_s, self._made_s = self.guard, self._made_s, self.guard.made_s
        found = curve.again(now_s) if guard.made_s == before_s else None
        if found is None:
            found = curve.extend(now_s, guard.before, command, guard.counted_s)
        places, speeds = self._action.parts(found.places.T), self._action.parts(found.speeds.T)
        times_s = found.times_s - found.times_s[0]
        stamp_ns = max(AT_ONCE, self._origin_ns + round(found.times_s[0] * NANOSECONDS))  # a new simulation
        return stamp_ns, [Curve(times_s, at.T, to.T) for at, to in zip(places, speeds, strict=True)]

    def _leave(self, topic: str, follows: bool = False, misses_s: float = 0.0, stops: bool = True) -> None:
        """Send a topic nothing until motion begins; but brake velocities that its controller follows.

        Where it follows none, they are 0 at once: another program may still follow them. Without `stops`, or
        where another program has moved it last, or may have, nothing is sent. For `misses_s` its controller
        may miss commands: motion begins later.
        """
        if topic in self._joints:
            entries = np.isin(self._names, self._joints[topic])
            begins_s = time.monotonic() + misses_s
            self.guard.leave(entries & self._positions if follows else entries, begins_s)
            if not follows:
                for sink in self._named(topic):
                    sink.leave(stops)

    def _on_goal(self, topic: str) -> None:
        """Leave a topic to another's goal, with one 0: a last velocity may have come later than the goal."""
        self._leave(topic, stops=False)
        for sink in self._named(topic):
            sink.leave(sink.drives, theirs=True)

    def _named(self, topic: str) -> list[TopicSink]:
        return [sink for sink in self._topics if self._node.resolve_topic_name(sink.topic) == topic]

    def leave_controller(self, name: str) -> None:
        """Send nothing more to a controller that is off, by its full name; its topic may be remapped.

        Without a name hardware is off. Then, and where its topic is not known, velocities are braked, as they
        may be followed.
        """
        named = [topic for topic in self._joints if name in ("", topic.rpartition("/")[0])]
        for topic in named or self._controllers.unnamed():
            self._leave(topic, follows=not (name and named))

    def _reaches(self) -> bool:
        return all(topic.reaches() for topic in self._topics)

    def _on_followed(self, name: str, stamp_ns: int) -> None:
        for topic in self._named(name):
            topic.followed.note_state(stamp_ns)

    def _on_controllers(self, fault: str, known: bool) -> None:
        self.guard.permission.driver(fault, known, "controllers")
        self._brake(self.commands.brake_if_held, self.guard.active)

    def _publish_state(self, record: SafetyRecord) -> None:
        if record.warning:
            self._node.get_logger().warning(record.warning)
        self._state_out.publish(
            SafetyState(
                header=Header(stamp=to_stamp(self._node.get_clock().now().nanoseconds)),
                robot_id=self._robot_id,
                enabled=record.enabled,
                stopped=record.stopped,
                needs_press=record.needs_press,
                holding=record.holding,
                at_rest=record.holding and self.guard.at_rest(time.monotonic()),
                interventions=[int(each) for each in record.interventions],
                counts=list(record.counts),
                message=abridged(record.message, MESSAGE_LENGTH),
            )
        )

    def _publish_state_again(self) -> None:
        record = self.commands.record(time.monotonic())
        if record is not None:
            self._publish_state(record)
