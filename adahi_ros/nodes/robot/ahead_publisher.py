# SPDX-License-Identifier: Apache-2.0
"""Publishes commands with the next points of the plan, `command.points`: the controller interpolates."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import cast

import numpy as np
from rclpy.lifecycle import LifecycleNode

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.commanded import commanded
from adahi_ros.contract.contract import Contract
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.nodes.robot.command_publisher import AT_ONCE, CommandPublisher
from adahi_ros.nodes.robot.command_sinks import TopicSink
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.safety.ahead import AheadGuard
from adahi_ros.safety.commands import Outgoing
from adahi_ros.safety.permission import Permission


class AheadPublisher(CommandPublisher):
    """A publisher of trajectories with several points. Arguments and errors as `CommandPublisher`.

    Points follow only an action that is the plan's own, and that no limit has changed. Every other command,
    and every hold, is one point: it replaces those that were sent before.
    """

    guard_kind = AheadGuard
    _next: tuple[np.ndarray, np.ndarray | None] | None = None  # planned and measured, until an action is sent

    def __init__(
        self,
        node: LifecycleNode,
        contract: Contract,
        values: DraftPolicyParameters,
        permission: Permission,
        opened: ExitStack,
    ) -> None:
        super().__init__(node, contract, values, permission, opened)
        self._points = values.command.points
        what = commanded(contract.action)
        most = 1 + math.floor(values.safety.hold_after_s / contract.period_s + 1e-9)
        where = f"command.points: {self._points}, must be"
        kinds = {sink.channel.kind for sink in contract.action.sinks}
        if kinds != {JointTrajectorySink.kind} or set(what.fields) != {"positions"}:
            raise ValueError(f"{where} 1 unless every command is positions by joint_trajectory")
        if values.command.velocities or values.command.lockstep:
            raise ValueError(f"{where} 1 with command.velocities or command.lockstep")
        if self._points > most:
            raise ValueError(f"{where} at most {most}, so that they end within safety.hold_after_s")

    def limit(self, action: np.ndarray | None, observation: Observation) -> Outgoing:
        """See `CommandPublisher`."""
        self._next, plan = None, self.coming(self._points)[0]
        if action is not None and np.array_equal(plan[0], action):
            wire = [np.asarray(self._action.to_wire(each), dtype=np.float64) for each in plan[1:]]
            self._next = np.array(wire), self.measured.positions_in(observation.read)
        return super().limit(action, observation)

    def command(self, outgoing: Outgoing, observation: Observation) -> np.ndarray | None:
        """See `CommandPublisher`."""
        try:
            return super().command(outgoing, observation)
        finally:
            self._next = None

    def _publish(self, outgoing: Outgoing, stamp_ns: int = AT_ONCE) -> None:
        points: list[np.ndarray] = []
        if self._next is not None and outgoing.action is not None and not outgoing.brakes:
            points = cast(AheadGuard, self.guard).extend(*self._next)
        parts = [self._action.parts(point) for point in points]
        for number, sink in enumerate(self._sinks):
            cast(TopicSink, sink).ahead = [part[number] for part in parts]
        super()._publish(outgoing, stamp_ns)
        if points:  # the controller executes them: a hold that is late does not count as on time
            self._sent_s = 0.0
