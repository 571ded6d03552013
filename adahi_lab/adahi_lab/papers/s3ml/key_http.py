# SPDX-License-Identifier: Apache-2.0
"""The key service over HTTP. Keys are sealed end to end, so the connection needs no encryption of its own.

GET /challenge returns {"nonce"}. POST /keys takes `FIELDS`, and returns
{"public", "content"}; or status 400 or 403 with the reason; or 500, and only the service's log says why.
All bytes are in hex.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from adahi_lab.papers.s3ml.attestation import AttestationError, Attester, Digest, Evidence, PlatformName
from adahi_lab.papers.s3ml.key_files import MOST_BYTES
from adahi_lab.papers.s3ml.key_service import KeyRequest, KeyService, Sealed, fetch, report_of
from adahi_ros.core.schema import checked
from adahi_ros.core.texts import abridged

REQUEST_BYTES = 4096
TIMEOUT_S = 10.0  # of a connection in all: a client that sends byte by byte must not keep it
CLIENTS_MOST = 64  # at once; further connections are closed
FIELDS = ("nonce", "public", "platform", "measurement", "signature")


class KeyServer(ThreadingHTTPServer):
    """A server with a bounded number of connections."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.BoundedSemaphore(CLIENTS_MOST)
        self._ends_s: dict[socket.socket, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it."""
        if self._free.acquire(blocking=False):
            self._ends_s[request] = time.monotonic() + TIMEOUT_S
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See `ThreadingHTTPServer`."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._ends_s.pop(request, None)
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a traceback of a fault here, but nothing where a client ends its connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def service_actions(self) -> None:
        """End connections that have lasted too long; `serve_forever` calls it every half second."""
        for connection, end_s in self._ends_s.copy().items():
            if time.monotonic() > end_s:
                _cut(connection)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)


def key_server(service: KeyService, host: str, port: int) -> KeyServer:
    """Return a server that uses the service for one request at a time; `serve_forever` runs it.

    Raises:
        OSError: the address is in use, or not of this machine.
    """
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/challenge":
                self._reply(404, {"error": "no such page"})
            else:
                with one_at_a_time:
                    nonce = service.challenge()
                self._reply(200, {"nonce": nonce.hex()})

        def do_POST(self) -> None:
            if self.path != "/keys":
                self._reply(404, {"error": "no such page"})
                return
            try:
                size = int(self.headers.get("Content-Length", "-1"))
                if not 0 < size <= REQUEST_BYTES:
                    raise ValueError(f"Content-Length: {size}, must be 1 to {REQUEST_BYTES}")
                request = _request_of(json.loads(self.rfile.read(size)))
            except (ValueError, RecursionError) as fault:
                self._reply(400, {"error": str(fault)})
                return
            try:
                with one_at_a_time:
                    sealed = service.release(request)
            except AttestationError as refused:
                self._reply(403, {"error": str(refused)})
            except (ValueError, OSError):
                self._reply(500, {"error": "the service cannot release keys; its log says why"})
            else:
                self._reply(200, {"public": sealed.public.hex(), "content": sealed.content.hex()})

        def log_message(self, format: str, *arguments: Any) -> None:
            """The service says what matters."""

        def _reply(self, status: int, content: dict[str, str]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return KeyServer((host, port), Handler)


def _request_of(values: Any) -> KeyRequest:
    """Return the request of a JSON mapping.

    Raises:
        ValueError: a field is missing, too much, or no text of the right kind; names it.
    """
    if not isinstance(values, dict) or values.keys() != {*FIELDS}:
        raise ValueError(f"request: must have {', '.join(FIELDS)}")
    for name, value in values.items():
        if not isinstance(value, str) or len(value) > 256:
            raise ValueError(f"{name}: must be a text of at most 256 characters")
    nonce, public, signature = (_bytes(name, values[name]) for name in ("nonce", "public", "signature"))
    platform = checked(PlatformName, values["platform"], "platform")
    measurement = checked(Digest, values["measurement"], "measurement")
    return KeyRequest(nonce, public, Evidence(platform, measurement, report_of(nonce, public), signature))


def _bytes(name: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"{name}: must be hexadecimal digits") from None


def fetch_keys(url: str, attester: Attester) -> bytes:
    """Return the packed keys from the service at a URL, such as http://10.0.0.1:7800.

    Raises:
        AttestationError: it releases none, or its reply is no reply of a key service.
        OSError: it cannot be reached.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url: {url!r}, must begin with http:// or https://")

    def challenge() -> bytes:
        return _field(_asked(f"{url}/challenge"), "nonce")

    def release(request: KeyRequest) -> Sealed:
        evidence = request.evidence
        values = {
            **{"nonce": request.nonce.hex(), "public": request.public.hex()},
            **{"platform": evidence.platform, "measurement": evidence.measurement},
            "signature": evidence.signature.hex(),
        }
        reply = _asked(f"{url}/keys", json.dumps(values).encode())
        return Sealed(_field(reply, "public"), _field(reply, "content"))

    return fetch(attester, challenge, release)


def _field(reply: Any, name: str) -> bytes:
    try:
        return bytes.fromhex(reply[name])
    except (KeyError, TypeError, ValueError):
        raise AttestationError(f"{name}: missing in the reply") from None


def _asked(url: str, body: bytes | None = None, opened: Callable[..., Any] = urlopen) -> Any:
    most = 4 * MOST_BYTES
    try:
        with opened(HttpRequest(url, body), timeout=TIMEOUT_S) as reply:
            content = reply.read(most)
    except HTTPError as error:
        text = error.read(REQUEST_BYTES).decode(errors="replace")
        raise AttestationError(f"the key service refuses ({error.code}): {abridged(text)}") from None
    except URLError as error:
        raise OSError(f"{url}: {error.reason}") from None
    try:
        return json.loads(content)
    except ValueError:
        raise AttestationError(f"{url}: no reply of a key service") from None
