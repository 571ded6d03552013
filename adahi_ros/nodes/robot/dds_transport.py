# SPDX-License-Identifier: Apache-2.0
"""Requests to one or several verifiers over DDS."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.client import Client
from rclpy.exceptions import InvalidServiceNameException
from rclpy.node import Node
from rclpy.task import Future

from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.verifier_messages import from_described, from_reply, size_of, to_request
from adahi_ros.nodes.robot.draft_policy_parameters import DraftVerificationParameters
from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import Reply, Request, Sender
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.diagnosis import News
from adahi_ros.robot.transport import Sent, Transport

Read = Callable[[int, Any], Reply | Described]  # of the number of a request and a response


class VerifierClients:
    """The clients of one verifier's services.

    Robots in one process share them. With separate clients, each would read every reply.

    Attributes:
        describing, verifying: rclpy's.

    Args:
        node: spins them.
        reliability: of requests and replies, one of `RELIABILITIES`.
        namespace: of the services, relative to the node's or absolute; empty for the node's own.
    """

    def __init__(self, node: Node, reliability: str, namespace: str = "") -> None:
        self._node = node
        within, qos = namespace and f"{namespace.rstrip('/')}/", verify_qos(reliability)
        self.describing = node.create_client(DescribeTarget, f"{within}describe_target")
        self.verifying = node.create_client(VerifyDraft, f"{within}verify_draft", qos_profile=qos)

    @property
    def name(self) -> str:
        """Full name of the service `verify_draft` after remapping."""
        return str(self.verifying.service_name)

    @property
    def present(self) -> bool:
        """Whether both services are there."""
        return bool(self.describing.service_is_ready() and self.verifying.service_is_ready())

    @property
    def absence(self) -> str:
        """Reason why `verify_draft` is not there although a verifier offers it: another reliability."""
        mine = self.verifying.qos_profile.reliability
        replies = self._node.get_publishers_info_by_topic(f"rr{self.name}Reply", no_mangle=True)
        others = {each.qos_profile.reliability for each in replies} - {mine}
        return "; ".join(
            f"{self.name} has the reliability {other.name.lower()}: verification.reliability is "
            f"{mine.name.lower()}, must be the same at robot and verifier"
            for other in others
        )

    def destroy(self) -> None:
        """Free them."""
        for client in (self.describing, self.verifying):
            self._node.destroy_client(client)


class DdsTransport(Transport):
    """See `Transport`.

    Args:
        clients: of the verifier.
        sender: names the robot in messages.
        on_arrival: called when there is something to poll.
    """

    next_due_s = math.inf

    def __init__(self, clients: VerifierClients, sender: Sender, on_arrival: Callable[[], None]) -> None:
        self._clients = clients
        self._sender = sender
        self._on_arrival = on_arrival
        self._ids = count()
        self._futures: dict[int, tuple[Client, Future]] = {}
        self._arrived: list[Reply | Described] = []

    @property
    def present(self) -> bool:
        """Whether both services are there."""
        return self._clients.present

    @property
    def absence(self) -> str:
        """See `VerifierClients`."""
        return self._clients.absence

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request with this part of its window."""
        message = to_request(request, window, self._sender)
        sent = self._call(self._clients.verifying, message, from_reply)
        return Sent(sent, size_of(message))

    def describe(self) -> int:
        """Request the verifier's description; return the message's id."""
        message = DescribeTarget.Request(target=self._sender.target)
        return self._call(self._clients.describing, message, from_described)

    def poll(self) -> list[Reply | Described]:
        """Return what has arrived since the last call."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, sent: int) -> None:
        """Forget a message."""
        if sent in self._futures:
            client, future = self._futures.pop(sent)
            client.remove_pending_request(future)

    def _call(self, client: Client, message: object, read: Read) -> int:
        sent = next(self._ids)
        future = client.call_async(message)
        self._futures[sent] = client, future
        future.add_done_callback(partial(self._received, sent, read))
        return sent

    def _received(self, sent: int, read: Read, future: Future) -> None:
        if self._futures.pop(sent, None) is not None:
            self._arrived.append(read(sent, future.result()))
            self._on_arrival()


def open_verifiers(
    node: Node,
    values: DraftVerificationParameters,
    sender: Sender,
    on_arrival: Callable[[], None],
    on_news: Callable[[News], None],
    opened: ExitStack,
) -> Transport:
    """Open clients of all verifiers of a robot; return the transport of requests.

    Args:
        node: spins the clients.
        values: which verifiers, and when each gets requests.
        sender: names the robot in messages.
        on_arrival: called when there is something to poll.
        on_news: called when one of several verifiers is lost, returns, or is refused.
        opened: closes the clients.

    Raises:
        ParameterError: a namespace is invalid, or occurs twice.
    """
    transports: dict[str, Transport] = {}
    for namespace in ("", *values.backups):
        try:
            clients = VerifierClients(node, values.reliability, namespace)
        except InvalidServiceNameException:
            raise ParameterError(
                f"verification.backups: {namespace!r}, must be a namespace, such as backup or /server_2"
            ) from None
        opened.callback(clients.destroy)
        if clients.name in transports:
            raise ParameterError(
                f"verification.backups: {namespace!r}, must differ from the others: {clients.name}"
            )
        transports[clients.name] = DdsTransport(clients, sender, on_arrival)
    if not values.backups:
        return next(iter(transports.values()))
    from adahi_ros.robot.hedged_transport import HedgedTransport

    return HedgedTransport(transports, values.hedge, time.monotonic, on_news, values.hedge_unknown)
