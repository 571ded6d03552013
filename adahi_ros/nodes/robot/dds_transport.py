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

from adahi_ros.nodes.common.bounds import check_response_bounds
from adahi_ros.nodes.common.messages import (
    fingerprint_number,
    from_description,
    from_reply,
    to_request,
)
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.robot.transport import Described, Reply, Sent, StepRequest
from adahi_ros.wire.request import RequestError
from adahi_ros.wire.sent_request import NO_FINGERPRINT, SentRequest
from adahi_ros.wire.texts import shortened
from adahi_ros.wire.window_updates import WindowUpdate

SESSION_BITS = 32


class DdsTransport:
    """See `Transport`.

    Args:
        node: spins the clients.
        robot_id: names the robot's stream of draws at the verifier.
        target: name of the policy to ask; empty takes the verifier's only one.
        fingerprint: of the draft's tokenizer; None where it has none.
        reliability: of requests and replies, a key of `RELIABILITIES`.
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
        self._robot_id = robot_id
        # No draw of an experiment, which would be repeated: it must differ from that of every other start.
        self._session_id = secrets.randbits(SESSION_BITS)
        self._target = target
        self._fingerprint = NO_FINGERPRINT if fingerprint is None else fingerprint_number(fingerprint)
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
        message = self.message(request, update)
        sent = self._call(self.verify_client, message, reply_of)
        return Sent(sent, len(serialize_message(message)))  # it is on its way, and there is time

    def message(self, request: StepRequest, update: WindowUpdate) -> VerifyDraft.Request:
        """Return what is sent of a request."""
        sent = SentRequest.of(
            request.draft,
            update,
            self._robot_id,
            request.episode,
            request.step,
            self._fingerprint,
            self._target,
        )
        return to_request(sent, self._session_id)

    def describe(self) -> int:
        """Ask the verifier what it is; return the message's id."""
        return self._call(self._describe_client, DescribeTarget.Request(), _described)

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


def reply_of(sent: int, response: VerifyDraft.Response) -> Reply:
    """Return what a response says to the message with that id."""
    try:
        check_response_bounds(response)
    except RequestError as error:  # it cannot be serialized, not even to measure it
        return Reply(sent, 0, "", 0, 0, 0, (), (), 0.0, False, 0, str(error))
    return Reply(
        sent,
        response.status,
        shortened(response.message),
        response.episode_id,
        response.step_id,
        response.first_step,
        *from_reply(response),
        response.compute_time_ms,
        response.window_kept,
        len(serialize_message(response)),
    )


def _described(sent: int, response: DescribeTarget.Response) -> Described:
    try:
        return Described(sent, from_description(response))
    except ValueError as error:
        return Described(sent, None, str(error))
