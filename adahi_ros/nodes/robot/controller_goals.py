# SPDX-License-Identifier: Apache-2.0
"""Watches the goals that others execute on controllers: MoveIt's, for example."""

from __future__ import annotations

from collections.abc import Callable

from action_msgs.msg import GoalStatus, GoalStatusArray
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from rclpy.subscription import Subscription

from adahi_ros.nodes.common.graph import publishers_of

FOLLOW = "/follow_joint_trajectory"  # of a joint_trajectory_controller
STATUS, FEEDBACK = "/_action/status", "/_action/feedback"
UNDER_WAY = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)


class ControllerGoals:
    """Knows whether a goal executes on some controllers.

    Args:
        node: gets a subscription for each controller.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._executing: dict[str, set[bytes]] = {}  # who may execute a goal, by the action

    def watch(self, controller: str, changed: Callable[[bool], None] = lambda executes: None) -> Subscription:
        """Watch a controller, until the returned subscription is destroyed.

        Args:
            controller: its name, as a topic's.
            changed: called at each message of its action, with whether a goal executes.
        """
        action = self._node.resolve_topic_name(controller + FOLLOW)

        def received(message: GoalStatusArray) -> None:
            self._executing.pop(action, None)
            executes = any(each.status in UNDER_WAY for each in message.status_list)
            if executes:
                self._executing[action] = set(publishers_of(self._node, action + STATUS))
            changed(executes)

        quality = qos_profile_action_status_default
        return self._node.create_subscription(GoalStatusArray, action + STATUS, received, quality)

    def executing(self) -> str:
        """Return what executes, and for which client; empty for nothing."""
        for action, controllers in list(self._executing.items()):
            there = set(publishers_of(self._node, action + STATUS))
            if not controllers:  # the message came before its publisher was seen
                controllers |= there
            elif controllers.isdisjoint(there):
                del self._executing[action]  # the controller ended with it
                continue
            if controllers:
                clients = self._node.get_subscriptions_info_by_topic(action + FEEDBACK)
                who = " or ".join(sorted({each.node_name for each in clients})) or "a client"
                return f"a goal of {who} executes on {action}"
        return ""
