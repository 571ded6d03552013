# SPDX-License-Identifier: Apache-2.0
"""The door for clients of openpi's protocol: `openpi_client.WebsocketClientPolicy` and all that speak so.

The server first sends its metadata, a mapping. It answers each observation with a mapping with `actions`
(T, A) float32. It answers what it refuses with a text, one sentence, which the client raises as an error; the
connection stays. A client that asks too often waits. The path of the address is the target's name, as in
`ws://server:8000/ball/target`; without a path it is the default target.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
import time
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from adahi_ros.core.schema import load
from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.doors.asking import Asking
from adahi_ros.doors.interface import Front, OpenDoor
from adahi_ros.doors.listening import BoundedListener, Seats, of_this_machine, read_named
from adahi_ros.doors.observations import ClientFile, ObservationReader, reader_of
from adahi_ros.doors.openpi import OpenPiDoor
from adahi_ros.doors.tokens import Tokens
from adahi_ros.policies.remote.packed_arrays import PackedError, check_values, pack_openpi, unpack_openpi
from adahi_ros.policies.remote.server_fields import INSTALL
from adahi_ros.protocol.request import OK, SESSION_BITS, Request, RequestError, RequestFault

VALUES_MOST = 4096  # in a message; an array has about ten
MESSAGE_BYTES = 1 << 20  # of a message, beside what a target reads: for cameras that it does not read
HANDSHAKE_S = 5.0
CLOSING_S = 1.0
REASON_LENGTH = 120  # of a websocket's closing
GOING_AWAY, NOT_ALLOWED, TRY_AGAIN = 1001, 1008, 1013  # codes of it


def opened(door: OpenPiDoor) -> OpenDoor:
    """Begin to listen; see `Door.open`."""
    for package in ("msgpack", "websockets"):
        if find_spec(package) is None:
            raise ValueError(f"port: {door.port}, needs {package}: {INSTALL}")
    if not door.tokens_file and not of_this_machine(door.address):
        raise ValueError(
            f"tokens_file: '', must name a file of tokens, because address: {door.address!r} is not only "
            "of this machine"
        )
    tokens = read_named("tokens_file", door.tokens_file, Tokens)
    file = read_named("keys_file", door.keys_file, _client_file) or ClientFile()
    encrypts = _encryption(door.certificate, door.key)
    try:
        listener = BoundedListener(door.address, door.port)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"port: {door.port}, cannot listen at {door.address!r}: {reason}") from None
    return OpenedOpenPi(door, listener, tokens, file, encrypts)


def _client_file(path: Path) -> ClientFile:
    file = load(ClientFile, path)
    try:
        pack_openpi(file.metadata)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: metadata: {error}") from None
    return file


def _encryption(certificate: str, key: str) -> ssl.SSLContext | None:
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "key" if certificate else "certificate"
        raise ValueError(f"{missing}: '', must name a file: certificate and key belong together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(Path(certificate).expanduser(), Path(key).expanduser(), lambda: "")
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise ValueError(f"certificate: {certificate!r} with key {key!r}: {error}") from None
    return context


class OpenedOpenPi(OpenDoor):
    """The door, open.

    Args:
        door: its arguments.
        listener: takes connections.
        tokens: of clients; None lets in all.
        file: of the clients' keys.
        encrypts: TLS; None for none.
    """

    def __init__(
        self,
        door: OpenPiDoor,
        listener: BoundedListener,
        tokens: Tokens | None,
        file: ClientFile,
        encrypts: ssl.SSLContext | None,
    ) -> None:
        self._listener, self._tokens, self._encrypts, self.file = listener, tokens, encrypts, file
        self._seats = Seats(door.connections)
        self.session = secrets.randbits(SESSION_BITS)
        scheme = "ws" if encrypts is None else "wss"
        self.address = f"{scheme}://{door.address}:{listener.getsockname()[1]}"
        self.warning = ""
        if encrypts is None and not of_this_machine(door.address):
            self.warning = (
                f"{self.address}: is not encrypted: its network can read tokens and observations; set "
                "certificate and key, or put a proxy with TLS before it"
            )

    def close(self) -> None:
        """See `OpenDoor`."""
        self._listener.close()

    async def serve(self, front: Front) -> None:
        """See `OpenDoor`."""
        from websockets.asyncio.server import serve

        # The library would log each fault of a client, with a traceback.
        silent = logging.Logger(f"{__name__}.library", logging.CRITICAL + 1)
        conversations: set[_Conversation] = set()
        async with serve(
            partial(self._enter, front, conversations),
            sock=self._listener,
            ssl=self._encrypts,
            process_request=self._refused,
            compression=None,
            max_size=self._most_bytes(front),
            max_queue=1,
            open_timeout=HANDSHAKE_S,
            close_timeout=CLOSING_S,
            server_header=None,
            logger=silent,
        ):
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                for each in conversations:
                    each.end()

    def _most_bytes(self, front: Front) -> int:
        """Return the size of the largest message."""
        signatures = [front.targets.named(name).description.signature for name in front.targets.names]
        return MESSAGE_BYTES + max(ObservationReader(each, self.file).most_bytes() for each in signatures)

    def client(self, request: Any) -> str | None:
        """Return the name of the client that sent a request of HTTP; None without one of the tokens.

        Without tokens all clients have an empty name.
        """
        if self._tokens is None:
            return ""
        return self._tokens.client(" ".join(request.headers.get_all("Authorization")))

    def _refused(self, connection: Any, request: Any) -> Any:
        """Return the answer to a request of HTTP that opens no websocket, else None."""
        if request.path == "/healthz":
            return connection.respond(HTTPStatus.OK, "OK\n")
        if request.headers.get_all("Origin"):  # any page in a browser could connect to this machine
            return connection.respond(HTTPStatus.FORBIDDEN, "Origin: must not be there, as from a browser\n")
        if self.client(request) is None:
            allowed = "must be 'Api-Key TOKEN' or 'Bearer TOKEN', with a token of this door"
            return connection.respond(HTTPStatus.UNAUTHORIZED, f"Authorization: {allowed}\n")
        return None

    async def _enter(self, front: Front, conversations: set[_Conversation], connection: Any) -> None:
        """Serve a connection until its end."""
        from websockets.exceptions import ConnectionClosed

        self._listener.entered(connection.transport.get_extra_info("socket").fileno())
        client = self.client(connection.request)
        if client is None:
            return
        with contextlib.suppress(ConnectionClosed):
            try:
                with self._seats.taken(client) as (seat, count):
                    conversation = _Conversation(self, front, connection, client, seat, count)
                    conversations.add(conversation)
                    try:
                        await conversation.run()
                    finally:
                        conversations.discard(conversation)
            except RequestError as error:
                code = TRY_AGAIN if error.fault is RequestFault.BUSY else NOT_ALLOWED
                await connection.close(code, shortened(str(error), REASON_LENGTH))


class _Conversation:
    """One connection.

    Args:
        door: of the connection.
        front: the engine.
        connection: the library's.
        client: its name.
        seat: number of the client's connection.
        count: number of the door's connection.
    """

    def __init__(
        self, door: OpenedOpenPi, front: Front, connection: Any, client: str, seat: int, count: int
    ) -> None:
        self._door, self._front, self._connection, self._client = door, front, connection, client
        name = unquote(connection.request.path.partition("?")[0]).strip("/")[: NAME_LENGTH + 1]
        robot = "/".join(filter(None, ("openpi", client, str(seat))))
        header = Request(count, 0, 0, robot_id=robot, session=door.session, target=name)
        self._asking = Asking(front, header, ("openpi", client))
        self._target = front.targets.named(name)
        self._reader = reader_of(self._target, door.file)
        self.end = self._asking.end

    async def run(self) -> None:
        """Answer until the connection ends.

        Raises:
            RequestError: the target has become another one.
        """
        about = {"target": self._target.description.target, **self._reader.metadata()}
        await self._connection.send(pack_openpi({**about, **self._door.file.metadata}))
        before_ms = None
        async for message in self._connection:
            came_s = time.monotonic()
            if self._door.client(self._connection.request) != self._client:
                raise RequestError(RequestFault.UNKNOWN_ROBOT, "token: is in the file of tokens no more")
            answer = await self._answer(message, came_s, before_ms)
            if answer is None:
                await self._connection.close(GOING_AWAY)
                return
            await self._connection.send(answer)
            before_ms = 1e3 * (time.monotonic() - came_s)

    async def _answer(
        self, message: bytes | str, came_s: float, before_ms: float | None
    ) -> bytes | str | None:
        """Return the answer to a message, a text for a refusal; None at the end."""
        answered = await self._asking.answer(partial(self._read, message), came_s)
        if answered is None:
            return None
        reply, waited_s, batch_s = answered
        if reply.status != OK:
            return reply.message
        timing = {"infer_ms": 1e3 * waited_s} | ({} if before_ms is None else {"prev_total_ms": before_ms})
        actions = np.asarray(reply.actions, np.float32)
        return pack_openpi(
            {
                "actions": actions.reshape(-1, self._target.description.signature.action_dim),
                "server_timing": timing,
                "policy_timing": {"infer_ms": 1e3 * batch_s},
            }
        )

    def _read(self, message: bytes | str, header: Request) -> Request:
        """Return the request of a message, with a fault where it is wrong."""
        try:
            target = self._front.targets.named(header.target)
            if target is not self._target:
                self._target, self._reader = target, reader_of(target, self._door.file)
            if isinstance(message, str):
                raise PackedError(f"a text of {len(message)} characters, must be bytes of msgpack")
            check_values(message, VALUES_MOST)
            return self._reader.request(unpack_openpi(message), header)
        except PackedError as error:
            fault = RequestError(RequestFault.WRONG_SHAPE, f"message: {error}")
        except RequestError as error:
            fault = error.with_traceback(None)
        return replace(header, fault=fault)
