"""A lifecycle node that is configured by its parameters: what the robot's node and the verifier share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from adahi_ros.nodes.common.parameters import ParameterError, Parameters
from adahi_ros.nodes.common.spin import freeze_garbage
from adahi_ros.nodes.common.transitions import refusing
from adahi_ros.nodes.common.urgent_executor import Urgent

M = TypeVar("M", bound="ManagedNode")


class ManagedNode(LifecycleNode):
    """Opens all that it needs when it is configured, and closes it whatever ends that.

    Attributes:
        urgent: what its executor serves first.

    Args:
        name: of the node.
        parameters: the dataclass of its parameters, with `autostart` among them.
        options: of rclpy's node.
    """

    def __init__(self, name: str, parameters: type[Any], **options: Any) -> None:
        super().__init__(name, **options)
        self._declared = Parameters(self, parameters)
        self._opened = ExitStack()
        self.urgent = Urgent()
        if not self.get_parameter("autostart").value:
            self.get_logger().info("unconfigured; waits for 'configure' and 'activate'")
        self._service_change_state.callback = refusing(self._service_change_state.callback)

    @abstractmethod
    def _open(self, values: Any) -> None:
        """Open everything, by these parameters; `self._opened` closes it.

        Raises:
            ValueError: the parameters cannot be had; names one, its value and what is allowed.
        """

    def _close(self) -> None:
        """Close everything; parameters can be set again."""
        self.urgent = Urgent()
        self._opened.close()
        self._declared.frozen = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load what is needed, and open it; parameters cannot be set any more."""
        try:
            self._open(self._declared.read())
        except Exception as error:  # noqa: BLE001  rclpy would end the transition without a word
            self._close()
            reason = error if isinstance(error, ValueError) else repr(error)
            self.get_logger().error(f"cannot be configured: {reason}")
            return TransitionCallbackReturn.FAILURE
        self._declared.frozen = True
        freeze_garbage()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything; parameters can be set again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything, after a transition that has failed halfway; the node can be configured again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS


def started(make: Callable[[], M]) -> M:
    """Make a node; with `autostart`, configured and active.

    Raises:
        ParameterError: it cannot be; the node has said why.
    """
    node = make()
    if node.get_parameter("autostart").value:
        for transition in (node.trigger_configure, node.trigger_activate):
            if transition() is not TransitionCallbackReturn.SUCCESS:
                raise ParameterError("autostart: the node cannot be configured and activated, as it has said")
    return node
