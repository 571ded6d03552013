# SPDX-License-Identifier: Apache-2.0
"""A policy behind openpi's server, such as pi0.5, or any that speaks its protocol, as the target.

    kind: openpi
    url: ws://gpu:8000                 # or wss://gpu/v1/realtime/robot/openpi, as vLLM-Omni has it
    timeout_s: 2.0                     # default
    connections: 16                    # default 1; requests in flight, for a server that batches by itself
    headers: {Authorization: Bearer @/run/secrets/token}   # default none
    api_key: OPENPI_KEY                # default none; an environment variable that holds it
    actions: {arm: 6, gripper: 1}      # default none: for a server that answers by these names
    nested: true                       # default false: A/B is sent as B in a mapping A, as for ALOHA
    channels_first: true               # default false: images are (3, rows, columns), as for ALOHA
    metadata: {reset_pose: [0, 0]}     # default none: required metadata of the server
    extra: {observation/mode: 1}       # default none: sent with each observation

and the fields of `described.py`. The protocol is that of Physical-Intelligence/openpi, over a websocket. The
server first sends a mapping, its metadata. It answers each observation, a mapping of arrays and a
`prompt`, with a mapping with `actions` (T, A). After an error it sends the traceback as text, and closes.
vLLM-Omni answers with the bare array, or a mapping of arrays by the names of the policy's actions.
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
from adahi_ros.policies.remote.answers import greeting_of, openpi_answer, plans_in
from adahi_ros.policies.remote.described import check_parts, described
from adahi_ros.policies.remote.header_files import HeaderFiles
from adahi_ros.policies.remote.packed_arrays import pack_openpi
from adahi_ros.policies.remote.remote import ERROR_LENGTH, Connection, ServerFault
from adahi_ros.policies.remote.served_target import ServedTarget, connected
from adahi_ros.policies.remote.server_fields import Secret, ServerFile, address, digest_of, need_packages
from adahi_ros.policies.remote.target_fields import Count
from adahi_ros.policies.remote.websocket_connection import WebsocketLink

PROMPT = "prompt"
ACTIONS = "actions"
SESSIONS = "needs_session_id"  # vLLM-Omni says so of policies that read a history of requests


@dataclass(frozen=True, kw_only=True)
class OpenPiFile(ServerFile):
    """Fields of `kind: openpi`.

    Attributes:
        api_key: name of the environment variable that holds the server's `Api-Key`.
        nested: send `A/B` as B in a mapping A, as for ALOHA; otherwise as one name, as for DROID and LIBERO.
        channels_first: send images as (3, rows, columns), as for ALOHA.
        metadata: what the server must report of itself, such as `{reset_pose: [0, -1.5]}`.
        actions: parts of an action and their sizes, in the robot's order, where answers have them by name.
    """

    url: Annotated[str, address("ws", "wss")]
    api_key: Secret = ""
    nested: bool = False
    channels_first: bool = False
    metadata: dict[Text, Any] = field(default_factory=dict)
    actions: dict[Text, Count] = field(default_factory=dict)


class OpenPiTarget(ServedTarget):
    """A target behind openpi's server.

    Args:
        folder: of the file; paths of `headers` are relative to it.
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
        check_parts(self._file.actions, read.signature.action_dim)
        headers = HeaderFiles(folder, self._file.headers)
        if self._file.api_key and "authorization" in map(str.lower, self._file.headers):
            raise ValueError("api_key: must not be there with headers.Authorization")
        connect = partial(_connect, self._file, headers)
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
        plans = plans_in(openpi_answer(message), self._file.actions, 1, self.signature.horizon)
        return self._checked(ACTIONS, plans, 1)

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


def _connect(file: OpenPiFile, headers: Callable[[], Mapping[str, str]], timeout_s: float) -> Connection:
    """Connect to a server, and check its metadata.

    Raises:
        ServerFault: the connection or the check failed.
    """
    authorization = {"Authorization": f"Api-Key {file.api_key}"} if file.api_key else {}
    link = WebsocketLink(file.url, {**authorization, **headers()}, timeout_s)
    return connected(link, lambda: _check_metadata(greeting_of(link.greeting), file.metadata))


def _check_metadata(mapping: Mapping[Any, Any], metadata: Mapping[str, Any]) -> None:
    if mapping.get(SESSIONS) and SESSIONS not in metadata:  # requests here are of any robot
        raise ServerFault(
            f"remembers a session's requests: its metadata.{SESSIONS} is true, must be false, or be in the "
            "file's metadata where only one robot is served"
        )
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
