# SPDX-License-Identifier: Apache-2.0
"""Switches from another controller to the policy's for a goal, and back, so that one alone moves the arm."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.task import Future

from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.replies import NotRepliedError, replied
from adahi_ros.nodes.robot.controller_goals import ControllerGoals

LIST = "controller_manager_msgs/srv/ListControllers"
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
        if ours:
            self._list, self._kind = message_type(LIST), message_type(SWITCH)
            self._lister = node.create_client(self._list, "controller_manager/list_controllers")
            self._switcher = node.create_client(self._kind, "controller_manager/switch_controller")
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
        return await self._switch(self._ours, self._other, wait_s, self._given_up)

    async def end(self, wait_s: float) -> str:
        """Switch back, if it was switched; return why that failed, empty where it did not."""
        if not self._switched:
            return ""
        return await self._switch(self._other, self._ours, wait_s)

    async def _switch(self, on: str, off: str, wait_s: float, given_up: Future | None = None) -> str:
        """Switch what differs: a killed runner leaves its controller active, which STRICT refuses."""
        try:
            listed = await replied(self._node, self._lister, self._list.Request(), wait_s, given_up)
            states = {controller.name: controller.state for controller in listed.controller}
            if missing := {on, off} - {"", *states}:
                return f"controller_manager has no {min(missing)}, it has {', '.join(states) or 'none'}"
            self._switched = on == self._ours  # also without a reply: then it is unknown
            add = [on] if on and states[on] != "active" else []
            drop = [off] if off and states[off] == "active" else []
            if not add + drop:
                return ""
            request = self._kind.Request(activate_controllers=add, deactivate_controllers=drop)
            request.strictness, request.activate_asap = request.STRICT, True
            reply = await replied(self._node, self._switcher, request, wait_s, given_up)
        except NotRepliedError as error:
            return str(error)
        reason = getattr(reply, "message", "") or "no reason was given"  # Humble has none
        return "" if reply.ok else f"{(add + drop)[0]} cannot be switched {'on' if add else 'off'}: {reason}"
