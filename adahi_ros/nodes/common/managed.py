# SPDX-License-Identifier: Apache-2.0
"""The base of the robot's and the verifier's lifecycle nodes, which their parameters configure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher, LifecycleState, TransitionCallbackReturn
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger

from adahi_ros.core.texts import abridged
from adahi_ros.nodes.common.manager_bond import ManagerBond
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.reachable import ServiceReplies
from adahi_ros.nodes.common.spin import freeze_garbage

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

Change = Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response]


@dataclass(frozen=True)
class ManagedParameters:
    """Parameters of every managed node; each defines `autostart` itself, with its own default."""

    bond_heartbeat_period: float = parameter(
        0.1,
        "Time between heartbeats to nav2's lifecycle_manager, s; 0 for no bond. A node with autostart"
        " has no bond",
        0.0,
        60.0,
    )


class ManagedNode(LifecycleNode):
    """Opens its resources when it is configured, and closes them at cleanup, errors and shutdown.

    While active, it has a bond with the lifecycle manager that activated it. Its service `~/last_error`
    (std_srvs/Trigger) has the reason if it could not be configured, or has deactivated itself.

    Attributes:
        last_error: since the last configuration or activation; empty for none.

    Args:
        name: of the node.
        parameters: the dataclass of its parameters, `ManagedParameters` with `autostart`.
        options: of rclpy's node.
    """

    def __init__(self, name: str, parameters: type[Any], **options: Any) -> None:
        self._replies = ServiceReplies()
        super().__init__(name, **options)
        for service in self.services:  # includes those of its lifecycle
            self._replies.guard(service)
        self._declared = Parameters(self, parameters)
        self._opened = ExitStack()
        self._bond: ManagerBond | None = None
        self.last_error = ""
        self.create_service(Trigger, "~/last_error", self._on_last_error)
        if not self.get_parameter("autostart").value:
            self.get_logger().info("unconfigured; waits for 'configure' and 'activate'")
        self._service_change_state.callback = refusing(self._service_change_state.callback)

    def create_publisher(self, *arguments: Any, **options: Any) -> Publisher:
        """See rclpy. It has no events: one that waits while a publisher is destroyed ends the process."""
        options.setdefault("event_callbacks", PublisherEventCallbacks(use_default_callbacks=False))
        return super().create_publisher(*arguments, **options)

    def create_lifecycle_publisher(self, *arguments: Any, **options: Any) -> LifecyclePublisher:
        """See rclpy. It has no events, for the same reason."""
        options.setdefault("event_callbacks", PublisherEventCallbacks(use_default_callbacks=False))
        return super().create_lifecycle_publisher(*arguments, **options)

    def create_subscription(self, *arguments: Any, **options: Any) -> Subscription:
        """See rclpy. It has no events, for the same reason."""
        options.setdefault("event_callbacks", SubscriptionEventCallbacks(use_default_callbacks=False))
        return super().create_subscription(*arguments, **options)

    def create_service(self, *arguments: Any, **options: Any) -> Service:
        """See rclpy. A reply that cannot reach its client does not block the node."""
        service = super().create_service(*arguments, **options)
        self._replies.guard(service)
        return service

    @abstractmethod
    def _open(self, values: Any) -> None:
        """Open everything from these parameters; `self._opened` closes it.

        Raises:
            ValueError: a parameter cannot be used; names it, its value and what is allowed.
        """

    def _close(self) -> None:
        """Close everything; parameters can be set again."""
        self._opened.close()  # first, because it may bring a robot to rest
        self._dissolve_bond()
        self._declared.frozen = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load and open everything; parameters cannot be set any more."""
        try:
            self._open(self._declared.read())
        except Exception as error:  # noqa: BLE001  rclpy would end the transition without a log line
            self._close()
            self.last_error = abridged(str(error) if isinstance(error, ValueError) else repr(error))
            self.get_logger().error(f"cannot be configured: {self.last_error}")
            return TransitionCallbackReturn.FAILURE
        self.last_error = ""
        self._declared.frozen = True
        freeze_garbage()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let publishers publish; form the bond with a lifecycle manager."""
        self.last_error = ""
        activated = super().on_activate(state)
        if activated is TransitionCallbackReturn.SUCCESS and not self.get_parameter("autostart").value:
            self._form_bond(self.get_parameter("bond_heartbeat_period").value)
        return activated

    def _form_bond(self, period_s: float) -> None:
        if period_s and self._bond is None:
            self._bond = ManagerBond(self)
            self._bond.form(period_s)

    def _dissolve_bond(self) -> None:
        if self._bond is not None:
            self._bond.dissolve()
            self._bond = None

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let publishers publish no more; end the bond."""
        self._dissolve_bond()
        return super().on_deactivate(state)

    def _on_last_error(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = not self.last_error
        response.message = self.last_error
        return response

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything; parameters can be set again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    # After an error, a transition that has failed halfway, the node can be configured again.
    on_shutdown = on_error = on_cleanup

    def destroy_node(self) -> None:
        """End the node; the lifecycle manager notices at once."""
        self._dissolve_bond()
        super().destroy_node()
        vars(self).pop("_state_machine", None)  # else the domain has the node until it is collected
        self._replies.close()


def autostart(node: ManagedNode) -> None:
    """Configure and activate a node with `autostart`.

    Raises:
        ParameterError: it cannot be; the node has logged why.
    """
    if node.get_parameter("autostart").value:
        for transition in (node.trigger_configure, node.trigger_activate):
            if transition() is not TransitionCallbackReturn.SUCCESS:
                raise ParameterError("autostart: the node cannot be configured and activated, see its log")


def refusing(change_state: Change) -> Change:
    """Reply False to a transition that the state does not allow; rclpy would end the process."""

    def reply(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return change_state(request, response)
        except RuntimeError:  # rclpy's RCLError is one
            response.success = False
            return response

    return reply
