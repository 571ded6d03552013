# SPDX-License-Identifier: Apache-2.0
"""Switches from another controller to the policy's for a goal, and back, so that one alone moves the arm."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.replies import NotRepliedError, replied
from adahi_ros.nodes.robot.controller_goals import ControllerGoals

SERVICE = "controller_manager/switch_controller"
SWITCH = "controller_manager_msgs/srv/SwitchController"


class ControllerSwitch:
    """Activates a controller instead of another, and switches back.

    Args:
        node: calls the controller manager in its namespace; its executor runs the coroutines.
        ours: of the policy; empty to switch nothing.
        other: inactive meanwhile; empty for none.
        given_up: when it is done, the calls of `begin` end.

    Raises:
        ParameterError: controller_manager_msgs is not installed, or the policy's controller is missing.
    """

    def __init__(self, node: Node, ours: str, other: str, given_up: Future) -> None:
        if other and not ours:
            raise ParameterError(f"controller: '', must name the policy's where instead_of is {other!r}")
        self._node, self._ours, self._other, self._given_up = node, ours, other, given_up
        self._kind: Any = message_type(SWITCH) if ours else None
        self._client: Any = node.create_client(self._kind, SERVICE) if ours else None
        self._switched = False
        self._goals = ControllerGoals(node)
        if other:
            self._goals.watch(other)

    async def begin(self, wait_s: float) -> str:
        """Switch to the policy's controller; return why that failed, empty where it did not."""
        if not self._ours:
            return ""
        if goal := self._goals.executing():
            return f"{goal}; end it first"
        self._switched = True  # also without a reply: then it is unknown
        return await self._switch(self._ours, self._other, wait_s, self._given_up)

    async def end(self, wait_s: float) -> str:
        """Switch back, if it was switched; return why that failed, empty where it did not."""
        if not self._switched:
            return ""
        self._switched = False
        return await self._switch(self._other, self._ours, wait_s)

    async def _switch(self, on: str, off: str, wait_s: float, given_up: Future | None = None) -> str:
        request = self._kind.Request(
            activate_controllers=[on] if on else [],
            deactivate_controllers=[off] if off else [],
            strictness=self._kind.Request.STRICT,
            activate_asap=True,
        )
        try:
            reply = await replied(self._node, self._client, request, wait_s, given_up)
        except NotRepliedError as error:
            return str(error)
        reason = getattr(reply, "message", "") or "no reason was given"  # Humble has none
        return "" if reply.ok else f"{on or off} cannot be switched {'on' if on else 'off'}: {reason}"
