# SPDX-License-Identifier: Apache-2.0
"""The door for LeRobot's remote inference, version 1: `lerobot-rollout --inference.type=remote`.

Each target is a deployment, by its name with dots for what is no letter, digit, _ or -. All clients have a
session of their own, and share batches. A file says what LeRobot calls a target's numbers:

    semantics: so101-degrees-gripper-percent-v1     # by default the deployment's name
    names: {observation.state: [shoulder_pan.pos, gripper.pos], action: [shoulder_pan.pos, gripper.pos]}
    keys: {observation.images.front: observation.images.camera1}     # the target's name: LeRobot's
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from adahi_ros.core.schema import Text, load
from adahi_ros.core.texts import INSTRUCTION_LENGTH, shortened
from adahi_ros.doors.asking import PATIENCE_S, STEPS, Asking
from adahi_ros.doors.interface import Front, OpenDoor
from adahi_ros.doors.lerobot import LeRobotDoor
from adahi_ros.doors.listening import Seats, of_this_machine, read_named
from adahi_ros.doors.observations import INSTRUCTION, ClientFile, ObservationReader, reader_of
from adahi_ros.policies.remote.lerobot_wire import (
    CHUNK,
    CURSORS,
    DEPLOYMENTS,
    IDENTITY,
    WireMessage,
    feature,
    instance_key,
    read_message,
)
from adahi_ros.policies.remote.packed_arrays import PackedError, check_values
from adahi_ros.policies.remote.server_fields import INSTALL
from adahi_ros.policies.remote.target_fields import Names
from adahi_ros.policies.remote.zenoh_connection import zenoh_config, zenoh_reason
from adahi_ros.protocol.request import OK, SESSION_BITS, Request, RequestError, RequestFault
from adahi_ros.server.service import LoadedTarget

VALUES_MOST = 8192  # in a message
MESSAGE_BYTES = 1 << 20  # of a message, beside what a target reads
PENDING_MOST = 64  # messages that wait for this door
AWAY_S = 10.0  # until a client that is away loses its session
ALIGNED = ("chunk_alignment_v1", "chunk_alignment_v2")
"""Plans with their place among a client's actions, which an answer repeats."""
CODES = {
    RequestFault.BUSY: "busy",
    RequestFault.SUPERSEDED: "stale",
    RequestFault.TARGET_UNAVAILABLE: "execution",
}
TASK = "task"
KNOW_CLIENTS = "transport/auth/usrpwd/dictionary_file", "transport/link/tls/enable_mtls"
"""With these, zenoh lets in only clients that it knows."""
OPERATIONS = ("reset", "invalidate", "status", "close")


