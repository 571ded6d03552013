# SPDX-License-Identifier: Apache-2.0
"""A policy behind LeRobot's `lerobot-policy-server`, remote inference of version 1, as the target.

    kind: lerobot_remote
    url: tcp://gpu:7447                # or tls://gpu:7447, with `zenoh`
    deployment: manipulation           # the server's `deployment`
    semantics: so101-degrees-v1        # the server's `semantics`, the convention of all units
    names:                             # the server's names of numbers, in the order of this file
      observation.state: [shoulder_pan.pos, gripper.pos]
      action: [shoulder_pan.pos, gripper.pos]
    artifact: sha256:0f3c              # default any; the identity of the policy and its settings
    router: true                       # default false; `url` is that of a router of zenoh
    zenoh: zenoh.json5                 # default none; TLS and users, in zenoh's own format
    timeout_s: 2.0                     # default

and the fields of `described.py`, with `rate_hz`. The server describes what it reads. A plan is asked for only
where this agrees with the file. It serves one session at a time; robots of one target share it, one request
after another. Between robots, a policy that remembers is reset, which costs milliseconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Text, checked, must
from adahi_ros.core.signature import Observations
from adahi_ros.core.texts import abridged
from adahi_ros.policies.remote.described import DescribedTarget, described
from adahi_ros.policies.remote.lerobot_wire import CHUNK, SEGMENT, feature, read_message
from adahi_ros.policies.remote.packed_arrays import pack_lerobot
from adahi_ros.policies.remote.remote import ERROR_LENGTH, ServerFault
from adahi_ros.policies.remote.served_target import ServedTarget
from adahi_ros.policies.remote.server_fields import ServerFile, address, digest_of, need_packages
from adahi_ros.policies.remote.target_fields import Names
from adahi_ros.policies.remote.zenoh_connection import ZenohLink, zenoh_config

ACTION = "action"
TASK = "task"
RATE_WITHIN = 1e-6  # relative, as their client compares

Segment = Annotated[Text, must("be letters, digits, _ . -, at most 128", SEGMENT.fullmatch)]


@dataclass(frozen=True, kw_only=True)
class LeRobotRemoteFile(ServerFile):
    """Fields of `kind: lerobot_remote`.

    Attributes:
        deployment: the server's name of it.
        semantics: the server's name of all units.
        names: the server's names of numbers, by its own names and `action`.
        artifact: the policy's identity.
        router: `url` is that of a router.
        zenoh: zenoh's file with TLS and users.
    """

    url: Annotated[str, address("tcp", "tls")]
    deployment: Segment
    semantics: Text
    names: dict[Text, Names] = field(default_factory=dict)
    artifact: str = ""
    router: bool = False
    zenoh: str = ""

    def __post_init__(self) -> None:
        if self.headers:
            raise ValueError("headers: must not be there: users and TLS are in the file of `zenoh`")
        if not self.rate_hz:
            raise ValueError("rate_hz: nothing, must be the server's `action_fps`")


class LeRobotRemoteTarget(ServedTarget):
    """A target behind LeRobot's policy server.

    Args:
        folder: of the file; the path of `zenoh` is relative to it.
        clock: in seconds, only goes forward.
        values: content of the file.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, /, **values: Any) -> None:
        need_packages("msgpack", "zenoh")
        digest = digest_of("lerobot_remote", values)
        self._file: LeRobotRemoteFile = checked(LeRobotRemoteFile, values)
        read = described(self._file, prompt=TASK)
        if read.signature.history != 1:
            raise ValueError(f"history: {read.signature.history}, must be 1, what the server takes")
        settings = str(folder / Path(self._file.zenoh).expanduser()) if self._file.zenoh else ""
        try:
            zenoh_config(settings, {})
        except (OSError, ValueError) as error:
            raise ValueError(
                f"zenoh: {self._file.zenoh!r}, {getattr(error, 'strerror', 0) or error}"
            ) from None
        where = self._file.url, self._file.router, settings, self._file.deployment
        connect = partial(ZenohLink, *where, DeploymentCheck(self._file, read).opening)
        super().__init__(read, self._file, digest, connect, clock)

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy.act`; one request per robot."""
        state, pictures = self._described.state(observations), self._described.pictures(observations)
        sentences = self._described.sentences(observations, len(draws))
        messages = []
        for row in range(len(draws)):
            features = {name: values[row, -1] for name, values in (*state.items(), *pictures.items())}
            task = sentences[row] if sentences else ""
            episode = repr(observations.episodes[row]) if observations.episodes else None
            said = {"task": task, "features": {**features, **self._file.extra}, "episode": episode}
            messages.append(pack_lerobot(said))
        return self._ask_each(messages, self._plan)

    def _plan(self, message: bytes) -> np.ndarray:
        """Return the plan (1, T, A) of an answer.

        Raises:
            ServerFault: it has no valid plan.
        """
        plan = read_message(message).body.get("canonical_actions")
        return self._checked("canonical_actions", plan[None] if isinstance(plan, np.ndarray) else plan, 1)


class DeploymentCheck:
    """What a server must say of its deployment.

    Args:
        file: of the target.
        read: what the policy reads, by its own names.
    """

    def __init__(self, file: LeRobotRemoteFile, read: DescribedTarget) -> None:
        self._file, self._horizon = file, read.signature.horizon
        nothing = read.signature.nothing()
        shapes = {name: (each.shape[2:], "float32") for name, each in read.state(nothing).items()}
        shapes |= {name: (each.shape[2:], "uint8") for name, each in read.pictures(nothing).items()}
        shapes |= {name: (np.asarray(each).shape, "float32") for name, each in file.extra.items()}
        shapes[ACTION] = (read.signature.action_dim,), "float32"
        unknown = set(file.names) - set(shapes)
        if unknown:
            raise ValueError(f"names: {sorted(unknown)[0]!r}, must be one of {', '.join(shapes)}")
        self._features = {
            name: feature(name, shape, file.names.get(name, ()), file.semantics, dtype)
            for name, (shape, dtype) in shapes.items()
        }

    def opening(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Return what opens a session.

        Args:
            about: the server's description, unchecked.

        Raises:
            ServerFault: it does not fit; names the entry, its value and what it must be.
        """
        if about.get("ready") is not True:
            raise ServerFault(f"is not ready: {abridged(str(about.get('failure')), ERROR_LENGTH)}")
        _check("artifact_identity", about.get("artifact_identity"), self._file.artifact or None)
        _check("semantics", about.get("semantics"), self._file.semantics)
        can = about.get("capabilities")
        if not isinstance(can, dict) or not isinstance(about.get("artifact_identity"), str):
            raise ServerFault("is no policy server: its description has no capabilities")
        if CHUNK not in _list(can.get("modes")):
            raise ServerFault(f"has the modes {_list(can.get('modes'))}, must have {CHUNK!r}")
        interval_s, steps = can.get("action_interval"), can.get("execution_steps")
        if not isinstance(interval_s, float) or not math.isclose(
            interval_s * self._file.rate_hz, 1.0, rel_tol=RATE_WITHIN
        ):
            raise _other("action_interval", interval_s, f"{1.0 / self._file.rate_hz:g}, of rate_hz")
        if type(steps) is not int or steps < self._horizon:
            raise _other("execution_steps", steps, f"{self._horizon} or more, the horizon")
        features = _list(can.get("features"))
        for each in (*features, can.get("action_feature")):
            self._check_feature(each)
        missing = set(self._features) - {ACTION} - {each["name"] for each in features}
        if missing:
            raise ServerFault(f"is another policy: it does not read {sorted(missing)[0]!r}")
        return {
            "expected_artifact": about["artifact_identity"],
            "features": features,
            "action_feature": can["action_feature"],
            "semantics": self._file.semantics,
            "action_interval": interval_s,
            "mode": CHUNK,
            "encoding": "raw",
        }

    def _check_feature(self, found: Any) -> None:
        name = found.get("name") if isinstance(found, dict) else None
        if not isinstance(name, str) or name not in self._features:
            there_are = ", ".join(self._features)
            raise ServerFault(
                f"is another policy: it has {abridged(repr(name), 60)}, the file has {there_are}"
            )
        for entry, value in self._features[name].items():
            _check(f"{name}: {entry}", found.get(entry), value)


def _check(name: str, found: Any, wanted: Any) -> None:
    """Check an entry of a description; None allows any value."""
    if wanted is not None and (type(found), found) != (type(wanted), wanted):
        raise _other(name, found, repr(wanted))


def _other(name: str, found: Any, allowed: str) -> ServerFault:
    shown = abridged(repr(found), ERROR_LENGTH)
    return ServerFault(f"is another policy: its {name} is {shown}, must be {abridged(allowed, ERROR_LENGTH)}")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
