# SPDX-License-Identifier: Apache-2.0
"""Watches the goals that others execute on controllers: MoveIt's, for example."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from action_msgs.msg import GoalStatus, GoalStatusArray
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from rclpy.subscription import Subscription

FOLLOW = "/follow_joint_trajectory"  # of a joint_trajectory_controller
STATUS, FEEDBACK = "/_action/status", "/_action/feedback"
UNDER_WAY = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
AGAIN_S = 1.0  # how often a controller with a goal is asked again
ANSWER_S = 2.0  # its answer takes at most this long


class ControllerGoals:
    """Knows whether a goal executes on some controllers.

    A message does not say which controller sent it, and one that ended cannot end its goals. So it subscribes
    again while a goal executes: the status is latched, and the controller that is there sends it once more.

    Args:
        node: gets a subscription for each controller.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._subscriptions: dict[str, Subscription] = {}  # by the action
        self._changed: dict[str, Callable[[], None]] = {}
        self._came_s: dict[str, float] = {}  # the newest message, of actions that have a goal
        self._asked_s: dict[str, float] = {}

    def watch(self, controller: str, changed: Callable[[], None] = lambda: None) -> None:
        """Watch a controller.

        Args:
            controller: its name, as a topic's.
            changed: called at each message of its action while a goal executes, and once none does any more.
        """
        action = self._node.resolve_topic_name(controller + FOLLOW)
        self._changed[action] = changed
        self._ask(action)

    def close(self) -> None:
        """Watch no more."""
        for subscription in self._subscriptions.values():
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._came_s.clear()

    def _ask(self, action: str) -> None:
        if action in self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop(action))
        received, quality = partial(self._received, action), qos_profile_action_status_default
        subscription = self._node.create_subscription(GoalStatusArray, action + STATUS, received, quality)
        self._subscriptions[action], self._asked_s[action] = subscription, time.monotonic()

    def _received(self, action: str, message: GoalStatusArray) -> None:
        if action not in self._subscriptions:  # queued by the events executor before it was destroyed
            return
        before = self._came_s.pop(action, None)
        if any(each.status in UNDER_WAY for each in message.status_list):
            self._came_s[action] = time.monotonic()
        elif before is None:
            return
        self._changed[action]()

    def executing(self) -> str:
        """Return what executes, and for which client; empty for nothing.

        Calls ask controllers that have a goal again, so only a later call knows that one has ended.
        """
        now_s = time.monotonic()
        for action, came_s in list(self._came_s.items()):
            asked_s = self._asked_s[action]
            if asked_s > came_s and now_s - asked_s > ANSWER_S:
                del self._came_s[action]  # the controller ended with it
                continue
            if asked_s <= came_s and now_s - came_s > AGAIN_S:
                self._ask(action)
            clients = self._node.get_subscriptions_info_by_topic(action + FEEDBACK)
            who = " or ".join(sorted({each.node_name for each in clients})) or "a client"
            return f"a goal of {who} executes on {action}"
        return ""
