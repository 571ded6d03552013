# SPDX-License-Identifier: Apache-2.0
"""A policy behind openpi's server, such as pi0.5, or any that speaks its protocol, as the target.

    kind: openpi
    url: ws://gpu:8000
    timeout_s: 2.0                     # default
    api_key: OPENPI_KEY                # default none; an environment variable that holds it
    nested: true                       # default false: A/B is sent as B in a mapping A, as for ALOHA
    channels_first: true               # default false: images are (3, rows, columns), as for ALOHA
    metadata: {reset_pose: [0, 0]}     # default none: required metadata of the server
    extra: {observation/mode: 1}       # default none: sent with each observation

and the fields of `described.py`. The protocol is that of Physical-Intelligence/openpi, over a websocket. The
server first sends a mapping, its metadata. It answers each observation, a mapping of arrays and a
`prompt`, with a mapping with `actions` (T, A). After an error it sends the traceback as text, and closes.
(src/openpi/serving/websocket_policy_server.py, packages/openpi-client/.../websocket_client_policy.py)

The policies sample their own noise: the same observation may have another answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Text, checked
from adahi_ros.core.signature import Observations
from adahi_ros.core.texts import abridged
from adahi_ros.policies.remote.described import described
from adahi_ros.policies.remote.packed_arrays import PackedError, pack_openpi, unpack_openpi
from adahi_ros.policies.remote.remote import ERROR_LENGTH, Connection, ServerFault
from adahi_ros.policies.remote.served_target import ServedTarget, connected
from adahi_ros.policies.remote.server_fields import Secret, ServerFile, address, digest_of, need_packages
from adahi_ros.policies.remote.websocket_connection import WebsocketLink

PROMPT = "prompt"
ACTIONS = "actions"


@dataclass(frozen=True, kw_only=True)
class OpenPiFile(ServerFile):
    """Fields of `kind: openpi`.

    Attributes:
        api_key: name of the environment variable that holds the server's `Api-Key`.
        nested: send `A/B` as B in a mapping A, as for ALOHA; otherwise as one name, as for DROID and LIBERO.
        channels_first: send images as (3, rows, columns), as for ALOHA.
        metadata: what the server must report of itself, such as `{reset_pose: [0, -1.5]}`.
    """

    url: Annotated[str, address("ws", "wss")]
    api_key: Secret = ""
    nested: bool = False
    channels_first: bool = False
    metadata: dict[Text, Any] = field(default_factory=dict)


class OpenPiTarget(ServedTarget):
    """See the module.

    Args:
        folder: of the file; nothing is read from it.
        clock: in seconds, only goes forward.
        values: content of the file.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, /, **values: Any) -> None:
        need_packages("msgpack", "websockets")
        digest = digest_of("openpi", values)
        self._file: OpenPiFile = checked(OpenPiFile, values)
        read = described(self._file, prompt=PROMPT)
        if read.signature.history != 1:
            raise ValueError(f"history: {read.signature.history}, must be 1, what the server takes")
        headers = {"Authorization": f"Api-Key {self._file.api_key}"} if self._file.api_key else {}
        connect = partial(_connect, self._file.url, headers, self._file.metadata)
        super().__init__(read, self._file, digest, connect, clock)
        self._messages(read.signature.nothing(), 1)  # refuses invalid names

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy.act`; one request per robot."""
        return self._ask_each(self._messages(observations, len(draws)), self._plan)

    def _plan(self, message: bytes) -> np.ndarray:
        """Return the plan (1, T, A) of an answer.

        Raises:
            ServerFault: it has no valid plan.
        """
        try:
            answer = unpack_openpi(message)
        except PackedError as error:
            raise ServerFault(f"answered with {error}") from None
        plan = answer.get(ACTIONS) if isinstance(answer, dict) else None
        if not isinstance(plan, np.ndarray):
            raise ServerFault(f"answered without {ACTIONS}")
        return self._checked(ACTIONS, plan[None], 1)

    def _messages(self, observations: Observations, robots: int) -> list[bytes]:
        """Return the message of each robot."""
        state = self._described.state(observations)
        pictures = self._described.pictures(observations)
        sentences = self._described.sentences(observations, robots)
        messages = []
        for row in range(robots):
            numbers = {name: values[row, -1] for name, values in state.items()}
            shown = {name: self._picture(values[row, -1]) for name, values in pictures.items()}
            prompt = {self._described.prompt: sentences[row]} if sentences else {}
            mapping = _together(numbers, shown, prompt, self._file.extra)
            messages.append(pack_openpi(_nested(mapping) if self._file.nested else mapping))
        return messages

    def _picture(self, picture: np.ndarray) -> np.ndarray:
        """Return a picture (rows, columns, 3) in the policy's format."""
        return picture.transpose(2, 0, 1) if self._file.channels_first else picture


def _connect(
    url: str, headers: Mapping[str, str], metadata: Mapping[str, Any], timeout_s: float
) -> Connection:
    """Connect to a server, and check its metadata.

    Raises:
        ServerFault: the connection or the check failed.
    """
    link = WebsocketLink(url, headers, timeout_s)
    return connected(link, lambda: _check_metadata(link.greeting, metadata))


def _check_metadata(greeting: bytes, metadata: Mapping[str, Any]) -> None:
    try:
        mapping = unpack_openpi(greeting)
    except PackedError as error:
        raise ServerFault(f"is no policy server: begins with {error}") from None
    if not isinstance(mapping, dict):
        raise ServerFault(f"is no policy server: begins with a {type(mapping).__name__}, must be a mapping")
    for name, wanted in metadata.items():
        found: Any = mapping.get(name)
        if not np.array_equal(found, wanted):
            found = abridged(repr(found), ERROR_LENGTH)
            raise ServerFault(f"is another policy: its metadata.{name} is {found}, must be {wanted!r}")


def _together(*parts: Mapping[str, object]) -> dict[str, object]:
    """Return the message of an observation.

    Raises:
        ValueError: two entries have the same name.
    """
    together: dict[str, object] = {}
    for part in parts:
        for name in part:
            if name in together:
                raise ValueError(f"as: {name!r}, is of two, must be of one")
        together |= part
    return together


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping in which a flat key A/B becomes B in the mapping A."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *outer, last = name.split("/")
        inside = nested
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise ValueError(f"as: {name!r}, must not be inside of another")
        if last in inside:
            raise ValueError(f"as: {name!r}, must not have others inside")
        inside[last] = value
    return nested
