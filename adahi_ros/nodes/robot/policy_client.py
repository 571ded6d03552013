# SPDX-License-Identifier: Apache-2.0
"""Controls the policy's lifecycle node for the policy runner: state, checkpoint and last error."""

from __future__ import annotations

import time
from typing import Any

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future
from std_srvs.srv import Trigger

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.nodes.common.replies import NotRepliedError, elapsed, replied, sent
from adahi_ros.robot.policy_run import Preparation, preparations

CALL_S = 5.0  # for a service and its reply
CONFIGURE_S = 180.0  # the first time may export a network
CHANGES = {
    Preparation.DEACTIVATE: Transition.TRANSITION_DEACTIVATE,
    Preparation.CLEAN_UP: Transition.TRANSITION_CLEANUP,
    Preparation.CONFIGURE: Transition.TRANSITION_CONFIGURE,
    Preparation.ACTIVATE: Transition.TRANSITION_ACTIVATE,
}


class NotStartedError(RuntimeError):
    """The policy's node cannot be activated; the message says why."""


def check_policy(policy: str) -> None:
    """Check that a checkpoint exists, before the node drops its current one.

    Raises:
        NotStartedError: there is none.
    """
    try:
        path = named(policy, CHECKPOINTS)
        # A checkpoint is a folder, or several files with a common prefix.
        found = path.exists() or any(each.name.startswith(f"{path.name}.") for each in path.parent.iterdir())
    except (OSError, ValueError):
        found = False
    if not found:
        raise NotStartedError(f"policy: {policy!r}, must name a checkpoint; no such file")


class PolicyNode:
    """Calls the services of the policy's node.

    Attributes:
        name: of that node, relative to the namespace.
        given_up: when it is done, all calls end, except `deactivate`.

    Args:
        node: the policy runner's; its executor runs the coroutines.
        name: see above.
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name = name
        self.given_up = Future()
        self._node = node
        self._change_state = node.create_client(ChangeState, f"{name}/change_state")
        self._get_state = node.create_client(GetState, f"{name}/get_state")
        self._get_parameters = node.create_client(GetParameters, f"{name}/get_parameters")
        self._set_parameters = node.create_client(
            SetParametersAtomically, f"{name}/set_parameters_atomically"
        )
        self._last_error = node.create_client(Trigger, f"{name}/last_error")

    async def state(self, wait_s: float = CALL_S) -> int:
        """Return its lifecycle state.

        Raises:
            NotRepliedError: it does not reply.
        """
        reply = await replied(self._node, self._get_state, GetState.Request(), wait_s, self.given_up)
        return int(reply.current_state.id)

    async def change(self, how: Preparation) -> None:
        """Make a transition.

        Raises:
            NotStartedError: the node failed to.
            NotRepliedError: it does not reply.
        """
        request = ChangeState.Request(transition=Transition(id=CHANGES[how]))
        configures = how is Preparation.CONFIGURE
        called = self._configured(request) if configures else self._called(self._change_state, request)
        if not (await called).success:
            raise NotStartedError(f"{self.name} cannot be {how.value}: {await self.last_error()}")

    async def prepare(self, state: int, policy: str) -> None:
        """Configure the node, with another policy if one is given.

        Args:
            state: its current one.
            policy: names a checkpoint; empty to keep the current one.

        Raises:
            NotStartedError: it fails. The node then has its former checkpoint and state again.
            NotRepliedError: it does not reply.
        """
        try:
            way = preparations(state, bool(policy))
        except ValueError as error:
            raise NotStartedError(f"{self.name} cannot be activated, it {error}") from None
        former = ""
        if policy:
            check_policy(policy)
            former = await self._checkpoint()
        try:
            for each in way:
                if each is Preparation.CHOOSE_POLICY:
                    await self._choose(policy)
                elif each is not Preparation.ACTIVATE:
                    await self.change(each)
        except NotStartedError as error:
            if policy:
                raise NotStartedError(f"{error}{await self._restored(state, former)}") from None
            raise

    async def deactivate(self, wait_s: float) -> int | None:
        """Deactivate the node if it is active; return its state, or None if it does not reply.

        The request is sent in any state, because an activation may be in progress.
        """
        deactivate = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
        try:
            if (await replied(self._node, self._change_state, deactivate, wait_s)).success:
                return State.PRIMARY_STATE_INACTIVE
            reply = await replied(self._node, self._get_state, GetState.Request(), wait_s)
            return int(reply.current_state.id)
        except NotRepliedError:
            return None

    async def last_error(self) -> str:
        """Return why the node failed last, for people."""
        try:
            reply = await self._called(self._last_error, Trigger.Request())
        except NotRepliedError as error:
            return str(error)
        return reply.message or "it gave no reason"

    async def _called(self, client: Client, request: object, wait_s: float = CALL_S) -> Any:
        return await replied(self._node, client, request, wait_s, self.given_up)

    async def _configured(self, request: ChangeState.Request) -> ChangeState.Response:
        """Configure the node, which takes long; notice if its process ends meanwhile.

        Raises:
            NotStartedError: the process ended or was restarted.
            NotRepliedError: it does not reply.
        """
        client, end_s = self._change_state, time.monotonic() + CONFIGURE_S
        reply = await sent(self._node, client, request, CALL_S, self.given_up)
        while not reply.done() and not self.given_up.done() and time.monotonic() < end_s:
            await elapsed(self._node, CALL_S, reply, self.given_up)
            if reply.done():
                break
            if not client.service_is_ready():  # DDS notices a dead process after its lease
                raise NotStartedError(f"{self.name} ended while it was configured")
            if not await self._was_replaced():
                continue
            await elapsed(self._node, CALL_S, reply, self.given_up)  # the reply may be in transit
            if not reply.done() and not self.given_up.done():
                client.remove_pending_request(reply)
                raise NotStartedError(f"{self.name} was started again while it was configured")
        if not reply.done():
            client.remove_pending_request(reply)
            raise NotRepliedError(f"{client.srv_name}: no reply for {CONFIGURE_S:g} s")
        return reply.result()

    async def _was_replaced(self) -> bool:
        """Whether a process replies that is not configuring: it would reply only afterwards."""
        try:
            return await self.state() != State.TRANSITION_STATE_CONFIGURING
        except NotRepliedError:
            return False

    async def _checkpoint(self) -> str:
        request = GetParameters.Request(names=["checkpoint"])
        values = (await self._called(self._get_parameters, request)).values
        found = parameter_value_to_python(values[0]) if values else None
        if not isinstance(found, str):
            raise NotStartedError(f"{self.name} has no parameter checkpoint")
        return found

    async def _choose(self, policy: str) -> None:
        checkpoint = Parameter("checkpoint", value=policy).to_parameter_msg()
        request = SetParametersAtomically.Request(parameters=[checkpoint])
        result = (await self._called(self._set_parameters, request)).result
        if not result.successful:
            raise NotStartedError(f"policy: {policy!r}, refused: {result.reason}")

    async def _restored(self, state: int, former: str) -> str:
        """Restore the node's former checkpoint and state; return a text for the error if that fails."""
        try:
            await self._choose(former)
            if state != State.PRIMARY_STATE_UNCONFIGURED:
                await self.change(Preparation.CONFIGURE)
        except (NotStartedError, NotRepliedError) as error:
            return f"; the former checkpoint {former!r} cannot be restored: {error}"
        return ""
