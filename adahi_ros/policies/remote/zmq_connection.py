# SPDX-License-Identifier: Apache-2.0
"""A ZeroMQ connection to the policy server of Isaac GR00T."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from adahi_ros.policies.remote.remote import LONGEST_ANSWER, ServerFault, TimedOut


class ZmqLink:
    """See `Link`. Its socket never reconnects: a new one is made instead, which drops late answers.

    ZeroMQ itself does not report that a server is away or gone; its monitor does.

    Args:
        url: such as tcp://gpu:5555.
        timeout_s: for connecting.

    Raises:
        ServerFault: there is no connection.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        import zmq

        self._alive = True
        self._socket: Any = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.REQ_CORRELATE, 1)  # REP sockets return the id: other answers are dropped
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST_ANSWER)
        self._monitor: Any = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
            | zmq.EVENT_CLOSED
            | zmq.EVENT_DISCONNECTED
        )
        try:
            self._socket.connect(url)
            self._await_connection(timeout_s)
        except zmq.ZMQError as error:
            self.close()
            raise ServerFault(f"not reachable: {error.strerror}") from None
        except ServerFault:
            self.close()
            raise

    def alive(self) -> bool:
        """See `Connection.alive`."""
        return self._alive and not self._monitor.poll(0)  # on a connected socket, any event is a fault

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """See `Connection.ask`."""
        import zmq

        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        try:
            deadline_s = time.monotonic() + timeout_s
            self._socket.send(message, zmq.NOBLOCK)
            ready = dict(poller.poll(round(1e3 * timeout_s)))
            while self._socket in ready:
                with contextlib.suppress(zmq.Again):  # it was the answer to another request
                    answer: bytes = self._socket.recv(zmq.NOBLOCK)
                    if not self._socket.getsockopt(zmq.RCVMORE):
                        return answer
                    raise ServerFault("answered in several parts: is no policy server")
                ready = dict(poller.poll(round(1e3 * max(0.0, deadline_s - time.monotonic()))))
        except zmq.ZMQError:  # the server is gone
            ready = {self._monitor: zmq.POLLIN}
        if self._monitor in ready:
            raise ServerFault(f"dropped the connection, or answered with more than {LONGEST_ANSWER} bytes")
        raise TimedOut(f"not answered for {timeout_s:.2g} s: is still starting, or stalls")

    def close(self) -> None:
        """See `Connection.close`."""
        if self._alive:
            self._alive = False
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._socket.close(0)

    def _await_connection(self, timeout_s: float) -> None:
        import zmq
        from zmq.utils.monitor import recv_monitor_message

        if not self._monitor.poll(round(1e3 * timeout_s)):
            raise ServerFault(f"not connected for {timeout_s:.2g} s: is still starting, or stalls")
        if recv_monitor_message(self._monitor)["event"] != zmq.EVENT_HANDSHAKE_SUCCEEDED:
            raise ServerFault("not reachable, or no policy server")
