# SPDX-License-Identifier: Apache-2.0
"""The robot's topics in a world that vla-eval steps, for the draft policy's node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import rclpy
from adahi_msgs.msg import DraftStatus, TaskState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.utilities import try_shutdown
from sensor_msgs.msg import JointState

from adahi_lab.nodes.command_inputs import CommandInputs, inputs_of
from adahi_lab.nodes.dds_run import STATUSES_KEPT
from adahi_lab.nodes.task_state import to_task_state
from adahi_lab.peers.closed_loop import Drive, EpisodeLog
from adahi_lab.peers.judged_world import JudgedWorld, judged_world
from adahi_lab.peers.plan_server import signature_of
from adahi_lab.tasks import make
from adahi_lab.tasks.instructions import embedded
from adahi_ros.nodes.common import messages
from adahi_ros.nodes.common.spin import freeze_garbage

LOOK_S = 0.5


class JudgedRobotNode(Node):
    """Publishes `joint_states` and `task_state` for every observation of the judge; forwards `command`."""

    def __init__(self, drive: Drive, world: JudgedWorld) -> None:
        super().__init__("judged_robot", use_global_arguments=False)
        self._world, self._drive = world, drive
        self._spec = make(drive.task).spec
        self.calls: Counter[int] = Counter()
        self._step, self._first_ns = 0, 0
        self._joints_out = self.create_publisher(JointState, "joint_states", copy(qos_profile_sensor_data))
        self._state_out = self.create_publisher(TaskState, "task_state", copy(qos_profile_sensor_data))
        inputs = inputs_of(self._spec.name, self._spec, self._spec.frame_id)
        CommandInputs(self, inputs, self._spec.commanded, self._on_action, self._on_fault)
        self.create_subscription(DraftStatus, "draft_status", self._count, QoSProfile(depth=STATUSES_KEPT))
        world.on_seen = self._publish

    def _publish(self, seen: dict[str, Any], first: bool) -> None:
        now = self.get_clock().now().nanoseconds
        self._step = 0 if first else self._step + 1
        self._first_ns = now if first else self._first_ns
        episode = self._drive.first_episode + len(self._world.logs)
        goal = embedded(seen["task_description"])
        self._joints_out.publish(
            messages.to_joint_state(self._spec.joint_names, seen["joints"], seen["velocities"], now)
        )
        self._state_out.publish(
            to_task_state(seen["state"], goal, episode, self._step, now, self._spec.frame_id)
        )

    def _on_action(self, action: np.ndarray, stamp_ns: int | None, *beside: object) -> None:
        if not stamp_ns or stamp_ns >= self._first_ns:  # else of an earlier episode
            self._world.command(action)

    def _on_fault(self, fault: ValueError) -> None:
        self.get_logger().warning(f"ignored command: {fault}")

    def _count(self, message: DraftStatus) -> None:
        self.calls[message.episode_id] += message.transmitted


def run_judged(drive: Drive, check: Callable[[], None]) -> list[EpisodeLog]:
    """Run the judge's episodes with a draft policy's node that is active; return their logs.

    Args:
        drive: which.
        check: raises where a node has ended.
    """
    rclpy.init()
    with judged_world(drive, signature_of(drive.target)) as world:
        node = JudgedRobotNode(drive, world)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        freeze_garbage()
        while len(world.logs) < drive.episodes and world.stopped is None:
            check()
            executor.spin_once(timeout_sec=LOOK_S)
    for log in world.logs:
        log.calls = node.calls[log.episode]
    node.destroy_node()
    try_shutdown()
    return world.logs
