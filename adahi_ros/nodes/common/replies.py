# SPDX-License-Identifier: Apache-2.0
"""Service calls with a deadline for coroutines; rclpy's futures wait for ever."""

from __future__ import annotations

import time
from typing import Any

from rclpy.client import Client
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.task import Future

from adahi_ros.nodes.common.timers import steady_timer

LOOK_S = 0.02  # between checks for a service that is not there yet


class NotRepliedError(RuntimeError):
    """A service did not reply in time, or cannot reply any more; the message names it."""


async def replied(
    node: Node, client: Client, request: object, wait_s: float, given_up: Future | None = None
) -> Any:
    """Wait for a service, send a request, and return its reply.

    Args:
        node: its executor runs the coroutine.
        client: of the service.
        request: to send.
        wait_s: for the service and its reply together.
        given_up: when it is done, the wait ends, and nothing is sent.

    Raises:
        NotRepliedError: there is no reply in time, or the client was destroyed.
    """
    end_s = time.monotonic() + wait_s
    future = await sent(node, client, request, wait_s, given_up)
    await elapsed(node, max(0.0, end_s - time.monotonic()), future, given_up)
    if not future.done():
        client.remove_pending_request(future)
        raise NotRepliedError(f"{client.srv_name}: no reply for {wait_s:g} s")
    return future.result()


async def sent(
    node: Node, client: Client, request: object, wait_s: float, given_up: Future | None = None
) -> Future:
    """Wait for a service, send a request, and return the future of its reply.

    The arguments are those of `replied`.

    Raises:
        NotRepliedError: `given_up` is done, or the client was destroyed.
    """
    end_s = time.monotonic() + wait_s
    given_up = given_up or Future()
    try:
        while not (client.service_is_ready() or given_up.done()) and time.monotonic() < end_s:
            await elapsed(node, LOOK_S)
        if given_up.done():
            raise NotRepliedError(f"{client.srv_name}: request given up")
        return client.call_async(request)
    except InvalidHandle:
        raise NotRepliedError(f"{client.srv_name}: the client was destroyed") from None


async def elapsed(node: Node, duration_s: float, *futures: Future | None) -> None:
    """Wait for a time, or until one of these futures is done; None among them is ignored."""
    over = Future()

    def end(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = steady_timer(node, duration_s, end)
    for future in futures:
        if future is not None:
            future.add_done_callback(end)
    try:
        await over
    finally:
        node.destroy_timer(timer)
