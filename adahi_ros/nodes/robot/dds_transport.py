"""The verifier's two services as a `Transport`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Future

from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.robot.request_messages import Sender, described_of, reply_of
from adahi_ros.robot.transport import Described, Reply, Sent, StepRequest
from adahi_ros.wire.window_updates import WindowUpdate

SESSION_BITS = 32


class DdsTransport:
    """See `Transport`.

    Args:
        node: spins the clients.
        robot_id: names the robot's stream of draws at the verifier.
        target: name of the policy to ask; empty takes the verifier's first.
        fingerprint: of the draft's tokenizer; None where it has none.
        reliability: of requests and replies, one of `RELIABILITIES`.
        on_arrival: called when there is something to poll.
    """

    def __init__(
        self,
        node: Node,
        robot_id: str,
        target: str,
        fingerprint: str | None,
        reliability: str,
        on_arrival: Callable[[], None],
    ) -> None:
        self._node = node
        # No draw of an experiment, which would be repeated: it must differ from that of every other start.
        self.sender = Sender(robot_id, secrets.randbits(SESSION_BITS), target, fingerprint)
        self._on_arrival = on_arrival
        self._ids = count()
        self._futures: dict[int, tuple[Any, Future]] = {}
        self._arrived: list[Reply | Described] = []
        qos = verify_qos(reliability)
        self._describe_client = node.create_client(DescribeTarget, "describe_target")
        self.verify_client = node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)

    @property
    def present(self) -> bool:
        """Whether both services are there."""
        return bool(self._describe_client.service_is_ready() and self.verify_client.service_is_ready())

    def submit(self, request: StepRequest, update: WindowUpdate) -> Sent:
        """Send a request, of whose window only this."""
        message = self.sender.message(request, update)
        sent = self._call(self.verify_client, message, reply_of)
        return Sent(sent, len(serialize_message(message)))  # it is on its way, and there is time

    def describe(self) -> int:
        """Ask the verifier what it is; return the message's id."""
        message = DescribeTarget.Request(target=self.sender.target)
        return self._call(self._describe_client, message, described_of)

    def poll(self) -> list[Reply | Described]:
        """Return what has come since."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, sent: int) -> None:
        """Forget a message."""
        if sent in self._futures:
            client, future = self._futures.pop(sent)
            client.remove_pending_request(future)

    def destroy(self) -> None:
        """Free the clients."""
        for client in (self._describe_client, self.verify_client):
            self._node.destroy_client(client)

    def _call(self, client: Any, message: Any, read: Callable[[int, Any], Reply | Described]) -> int:
        sent = next(self._ids)
        future = client.call_async(message)
        self._futures[sent] = client, future
        future.add_done_callback(partial(self._received, sent, read))
        return sent

    def _received(self, sent: int, read: Callable[[int, Any], Reply | Described], future: Future) -> None:
        if self._futures.pop(sent, None) is not None:
            self._arrived.append(read(sent, future.result()))
            self._on_arrival()
