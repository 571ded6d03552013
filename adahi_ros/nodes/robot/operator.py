# SPDX-License-Identifier: Apache-2.0
"""The operator's inputs: the deadman on `enable`, and the service `~/set_enabled`.

Both exist as long as the node does, so that a stop survives every transition of its lifecycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.reachable import ServiceReplies
from adahi_ros.safety.permission import Permission, Press

DEPTH = 100  # a true right after a false must not replace it
TIMEOUT_S = 0.5  # before the node is configured
UNSUPPORTED = 2**64 - 1  # a sequence number of a middleware that counts none
WARNING_PERIOD_S = 1.0


class Operator:
    """Receives the operator's inputs.

    Attributes:
        permission: of the operator to move.

    Args:
        node: gets the subscription and the service.
        active: whether the node is active; only an active node can be enabled by the service.
        changed: called after every message and call.
    """

    def __init__(self, node: LifecycleNode, active: Callable[[], bool], changed: Callable[[], None]) -> None:
        self._node = node
        self._active = active
        self._changed = changed
        self._warned_s = -WARNING_PERIOD_S
        self.permission = Permission(True, TIMEOUT_S)
        on_enable = with_info(self._on_enable)
        self._subscription = node.create_subscription(Bool, "enable", on_enable, QoSProfile(depth=DEPTH))
        self._service = DeferredService(node, SetBool, "~/set_enabled", self._on_set_enabled)
        self._replies = ServiceReplies()
        self._replies.guard(self._service)

    def _on_enable(self, message: Bool, info: Mapping[str, int]) -> None:
        now_s = time.monotonic()
        ignored = self.permission.receive(press_of(message.data, info, self._publishers()), now_s)
        if ignored and now_s - self._warned_s >= WARNING_PERIOD_S:
            self._warned_s = now_s
            self._node.get_logger().warning(f"ignored: {ignored}")
        self._changed()

    def _publishers(self) -> int:
        return self._node.count_publishers(self._subscription.topic_name)

    def _on_set_enabled(self, request: SetBool.Request, header: object) -> None:
        response = SetBool.Response()
        if request.data and not self._active():
            response.message = "the node is not active"
        else:
            # Humble's header has no timestamps.
            age_s = age_of(getattr(header, "source_timestamp", 0))
            ignored = self.permission.set_enabled(request.data, time.monotonic(), age_s)
            self._changed()
            response.success = not ignored
            response.message = ignored or ("enabled" if request.data else "disabled, held")
        self._service.send_response(response, header)


def age_of(stamp_ns: int) -> float:
    """Return the age of a timestamp by the system's clock, s; 0 without a timestamp."""
    return (time.time_ns() - stamp_ns) / NANOSECONDS if stamp_ns else 0.0


def press_of(value: bool, info: Mapping[str, int], publishers: int) -> Press:
    """Return a message on `enable` with its age.

    Args:
        value: of the message.
        info: rclpy's: timestamps in ns by the system's clock, 0 for none, and the publisher's count.
        publishers: on the topic.
    """
    source_ns, received_ns = info.get("source_timestamp", 0), info.get("received_timestamp", 0)
    age_s = age_of(source_ns or received_ns)
    sequence = info.get("publication_sequence_number", UNSUPPORTED)
    return Press(
        value,
        source_ns / NANOSECONDS if source_ns else None,
        age_s,
        None if sequence in (0, UNSUPPORTED) else sequence,
        publishers,
    )
