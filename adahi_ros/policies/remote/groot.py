# SPDX-License-Identifier: Apache-2.0
"""A policy behind the server of Isaac GR00T, or any that speaks its protocol, as the target.

    kind: groot
    url: tcp://gpu:5555                # or ws://gpu:8000/v1/realtime/robot/openpi, as vLLM-Omni serves it
    timeout_s: 2.0                     # default
    protocol: n1.6                     # default; a key of `PROTOCOLS`
    api_token: GROOT_TOKEN             # default none; an environment variable that holds it
    actions: {single_arm: 5, gripper: 1}   # parts of an action and their sizes, in the robot's order
    extra: {waist: [0, 0, 0]}          # default none: parts of the state that the robot does not have

and the fields of `described.py`. Names are those of the policy's modality configuration, without `video.`,
`state.` and `action.`. Over a websocket, a request has one robot, and openpi's format of arrays.

The policies sample their own noise: the same observation may have another answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Text, checked, one_of
from adahi_ros.core.signature import Observations
from adahi_ros.policies.remote.answers import greeting_of, openpi_answer, plans_in
from adahi_ros.policies.remote.described import DescribedTarget, check_parts, described
from adahi_ros.policies.remote.groot_protocol import PROTOCOLS, Modalities, Protocol, answer_of
from adahi_ros.policies.remote.header_files import HeaderFiles
from adahi_ros.policies.remote.packed_arrays import pack_groot, pack_openpi
from adahi_ros.policies.remote.remote import Connection
from adahi_ros.policies.remote.served_target import ServedTarget, connected
from adahi_ros.policies.remote.server_fields import (
    Secret,
    ServerFile,
    address,
    digest_of,
    need_packages,
    websocket,
)
from adahi_ros.policies.remote.target_fields import Count
from adahi_ros.policies.remote.websocket_connection import WebsocketLink
from adahi_ros.policies.remote.zmq_connection import ZmqLink

PROMPT = "annotation.human.task_description"


@dataclass(frozen=True, kw_only=True)
class GrootFile(ServerFile):
    """Fields of `kind: groot`.

    Attributes:
        api_token: name of the environment variable that holds the server's token.
        protocol: `n1.6` for N1.6 and N1.7; `n1.6_sim` for a server with `--use-sim-policy-wrapper`; `n1.5`.
        actions: parts of an action and their sizes, in the robot's order.
    """

    url: Annotated[str, address("tcp", "ws", "wss")]
    api_token: Secret = ""
    protocol: Annotated[str, one_of(PROTOCOLS)] = "n1.6"
    actions: dict[Text, Count]

    def __post_init__(self) -> None:
        foreign = "api_token" if websocket(self.url) else "headers"
        if getattr(self, foreign):
            raise ValueError(f"{foreign}: must not be there with url: {self.url!r}")


class GrootTarget(ServedTarget):
    """A target behind GR00T's server.

    Args:
        folder: of the file; nothing is read from it.
        clock: in seconds, only goes forward.
        values: content of the file.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, /, **values: Any) -> None:
        need_packages("msgpack")
        digest = digest_of("groot", values)
        file: GrootFile = checked(GrootFile, values)
        self._protocol = PROTOCOLS[file.protocol]
        self._parts = file.actions
        self._extra = file.extra
        self._token = {"api_token": file.api_token} if file.api_token else {}
        self._alone = websocket(file.url)
        read = described(file, prompt=PROMPT)
        check_parts(self._parts, read.signature.action_dim)
        nothing = read.signature.nothing()
        wanted = Modalities(
            tuple(read.pictures(nothing)),
            tuple(self._state(read, nothing)),
            (read.prompt,) if read.prompt else (),
            tuple(self._parts),
            read.signature.history,
            read.signature.horizon,
        )
        connect: Callable[[float], Connection]
        if self._alone:
            self._protocol = replace(self._protocol, bare=True)
            connect = partial(_connect_websocket, file.url, HeaderFiles(folder, file.headers), wanted)
            need_packages("websockets")
        else:
            request = pack_groot({"endpoint": "get_modality_config", **self._token})
            connect = partial(_connect, file.url, request, wanted, self._protocol)
            need_packages("zmq")
        super().__init__(read, file, digest, connect, clock)

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy.act`; one request for all robots, or one per robot over websockets."""
        robots = len(draws)
        if not self._alone:
            data = self._data(observations, robots)
            message = pack_groot({"endpoint": "get_action", "data": data, **self._token})
            return self._server.ask(message, lambda answer: self._plans(answer_of(answer), robots))
        each = [observations.rows(np.array([row])) for row in range(robots)]
        messages = [pack_openpi(self._data(one, 1)) for one in each]
        return self._ask_each(messages, lambda answer: self._plans(openpi_answer(answer), 1))

    def _data(self, observations: Observations, robots: int) -> dict[str, Any]:
        """Return what a request has of B robots."""
        sentences = self._described.sentences(observations, robots)
        language = {self._described.prompt: sentences} if sentences else {}
        state = self._state(self._described, observations)
        return self._protocol.data(self._described.pictures(observations), state, language)

    def _state(self, read: DescribedTarget, observations: Observations) -> dict[str, np.ndarray]:
        """Return all parts of the state of B robots, (B, H, size) float32."""
        state = read.state(observations)
        batch = next(iter(state.values())).shape[:2]
        for name, value in self._extra.items():
            if name in state or not isinstance(value, np.ndarray):
                raise ValueError(f"extra.{name}: {value!r}, must be a list of numbers of a part of its own")
            state[name] = np.broadcast_to(value, (*batch, len(value)))
        return state

    def _plans(self, answer: Any, robots: int) -> np.ndarray:
        """Return the plans (B, T, A) of an answer.

        Raises:
            ServerFault: it has no valid plans.
        """
        actions = self._protocol.actions(answer)
        plans = plans_in(actions, self._parts, robots, self.signature.horizon)
        return self._checked("actions", plans, robots)


def _connect(
    url: str, request: bytes, wanted: Modalities, protocol: Protocol, timeout_s: float
) -> Connection:
    """Connect to a server, and check that it serves the configured policy.

    Raises:
        ServerFault: the connection or the check failed.
    """
    started_s = time.monotonic()
    link = ZmqLink(url, timeout_s)
    left_s = max(0.0, started_s + timeout_s - time.monotonic())
    return connected(link, lambda: wanted.check(answer_of(link.ask(request, left_s)), protocol))


def _connect_websocket(
    url: str, headers: Callable[[], Mapping[str, str]], wanted: Modalities, timeout_s: float
) -> Connection:
    """Connect to a server of openpi's protocol, and check that it serves the configured policy.

    Raises:
        ServerFault: the connection or the check failed.
    """
    link = WebsocketLink(url, headers(), timeout_s)
    return connected(link, lambda: wanted.check_greeting(greeting_of(link.greeting)))
