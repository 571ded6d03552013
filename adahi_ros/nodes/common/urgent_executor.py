# SPDX-License-Identifier: Apache-2.0
"""An executor that waits for a few urgent things, and looks at everything else now and then.

rclpy's executors build their wait set anew, in Python, at every event, from every service, timer,
publisher's event and subscription of the node, and ask each of them afterwards: most of what a small
service call costs. The target's reply cannot wait for that; a request for a parameter can. So
between looks this one waits as `rclpy.wait_for_message` does, on a wait set of its own.

Observation to command with a request, at both ends over loopback, on two busy cores: p50 5.9 ms in the place
of 7.2, p95 21 in that of 24, by `.venv/bin/python benchmarks/executors.py compare`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service
from rclpy.signals import SignalHandlerGuardCondition
from rclpy.subscription import Subscription

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.nodes.common.reachable import ServiceReplies

REQUEST_INFO = "request_info"  # attribute of an urgent service: when its newest request was sent
LOOK_AROUND_S = 0.05  # what is not urgent waits for so long at most


class Serving(Protocol):
    """Serves services that have an order of their own.

    Attributes:
        services: rclpy's.
    """

    services: Sequence[Any]

    @property
    def wait_s(self) -> float:
        """How long until something is due of what was taken from it before; infinite where nothing is."""

    def serve(self) -> bool:
        """Serve what is due; return whether there was anything."""


@dataclass(frozen=True)
class Urgent:
    """What a node must serve at once; where several are ready, in this order (but when it looks around).

    Guards, which any thread may trigger, end a wait: something of the others is due.
    """

    clients: Sequence[Any] = ()
    services: Sequence[Any] = ()
    turns: Sequence[Serving] = ()
    timers: Sequence[Any] = ()
    subscriptions: Sequence[Any] = ()
    guards: Sequence[Any] = ()


class UrgentExecutor(SingleThreadedExecutor):
    """Spins one node.

    Args:
        node: to spin.
        urgent: asked before every wait.
    """

    def __init__(self, node: Node, urgent: Callable[[], Urgent]) -> None:
        super().__init__(context=node.context)
        self.add_node(node)
        self._ros_context = node.context
        self._urgent = urgent
        self._next_look = 0.0
        self._busy = False
        self._replies = ServiceReplies()
        self._interrupt = SignalHandlerGuardCondition(context=node.context)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback and execute it, or look around; waits for `LOOK_AROUND_S` at most.

        Args:
            timeout_sec: returns after that, too.

        Raises:
            ExternalShutdownException: the context was shut down, as by a signal.
        """
        left_s = self._next_look - time.monotonic()
        if left_s > 0.0:
            self._execute_urgent(left_s if timeout_sec is None else max(0.0, min(left_s, timeout_sec)))
        else:
            self._look_around()
            self._execute_urgent(0.0)  # who keeps the others busy does not keep it from these

    def can_execute(self, entity: Any) -> bool:
        """Leave urgent services to `_execute_urgent`, which keeps the timestamps of their requests."""
        return entity not in self._urgent().services and super().can_execute(entity)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """See rclpy."""
        self._replies.close()
        return super().shutdown(timeout_sec)

    def _look_around(self) -> None:
        """Execute one callback of those that are ready, urgent or not."""
        handler: Any
        entity: Any
        try:
            handler, entity, _ = self.wait_for_ready_callbacks(0)
        except TimeoutException:
            # Callbacks leave tasks behind, such as those of a reply; the end is where nothing was done.
            if not self._busy:
                self._next_look = time.monotonic() + LOOK_AROUND_S
            self._busy = False
            return
        urgent = self._urgent()
        if isinstance(entity, Service):  # anyone's request; its reply must not block what is urgent
            self._replies.guard(entity)
        handler()
        if entity is None:  # a task; one that waits on for something is looked at again at the next look
            self._busy |= handler.done()
        else:
            self._busy |= entity not in (*urgent.services, *urgent.timers, *urgent.subscriptions)
        handler.result()  # raises what the callback raised

    def _execute_urgent(self, timeout_s: float) -> None:
        urgent = self._urgent()
        services = (*urgent.services, *(service for each in urgent.turns for service in each.services))
        sizes = (
            len(urgent.subscriptions),
            1 + len(urgent.guards),
            len(urgent.timers),
            len(urgent.clients),
            len(services),
        )
        waited = rclpy_implementation.WaitSet(*sizes, 0, self._ros_context.handle)
        waited.clear_entities()
        waited.add_guard_condition(self._interrupt.handle)
        for guard in urgent.guards:
            waited.add_guard_condition(guard.handle)
        for client in urgent.clients:
            waited.add_client(client.handle)
        for service in urgent.services:
            self._replies.guard(service)
        for service in services:
            waited.add_service(service.handle)
        for timer in urgent.timers:
            waited.add_timer(timer.handle)
        for subscription in urgent.subscriptions:
            waited.add_subscription(subscription.handle)
        kinds = (
            (urgent.clients, _take_reply),
            (urgent.services, _serve),
            (urgent.turns, _serve_in_turn),
            (urgent.timers, _call),
            (urgent.subscriptions, _take_message),
        )
        timeout_s = min([timeout_s, *(each.wait_s for each in urgent.turns)])
        waited.wait(round(timeout_s * NANOSECONDS))
        if not self._ros_context.ok():
            raise ExternalShutdownException
        # Each is asked for what it has, and not first the wait set for which have something: it is sooner.
        for entities, take in kinds:
            for entity in entities:
                if take(entity):
                    return  # to what is ready next, which this one may have changed


def _take_reply(client: Any) -> bool:
    header, response = client.handle.take_response(client.srv_type.Response)
    if header is None:
        return False
    try:
        future = client.get_pending_request(header.request_id.sequence_number)
    except KeyError:  # nobody waits for it any more
        return True
    future.set_result(response)
    return True


def _serve(service: Any) -> bool:
    request, header = service.handle.service_take_request(service.srv_type.Request)
    if header is None:
        return False
    setattr(service, REQUEST_INFO, header)
    service.send_response(service.callback(request, service.srv_type.Response()), header)
    return True


def _serve_in_turn(serving: Serving) -> bool:
    return serving.serve()


def _call(timer: Any) -> bool:
    if not timer.handle.is_timer_ready():  # a cancelled one may still wake the wait set
        return False
    timer.handle.call_timer()
    timer.callback()
    return True


def _take_message(subscription: Any) -> bool:
    taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    if taken is None:
        return False
    with_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo
    subscription.callback(*(taken if with_info else taken[:1]))
    return True
