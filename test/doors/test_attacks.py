"""Clients that want a door, or the others behind it, to fail: another client keeps its replies."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from test.doors.served import ARM, LIMIT_S, SEEN, STATE, Client, Planner, Served, served  # isort: skip
from websockets.exceptions import ConnectionClosed, WebSocketException

from adahi_ros.core.signature import Feature, Signature
from adahi_ros.doors.listening import UNKNOWN_MOST, BoundedListener
from adahi_ros.doors.openpi_server import VALUES_MOST
from test.certificates import self_signed
from test.waiting import wait_for

ROUNDS = 20


def place_of(door: Served) -> tuple[str, int]:
    host, _, port = door.address.rpartition("/")[2].rpartition(":")
    return host, int(port)


def is_served(client: Client) -> None:
    """Check that a client gets its plans."""
    for at in range(ROUNDS):
        plan = client.plan({**SEEN, "observation.state": STATE + at})
        np.testing.assert_allclose(plan[0], STATE[:2] + at, rtol=1e-6)


def array(data: bytes, dtype: str, shape: Any) -> dict[bytes, Any]:
    return {b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}


BOMBS = {
    "lists in lists": b"\x91" * 60_000,
    "empty lists": b"\xdd\x00\x00\xea\x60" + b"\x90" * 60_000,
    "an entry that is not there": b"\xdd\xff\xff\xff\xff",
    "a text that is not there": b"\xdb\xff\xff\xff\xffabc",
    "an extension": msgpack.packb(msgpack.ExtType(5, b"x" * 100)),
    "a pickle": msgpack.packb({"observation.state": array(b"cos\nsystem\n", "|O", [1])}),
    "terabytes": msgpack.packb({"observation.state": array(b"", "<f8", [1 << 20, 1 << 20])}),
    "axes": msgpack.packb({"observation.state": array(b"\0", "|u1", [1] * 60)}),
    "less than no axis": msgpack.packb({"observation.state": array(b"", "<f4", [-1])}),
    "an array without data": msgpack.packb({"observation.state": {b"__ndarray__": True}}),
    "keys that are lists": b"\x81\x91\x01\x01",
    "a key twice": b"\x82" + 2 * (msgpack.packb("observation.state") + msgpack.packb([1, 2, 3])),
    "a mapping in itself, 1000 deep": b"\x81\xa1a" * 1000 + b"\xc0",
    "a number that is none": msgpack.packb({"observation.state": {b"__npgeneric__": True, b"data": [0]}}),
    "control characters": msgpack.packb({"\x1b[2J" * 20: 1}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_message_that_lies_is_refused_in_a_sentence(door: Served, planner: Planner, name: str) -> None:
    with Client(door.address) as attacker, Client(door.address) as client:
        answer = attacker.ask(BOMBS[name])
        assert isinstance(answer, str)
        assert answer.isprintable()
        assert 0 < len(answer) <= 512
        assert not planner.seen
        is_served(client)


def test_values_are_counted_before_any_is_made(door: Served) -> None:
    with Client(door.address) as attacker:
        most = f"with more than {VALUES_MOST} values"
        assert most in attacker.ask(b"\x91" * 60_000)
        assert most in attacker.ask(msgpack.packb({"a": [0] * VALUES_MOST}))
        assert most not in attacker.ask(msgpack.packb({"a": [0] * (VALUES_MOST - 3)}))


def test_a_message_that_is_too_long_ends_its_connection(door: Served) -> None:
    """Also one that is not sent, but only announced."""
    with Client(door.address) as client, Client(door.address) as attacker:
        with pytest.raises(ConnectionClosed, match="1009"):
            attacker.ask({**SEEN, "observation.images.front": np.zeros((1000, 1000, 3), np.uint8)})
        with Client(door.address) as announcing:
            announcing.connection.socket.sendall(b"\x82\xff" + (1 << 40).to_bytes(8, "big") + b"mask")
            with pytest.raises(ConnectionClosed, match="1009"):
                announcing.receive()
        is_served(client)


def test_silent_connections_keep_no_client_out(door: Served) -> None:
    with ExitStack() as stack:
        for _ in range(UNKNOWN_MOST + 3):
            silent = stack.enter_context(socket.create_connection(place_of(door)))
            silent.sendall(b"GET / HTTP/1.1\r\n")
        with Client(door.address) as client:
            is_served(client)


def test_connections_silent_in_tls_keep_no_client_out(planner: Planner, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    with served(planner, certificate=str(certificate), key=str(key)) as door, ExitStack() as stack:
        for _ in range(UNKNOWN_MOST + 3):
            stack.enter_context(socket.create_connection(place_of(door)))
        with Client(door.address, ssl=trusting) as client:
            is_served(client)


def test_of_the_silent_connections_the_oldest_is_dropped() -> None:
    with BoundedListener("127.0.0.1", 0) as listener, ExitStack() as stack:
        taken = []
        for _ in range(UNKNOWN_MOST + 1):
            stack.enter_context(socket.create_connection(listener.getsockname()))
            taken.append(stack.enter_context(listener.accept()[0]))
            if len(taken) == 1:
                listener.entered(taken[0].fileno())  # with a finished handshake it stays
        taken.append(stack.enter_context(socket.create_connection(listener.getsockname())))
        stack.enter_context(listener.accept()[0])
        taken[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            taken[0].recv(1)
        assert taken[1].recv(1) == b""  # it was shut down


def test_a_flood_of_connections_costs_others_nothing(door: Served) -> None:
    """Of one address, the first ones enter and the others are dropped at once."""
    over = threading.Event()
    dropped: list[bool] = []

    def flood() -> None:
        while not over.is_set():
            with suppress(OSError), socket.create_connection(place_of(door), LIMIT_S) as one:
                one.settimeout(LIMIT_S)
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
                dropped.append(not one.recv(1))

    with Client(door.address) as client:
        threads = [threading.Thread(target=flood) for _ in range(4)]
        for each in threads:
            each.start()
        wait_for(lambda: any(dropped))
        is_served(client)
        over.set()
        for each in threads:
            each.join()


def test_who_does_not_read_is_not_served_any_more() -> None:
    signature = Signature(1, 2000, 30, (Feature("observation", 30),))  # a plan of 240 kB
    planner = Planner(signature)
    message = {"observation": np.zeros(30, np.float32)}
    with served(planner) as door, Client(door.address) as client:
        with Client(door.address, max_size=None) as attacker:
            blocked = threading.Thread(target=_send_for_ever, args=(attacker, message))
            blocked.start()
            served_before = -1
            while served_before < (served_now := len(planner.seen)):  # until its buffers are full
                for _ in range(ROUNDS):
                    client.plan(message)
                served_before = served_now + ROUNDS
            np.testing.assert_array_equal(client.plan(message)[0], 0.0)
        blocked.join(LIMIT_S)
        assert not blocked.is_alive()


def _send_for_ever(client: Client, message: Any) -> None:
    with suppress(OSError, WebSocketException):
        while True:
            client.send(message)


def test_who_does_not_wait_for_answers_gets_them_in_order(door: Served, planner: Planner) -> None:
    """And has one request at a time; another client of the door is served beside it."""
    with Client(door.address) as client, Client(door.address) as hasty:
        for at in range(3 * ROUNDS):
            hasty.send({**SEEN, "observation.state": STATE + at})
        is_served(client)
        for at in range(3 * ROUNDS):
            np.testing.assert_allclose(hasty.receive()["actions"][0], STATE[:2] + at, rtol=1e-6)
    assert max(planner.sizes) <= 2


def test_a_connection_that_ends_in_a_message_costs_nothing(door: Served, planner: Planner) -> None:
    with Client(door.address) as client:
        for length in (1, 3, 100):
            half = Client(door.address)
            half.connection.socket.sendall((b"\x82\xfe\x7f\xff" + bytes(200))[:length])
            with half:
                is_served(client)
        planner.may.clear()
        planner.waiting.clear()
        gone = Client(door.address)
        with gone:
            gone.send(SEEN)
            wait_for(planner.waiting.is_set)
        planner.may.set()
        is_served(client)


def test_guessed_tokens_open_nothing(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("arm 0123456789abcdef-arm\n")
    planner = Planner(replace(ARM, instruction=False))
    with served(planner, tokens_file=str(tokens)) as door:
        for at in range(ROUNDS):
            with pytest.raises(WebSocketException, match="HTTP 401"):
                Client(door.address, additional_headers={"Authorization": f"Api-Key {at:016}-arm"})
        with Client(
            door.address, additional_headers={"Authorization": "Api-Key 0123456789abcdef-arm"}
        ) as client:
            is_served(client)
    assert len(planner.seen) == ROUNDS
