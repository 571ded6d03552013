# SPDX-License-Identifier: Apache-2.0
"""Receives the commands of a person who has taken over: `teleop_command`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.commanded import Commanded, commanded
from adahi_ros.contract.contract import GOALS, Contract
from adahi_ros.contract.fields import NAMED, FieldReader, InputError
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.operator import LOOK_PERIOD_S, OperatorInputs, PublisherWatch, age_of, message_age
from adahi_ros.robot.takeover_loop import TakeoverLoop
from adahi_ros.safety.commands import Outgoing
from adahi_ros.safety.person_commands import POSITIONS, PersonCommands
from adahi_ros.safety.takeover import COMMAND

KINDS = {
    "joint_state": "sensor_msgs/msg/JointState",
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
}
FIELDS = {
    "joint_state": {POSITIONS: "position", GOALS: "position", "velocities": "velocity", "effort": "effort"},
    "joint_trajectory": {
        GOALS: POSITIONS,
        **{each: each for each in (POSITIONS, "velocities", "accelerations", "effort")},
    },
}
"""By type of message, its field of each quantity."""
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)  # compatible with every publisher
MOST_READERS = 16


def loop_with_person(
    node: LifecycleNode,
    values: DraftPolicyParameters,
    contract: Contract,
    publisher: CommandPublisher,
    operator: OperatorInputs,
    opened: ExitStack,
) -> Callable[..., TakeoverLoop]:
    """Return the control loop's class, bound to a person; arguments as `Teleoperator`.

    Raises:
        ValueError: parameters do not fit; names the parameter, its value and what is allowed.
    """
    button, late = values.takeover.button, values.command.late_steps
    if values.takeover.command not in KINDS:
        raise ValueError(f"takeover.button: {button}, must be -1 without takeover.command")
    if late:
        raise ValueError(f"command.late_steps: {late}, must be 0 with takeover.command")
    what = commanded(contract.action)
    return partial(TakeoverLoop, person=Teleoperator(node, values, what, publisher, operator, opened))


class Teleoperator:
    """A person who may drive the arm; see `Person` in `robot/takeover_loop.py`.

    Args:
        node: gets the subscription.
        values: its parameters.
        what: the entries of an action.
        publisher: commands the arm.
        operator: receives takeovers.
        opened: closes the subscription.

    Raises:
        ValueError: the message type has no field for a commanded quantity; names the parameter.
    """

    def __init__(
        self,
        node: LifecycleNode,
        values: DraftPolicyParameters,
        what: Commanded,
        publisher: CommandPublisher,
        operator: OperatorInputs,
        opened: ExitStack,
    ) -> None:
        kind = values.takeover.command
        missing = sorted({each for each in what.fields if each not in FIELDS[kind]})
        if missing:
            raise ValueError(
                f"takeover.command: {kind!r}, must not be with {missing[0]}: it has no such field"
            )
        self._node, self._names = node, what.names
        self._paths = [
            f"{FIELDS[kind][field]}.{name}" for name, field in zip(what.names, what.fields, strict=True)
        ]
        self._kind = KINDS[kind]
        self._publisher = publisher
        self._takeover = operator.permission.takeover
        self._takeover.forget("none was received")
        self._person = PersonCommands(
            self._takeover, publisher.commands, publisher.guard, what.fields, publisher.measured
        )
        self._log = ThrottledLog(node)
        self._closed = False
        opened.callback(self._close)
        self._readers: dict[tuple[str, ...], tuple[list[int], FieldReader]] = {}
        called = with_info(self._on_command)
        subscription = node.create_subscription(message_type(self._kind), COMMAND, called, NEWEST)
        opened.callback(node.destroy_subscription, subscription)
        self._watch = PublisherWatch(node, subscription, self._kind, self._takeover.subscribed(COMMAND))
        operator.commands = self._watch
        opened.callback(self._watch.close)
        steady_timer(node, LOOK_PERIOD_S, self._watch.read_publishers, opened)

    @property
    def drives(self) -> bool:
        """See `Person`."""
        return self._takeover.person

    @property
    def takeovers(self) -> int:
        """See `Person`."""
        return self._takeover.count

    @property
    def at_rest(self) -> bool:
        """See `Person`."""
        return not self._publisher.guard.moving

    def held(self) -> str:
        """See `Person`."""
        return self._takeover.held(time.monotonic())

    def limit(self, observation: Observation) -> Outgoing:
        """See `Person`."""
        stamp_s = self._publisher.prepare(observation)
        return self._person.limit(observation.read, time.monotonic(), stamp_s)

    def _close(self) -> None:
        self._closed = True

    def _on_command(self, message: Any, info: Mapping[str, int]) -> None:
        if self._closed:
            return
        fault, wanted = "", None
        try:
            wanted = self._read(message)
        except InputError as error:
            fault = str(error)
        waited_s, now_s = age_of(info.get("received_timestamp", 0)), time.monotonic()
        age_s = message_age(self._node, message, info)
        self._watch.read_publishers(now_s - max(0.0, waited_s))
        ignored = self._takeover.command(wanted, age_s, now_s, fault, waited_s)
        if ignored and self.drives:
            self._log.warning(COMMAND, f"ignored: {ignored}")

    def _read(self, message: Any) -> np.ndarray:
        """Return the command (A,) in the messages' units, NaN for joints that the message does not name.

        Raises:
            InputError: it names none of them, or a number is missing or not finite.
        """
        names = tuple(getattr(message, NAMED[self._kind].names))
        if names not in self._readers:
            places = [place for place, name in enumerate(self._names) if name in names]
            reader = FieldReader(COMMAND, self._kind, [self._paths[place] for place in places] or self._paths)
            if not places:
                raise reader.unmatched(message)
            if len(self._readers) >= MOST_READERS:
                self._readers.clear()
            self._readers[names] = places, reader
        places, reader = self._readers[names]
        wanted = np.full(len(self._names), np.nan)
        wanted[places] = reader.read(message)  # in the order of its paths
        return wanted