class WireError(Exception):
    """A refusal, with one of the wire's codes."""

    def __init__(self, code: str, text: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.code, self.details = code, details


@dataclass(frozen=True, kw_only=True)
class LeRobotNames(ClientFile):
    """How LeRobot names what a target reads.

    Attributes:
        semantics: the convention of all units, as clients give it; by default the name of the deployment.
        names: LeRobot's names of a feature's numbers, by LeRobot's name of the feature.
    """

    semantics: str = ""
    names: dict[Text, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, keys in self.keys.items():
            if len(keys) != 1:
                raise ValueError(f"keys.{name}: {list(keys)}, must be one name")


def opened(door: LeRobotDoor) -> OpenDoor:
    """Begin to listen; see `Door.open`."""
    for package in ("msgpack", "zenoh"):
        if find_spec(package) is None:
            raise ValueError(f"port: {door.port}, needs {package}: {INSTALL}")
    import zenoh

    place = f"{'tls' if door.zenoh_file else 'tcp'}/{door.address}:{door.port}"
    settings = {"mode": "peer", "listen/endpoints": [place], "connect/endpoints": []}
    file = read_named("names_file", door.names_file, partial(load, LeRobotNames)) or LeRobotNames()
    config = read_named("zenoh_file", door.zenoh_file, lambda path: zenoh_config(str(path), settings))
    known = config is not None and any(
        config.get_json(path) not in ("null", "false") for path in KNOW_CLIENTS
    )
    if not known and not of_this_machine(door.address):
        raise ValueError(
            f"zenoh_file: {door.zenoh_file!r}, must name zenoh's file with TLS, and one of "
            f"{' and '.join(KNOW_CLIENTS)}, because address: {door.address!r} is not only of this machine"
        )
    try:
        session = zenoh.open(config or zenoh_config("", settings))
    except zenoh.ZError as error:
        what = f"cannot listen at {door.address!r}: {zenoh_reason(error)}"
        raise ValueError(f"port: {door.port}, {what}") from None
    return OpenedLeRobot(door, session, replace(file, keys={**file.keys, INSTRUCTION: (TASK,)}), place)


@plain_dataclass(eq=False)
class _Session:
    """A client's session.

    Attributes:
        target: that it uses.
        reader: of its observations.
        asking: its way to the engine.
        leaves: gives its place back.
        echoes: what an answer repeats.
        generation: the acknowledged one.
        sequence: of the last observation.
        task: answers an observation.
        away_since_s: since when the client is away; infinite while it is present.
    """

    target: LoadedTarget
    reader: ObservationReader
    asking: Asking
    leaves: contextlib.ExitStack
    echoes: tuple[str, ...]
    generation: int = 0
    sequence: int = -1
    task: asyncio.Task[None] | None = None
    away_since_s: float = field(default_factory=time.monotonic)

    def end(self) -> None:
        self.asking.end()
        self.leaves.close()


class OpenedLeRobot(OpenDoor):
    """The door, open.

    Args:
        door: its arguments.
        session: of zenoh; listens.
        file: of LeRobot's names.
        place: where it listens, as zenoh writes it.
    """

    def __init__(self, door: LeRobotDoor, session: Any, file: LeRobotNames, place: str) -> None:
        self._zenoh, self._file = session, file
        self.address, self.warning = place, ""
        self._instance = secrets.token_hex(16)
        self._session = secrets.randbits(SESSION_BITS)
        self._seats = Seats(door.sessions)
        self._sessions: dict[str, _Session] = {}
        self._episodes = itertools.count()
        self._pending = threading.BoundedSemaphore(PENDING_MOST)

    def close(self) -> None:
        """See `OpenDoor`."""
        self._zenoh.close()

    async def serve(self, front: Front) -> None:
        """See `OpenDoor`."""
        self._front, self._loop = front, asyncio.get_running_loop()
        signatures = [front.targets.named(name).description.signature for name in front.targets.names]
        readers = [ObservationReader(each, self._file) for each in signatures]
        self._most_bytes = MESSAGE_BYTES + max(each.most_bytes() for each in readers)
        own = instance_key("*", self._instance)
        for key, answer in (
            (f"{DEPLOYMENTS}/*/describe", self._describe),
            (f"{own}/open", self._open),
            (f"{own}/sessions/*/control", self._control),
        ):
            self._zenoh.declare_queryable(key, self._posted(partial(self._reply, answer)), complete=True)
        self._zenoh.declare_subscriber(f"{own}/sessions/*/obs", self._posted(self._observe))
        self._zenoh.declare_subscriber(f"{own}/sessions/*/language/request", self._posted(id))  # of none
        liveliness = self._zenoh.liveliness()
        liveliness.declare_subscriber(f"{own}/sessions/*/alive", self._posted(self._presence), history=True)
        self._tokens = [
            liveliness.declare_token(f"{instance_key(name, self._instance)}/alive")
            for name in self._deployments()
        ]
        try:
            while True:
                await asyncio.sleep(1.0)
                self._expire()
        finally:
            for each in self._sessions.values():
                each.end()
            await asyncio.gather(*(each.task for each in self._sessions.values() if each.task))
            self._zenoh.close()

    def _posted(self, handler: Callable[[Any], object]) -> Any:
        """Return a callback for zenoh's threads that calls a handler on the loop, with bounds."""
        import zenoh

        def handle(event: Any) -> None:
            try:
                handler(event)
            finally:
                self._pending.release()

        def called(event: Any) -> None:
            payload = getattr(event, "payload", None)
            if (payload is not None and len(payload) > self._most_bytes) or not self._pending.acquire(False):
                return
            try:
                self._loop.call_soon_threadsafe(handle, event)
            except RuntimeError:  # the loop has ended
                self._pending.release()

        return zenoh.handlers.Callback(called, indirect=True)

    def _reply(self, answer: Callable[[str, WireMessage], WireMessage], query: Any) -> None:
        """Answer a query."""
        key = str(query.key_expr)
        try:
            question = self._question(query)
            try:
                reply = answer(key, question)
            except RequestError as error:
                raise WireError(CODES.get(error.fault, "incompatible"), str(error)) from None
        except (TypeError, ValueError) as error:  # no message, or values of a wrong kind
            query.reply_err(str(error).encode())
        except WireError as error:
            if question.kind == "describe":  # their client shows no other error of it
                query.reply_err(str(error).encode())
            else:
                query.reply(key, question.error(error.code, str(error), error.details).packed())
        else:
            query.reply(key, reply.packed())
        finally:
            query.drop()

    def _question(self, event: Any) -> WireMessage:
        message = b"" if event.payload is None else event.payload.to_bytes()
        check_values(message, VALUES_MOST)
        return read_message(message)

    def _deployments(self) -> dict[str, str]:
        """Return the names of targets by those of deployments."""
        return {re.sub(r"[^A-Za-z0-9_-]+", ".", name).strip("."): name for name in self._front.targets.names}

    def _target(self, key: str) -> tuple[str, LoadedTarget]:
        """Return the deployment that a key names, and its target."""
        name = key.removeprefix(f"{DEPLOYMENTS}/").partition("/")[0]
        there_are = self._deployments()
        if name not in there_are:
            raise WireError("incompatible", f"deployment: {name!r}, must be one of {', '.join(there_are)}")
        return name, self._front.targets.named(there_are[name])

    def _describe(self, key: str, question: WireMessage) -> WireMessage:
        answer = question.reply("descriptor", self._about(*self._target(key)))
        return replace(answer, instance=self._instance)

    def _about(self, deployment: str, target: LoadedTarget) -> dict[str, Any]:
        """Return the description of a deployment."""
        described, file = target.description, self._file
        read, semantics = described.signature, file.semantics or deployment
        if read.history != 1 or not read.rate_hz:
            what = f"reads {read.history} observations at {read.rate_hz:g} Hz, must read one at a known rate"
            raise WireError("unsupported", f"deployment: {deployment!r} {what}")
        shapes: list[tuple[str, tuple[int, ...], tuple[str, ...], str]] = [
            (each.name, (each.size,), each.entries, "float32") for each in (*read.features, *read.conditions)
        ]
        shapes += [(each.name, (each.rows, each.columns, 3), (), "uint8") for each in read.images]
        features = []
        for name, shape, entries, dtype in shapes:
            [called] = file.keys.get(name, (name,))
            features.append(feature(called, shape, file.names.get(called, entries), semantics, dtype))
        action_names = file.names.get("action", read.action_names)
        return {
            "deployment": deployment,
            "instance_id": self._instance,
            "artifact_identity": described.policy_fingerprint or deployment,
            "semantics": semantics,
            "ready": True,
            "available": True,
            "failure": None,
            "execution_contracts": list(ALIGNED),
            "capabilities": {
                "modes": [CHUNK],
                "prediction_steps": read.horizon,
                "execution_steps": read.horizon,
                "action_interval": 1.0 / read.rate_hz,
                "features": features,
                "action_feature": feature("action", (read.action_dim,), action_names, semantics),
            },
            "limits": {
                "action_deadline_s": PATIENCE_S,
                "idle_timeout_s": AWAY_S,
                "max_input_chars": INSTRUCTION_LENGTH,
            },
        }

    def _open(self, key: str, question: WireMessage) -> WireMessage:
        deployment, target = self._target(key)
        about, asked = self._about(deployment, target), question.body
        required = asked.get("required_capabilities", [])
        can = about["capabilities"]
        wanted = {
            "semantics": about["semantics"],
            **{name: can[name] for name in ("features", "action_feature")},
        }
        for name, value in wanted.items():
            if asked.get(name) != value:
                what = f"{name}: {asked.get(name)!r}, must be {value!r}"
                raise WireError("incompatible", shortened(what, 1000))
        if asked.get("expected_artifact") not in (None, about["artifact_identity"]):
            raise WireError("incompatible", f"expected_artifact: must be {about['artifact_identity']}")
        interval_s = asked.get("action_interval")
        if not isinstance(interval_s, float) or not math.isclose(
            interval_s, can["action_interval"], rel_tol=1e-6
        ):
            raise WireError("incompatible", f"action_interval: must be {can['action_interval']:g}")
        for name, value in (("mode", CHUNK), ("encoding", "raw")):
            if asked.get(name) != value:
                raise WireError("unsupported", f"{name}: {str(asked.get(name))[:40]!r}, must be {value!r}")
        if not isinstance(required, list) or not all(each in ALIGNED for each in required):
            raise WireError("unsupported", f"required_capabilities: must be of {', '.join(ALIGNED)}")
        leaves = contextlib.ExitStack()
        reader = reader_of(target, self._file)
        try:
            seat, _ = leaves.enter_context(self._seats.taken(""))
        except RequestError as error:
            raise WireError("busy", str(error), {"admission_blocker": "active_session"}) from None
        name = target.description.target
        header = Request(0, 0, 0, robot_id=f"lerobot/{seat}", session=self._session, target=name)
        asking = self._asking(header)
        identity = secrets.token_hex(16)
        self._sessions[identity] = _Session(
            target, reader, asking, leaves, IDENTITY + (CURSORS if required else ())
        )
        accepted = {**about, "mode": CHUNK, "chunk_settings": asked.get("chunk_settings")}
        return replace(question.reply("accepted", accepted), session=identity)

    def _asking(self, header: Request) -> Asking:
        """Return the way to the engine of a session's next generation, an episode of its own."""
        return Asking(self._front, replace(header, episode=next(self._episodes) % STEPS), ("lerobot", ""))

    def _control(self, key: str, question: WireMessage) -> WireMessage:
        session = self._session_of(question)
        operation = question.body.get("operation")
        if operation not in OPERATIONS:
            raise WireError("malformed", f"operation: must be one of {', '.join(OPERATIONS)}")
        if operation == "close":
            self._leave(question.session)
        elif question.generation < session.generation:
            raise WireError(
                "stale", f"generation: {question.generation}, must be {session.generation} or more"
            )
        if operation != "status" and question.generation > session.generation:
            session.generation = question.generation
            session.asking.end()  # the next observation waits for no former one
            session.task = None
            session.asking = self._asking(session.asking.header)
        applied = {"operation": operation, "applied_generation": session.generation}
        return question.reply("ack", applied)

    def _session_of(self, question: WireMessage) -> _Session:
        session = self._sessions.get(question.session)
        if session is None or question.instance != self._instance:
            raise WireError("stale", "session: is unknown, must be opened again")
        return session

    def _observe(self, sample: Any) -> None:
        """Begin to answer an observation."""
        came_s = time.monotonic()
        act = f"{str(sample.key_expr).rpartition('/')[0]}/act"
        try:
            question = self._question(sample)
        except PackedError:  # an answer could name no request
            return
        try:
            session = self._session_of(question)
            sequence = question.body.get("sequence")
            if question.generation != session.generation:
                raise WireError("stale", f"generation: {question.generation}, must be {session.generation}")
            if type(sequence) is not int or sequence <= session.sequence:
                raise WireError("stale", f"sequence: must be an integer above {session.sequence}")
            if session.task is not None and not session.task.done():
                raise WireError("busy", "an observation of this session waits, must be answered first")
        except WireError as error:
            self._send(act, question.error(error.code, str(error)))
            return
        session.sequence = sequence
        session.task = self._loop.create_task(self._answer(session, question, act, came_s))

    async def _answer(self, session: _Session, question: WireMessage, act: str, came_s: float) -> None:
        answered = await session.asking.answer(partial(_request, session, question), came_s)
        if answered is None or question.generation != session.generation:
            return
        reply, waited_s, batch_s = answered
        if reply.status != OK:
            code = CODES.get(RequestFault(reply.status), "malformed") if reply.status > 0 else "execution"
            self._send(act, question.error(code, reply.message))
            return
        read = session.target.description.signature
        actions = np.asarray(reply.actions, np.float32).reshape(-1, read.action_dim)
        plan = {"canonical_actions": actions, "model_actions": None, "execution_steps": len(actions)}
        durations = {"queue": waited_s - batch_s, "worker": batch_s}
        same = {name: question.body.get(name) for name in session.echoes}
        self._send(act, question.reply("action", {**same, **plan, "server_durations": durations}))

    def _send(self, key: str, message: WireMessage) -> None:
        import zenoh

        self._zenoh.put(key, message.packed(), congestion_control=zenoh.CongestionControl.DROP)

    def _presence(self, sample: Any) -> None:
        import zenoh

        session = self._sessions.get(str(sample.key_expr).split("/")[-2])
        if session is not None:
            away = sample.kind == zenoh.SampleKind.DELETE
            session.away_since_s = time.monotonic() if away else math.inf

    def _expire(self) -> None:
        """End the sessions of clients that are away."""
        now_s = time.monotonic()
        for identity in [each for each, its in self._sessions.items() if now_s - its.away_since_s > AWAY_S]:
            self._leave(identity)

    def _leave(self, identity: str) -> None:
        self._sessions.pop(identity).end()


def _request(session: _Session, question: WireMessage, header: Request) -> Request:
    """Return the request of an observation, with a fault where it is wrong."""
    features = question.body.get("features")
    try:
        if not isinstance(features, dict):
            raise RequestError(RequestFault.WRONG_SHAPE, "features: must be a mapping from names to arrays")
        return session.reader.request({**features, TASK: question.body.get(TASK)}, header)
    except RequestError as error:
        return replace(header, fault=error.with_traceback(None))
