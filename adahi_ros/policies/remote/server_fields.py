# SPDX-License-Identifier: Apache-2.0
"""Fields of a target file about its server: its address, and constants sent to it."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import field
from hashlib import blake2b
from typing import Annotated
from urllib.parse import urlsplit

import numpy as np
from pydantic import AfterValidator, PlainValidator, WrapValidator
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Text, above, checked, must, within
from adahi_ros.policies.remote.target_fields import Number, TargetFile

TIMEOUT_S = 2.0
LONGEST_TIMEOUT_S = 60.0
MOST_CONNECTIONS = 256
INSTALL = "pip install -r requirements/remote_targets.txt"


def _constant(value: object) -> object:
    """Return the value to send for a constant: a list of numbers as an array (N,) float32, else unchanged."""
    if isinstance(value, list):
        return np.array(checked(list[Number], value), dtype=np.float32)
    if not isinstance(value, bool | int | float | str):
        raise ValueError("must be a number, a text, true, false or a list of numbers")
    return value


def _secret(variable: str) -> str:
    secret = os.environ.get(variable, "")
    if not secret:
        raise ValueError("must be the name of an environment variable that is set")
    return secret


Secret = Annotated[Text, AfterValidator(_secret)]
"""In the file, the name of an environment variable: a file contains no secrets."""


ADDRESSES = {
    "ws": "ws://HOST:PORT/PATH",
    "wss": "wss://HOST:PORT/PATH",
    "tcp": "tcp://HOST:PORT",
    "tls": "tls://HOST:PORT",
}
"""Forms of addresses by scheme; of websockets, port and path may be left out."""


def address(*schemes: str) -> WrapValidator:
    """Return the check of an address with one of some schemes."""

    def holds(url: str) -> bool:
        try:
            parts = urlsplit(url)
            known = parts.scheme in schemes and parts.hostname and (parts.port or websocket(url))
        except ValueError:  # no such port
            known = False
        # No user and no query: they are where tokens would be, and addresses are logged.
        return bool(known) and url.isprintable() and not set(" @?#") & set(url)

    return must(f"be {' or '.join(ADDRESSES[scheme] for scheme in schemes)}", holds)


def websocket(url: str) -> bool:
    """Whether an address is that of a websocket."""
    return url.startswith(("ws://", "wss://"))


@dataclass(frozen=True, kw_only=True)
class ServerFile(TargetFile):
    """Fields of targets behind a server.

    Attributes:
        url: address of the server: `ws://HOST:PORT/PATH` or `wss://HOST:PORT/PATH`, for GR00T's own
            `tcp://HOST:PORT`; proxies and redirects are not used.
        timeout_s: longest time that a request may take at the server, with connecting.
        connections: robots with requests in flight, each on a connection of its own; above 1 for a server
            that batches by itself.
        headers: of the websocket's request, such as `{Authorization: Bearer @/run/secrets/token}`; the file
            is read for each connection.
        extra: constants that the policy reads and the robot does not have, by the policy's names; a list of
            numbers becomes a float32 array.
    """

    url: str
    timeout_s: Annotated[float, above(0.0, LONGEST_TIMEOUT_S)] = TIMEOUT_S
    connections: Annotated[int, within(1, MOST_CONNECTIONS, "an integer")] = 1
    headers: dict[Text, object] = field(default_factory=dict)
    extra: dict[Text, Annotated[object, PlainValidator(_constant)]] = field(default_factory=dict)


def digest_of(kind: str, values: Mapping[str, object]) -> str:
    """Return 32 hexadecimal digits that identify a file's content. The server's weights are unknown."""
    content = json.dumps([kind, values], sort_keys=True, default=str)
    return blake2b(content.encode(), digest_size=16).hexdigest()


def need_packages(*names: str) -> None:
    """Import packages that only some targets need.

    Raises:
        ValueError: one is not installed; names the command.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ValueError(f"{name}: must be installed ({error}): {INSTALL}") from None
