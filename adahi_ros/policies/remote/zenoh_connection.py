# SPDX-License-Identifier: Apache-2.0
"""A session of LeRobot's remote inference over zenoh; see `lerobot_wire`."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from adahi_ros.policies.remote.lerobot_wire import (
    DEPLOYMENTS,
    SEGMENT,
    WireMessage,
    instance_key,
    read_message,
)
from adahi_ros.policies.remote.packed_arrays import PackedError, unpack_lerobot
from adahi_ros.policies.remote.remote import LONGEST_ANSWER, ServerFault, TimedOut, error_line

ANSWERS_MOST = 4  # that wait, of one subscription or query
CLOSING_S = 0.2  # for the server to confirm the end of a session

Opening = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def zenoh_reason(error: Exception) -> str:
    """Return an error of zenoh's without the places in its source."""
    return error_line(str(error).partition(" at /")[0])


def zenoh_config(file: str, settings: Mapping[str, object]) -> Any:
    """Return a configuration of zenoh that finds nothing by itself.

    Args:
        file: with TLS, users and the like in JSON5; '' for none.
        settings: by path, in place of those of the file.

    Raises:
        OSError, ValueError: the file cannot be used.
    """
    import zenoh

    alone = {
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "transport/shared_memory/enabled": False,
    }
    try:
        text = Path(file).read_text() if file else "{}"
        config = zenoh.Config.from_json5(text)
        for path, value in {**alone, **settings}.items():
            config.insert_json5(path, json.dumps(value))
    except zenoh.ZError as error:
        raise ValueError(f"{file}: {zenoh_reason(error)}") from None
    return config


class ZenohLink:
    """See `Connection`: a session of a deployment, with a zenoh session of its own.

    A message is a mapping in msgpack with `task`, `features` and `episode`. The session is reset before a
    message of another episode. Answers to former messages are dropped. It never reconnects, for the
    server forgets a session when its client is away.

    Args:
        url: such as tcp://gpu:7447.
        router: the address is a router's.
        file: see `zenoh_config`.
        deployment: name of the deployment.
        opening: returns the body that opens a session; raises `ServerFault` where the deployment's
            description, unchecked, does not fit.
        timeout_s: for all that opens the session.

    Raises:
        ServerFault: there is no session.
    """

    def __init__(
        self, url: str, router: bool, file: str, deployment: str, opening: Opening, timeout_s: float
    ) -> None:
        self._until_s = time.monotonic() + timeout_s
        self._answers: queue.Queue[bytes | None] = queue.Queue(ANSWERS_MOST)
        self._present, self._closed = True, False
        self._sequence = self._generation = 0
        self._episode: Any = None
        self._key = ""
        self._zenoh = _opened(url, router, file, timeout_s)
        try:
            with _zenoh_faults():
                self._enter(deployment, opening)
        except BaseException:
            self.close()
            raise

    def alive(self) -> bool:
        """See `Connection.alive`."""
        return self._present and not self._closed

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """See `Connection.ask`."""
        self._until_s = time.monotonic() + timeout_s
        with contextlib.suppress(queue.Empty):
            while True:  # answers to former messages
                self._answers.get_nowait()
        seen = unpack_lerobot(message)
        with _zenoh_faults():
            return self._asked(seen)

    def _asked(self, seen: Mapping[str, Any]) -> bytes:
        """Return the answer to an observation."""
        self._begin(seen["episode"])
        self._sequence += 1
        question = self._message(
            "observation",
            {
                "sequence": self._sequence,
                "artifact_identity": self._artifact,
                "observation_id": uuid4().hex,
                "capture_time": time.monotonic(),
                "task": seen["task"],
                "task_version": 0,
                "features": seen["features"],
                "delay": 0,
                "model_continuation": None,
                "canonical_continuation": None,
                "cursor": 0,
            },
        )
        self._zenoh.put(f"{self._key}/obs", question.packed(), congestion_control=_drop())
        while True:
            answer = self._answered("answered")
            message_of = _read(answer)
            if message_of.answers(question):
                _check_kind(message_of, "action")
                return answer

    def close(self) -> None:
        """See `Connection.close`."""
        if self._closed:
            return
        self._closed = True
        self._until_s = time.monotonic() + CLOSING_S
        with contextlib.suppress(ServerFault), _zenoh_faults():
            if self._key and self._present:
                self._control("close", self._generation)
        self._zenoh.close()

    def _enter(self, deployment: str, opening: Opening) -> None:
        """Open a session."""
        import zenoh

        described = self._described(deployment)
        instance, about = described.instance, described.body
        wanted = opening(about)
        self._artifact, self._instance, self._session = about["artifact_identity"], instance, ""
        self._remembers = about["capabilities"].get("retains_session_state", True)
        key = instance_key(deployment, instance)
        self._presence = self._zenoh.liveliness().declare_subscriber(
            f"{key}/alive", zenoh.handlers.Callback(self._presence_changed, indirect=False), history=True
        )
        accepted = self._query(f"{key}/open", self._message("open", wanted), "accepted")
        if not SEGMENT.fullmatch(accepted.session) or accepted.body.get("mode") != wanted["mode"]:
            raise ServerFault(f"opened no session in the mode {wanted['mode']!r}")
        self._session = accepted.session
        self._key = f"{key}/sessions/{self._session}"
        # The server confirms a reset once it finds a subscriber of each, also of what is never asked for.
        self._subscribers = [
            self._zenoh.declare_subscriber(
                f"{self._key}/{name}", zenoh.handlers.Callback(called, indirect=False)
            )
            for name, called in (("act", self._received), ("language/result", id))
        ]
        self._token = self._zenoh.liveliness().declare_token(f"{self._key}/alive")
        self._control("reset", 0)  # answered once the server receives observations
        with self._zenoh.declare_publisher(f"{self._key}/obs") as publisher:
            self._await_match(publisher, "listening")

    def _described(self, deployment: str) -> WireMessage:
        """Return the description of the only server of a deployment."""
        question = WireMessage("describe", request=uuid4().hex)
        answers = map(_read, self._replies(f"{DEPLOYMENTS}/{deployment}/describe", question))
        ours = (each for each in answers if each.request == question.request)
        found = {each.instance: each for each in ours if each.instance}
        if len(found) != 1:
            there_are = ", ".join(sorted(found)) or "none"
            raise ServerFault(f"has {len(found)} servers of {deployment!r} ({there_are}), must be one")
        [described] = found.values()
        _check_kind(described, "descriptor")
        return described

    def _begin(self, episode: Any) -> None:
        """Let the policy forget another episode."""
        if self._episode is not None and episode != self._episode and self._remembers:
            self._generation += 1
            self._control("reset", self._generation)
        self._episode = episode

    def _control(self, operation: str, generation: int) -> None:
        self._generation = generation
        question = self._message("control", {"operation": operation})
        answer = self._query(f"{self._key}/control", question, "ack")
        if answer.body.get("applied_generation") != generation:
            raise ServerFault(f"did not {operation} the session")

    def _message(self, kind: str, body: Mapping[str, Any]) -> WireMessage:
        return WireMessage(kind, self._instance, self._session, self._generation, uuid4().hex, body)

    def _query(self, key: str, question: WireMessage, kind: str) -> WireMessage:
        """Return the only answer to a query."""
        for received in self._replies(key, question):
            answer = _read(received)
            if answer.answers(question):
                _check_kind(answer, kind)
                return answer
        raise ServerFault(f"did not answer {question.kind!r}")

    def _replies(self, key: str, question: WireMessage) -> list[bytes]:
        """Return the answers to a query, of each server one."""
        import zenoh

        replies: queue.Queue[Any] = queue.Queue(ANSWERS_MOST + 1)

        def put(reply: Any) -> None:
            if replies.qsize() < ANSWERS_MOST:
                replies.put_nowait(reply)

        with self._zenoh.declare_querier(
            key,
            target=zenoh.QueryTarget.ALL,
            consolidation=zenoh.ConsolidationMode.NONE,
            congestion_control=_drop(),
            timeout=self._left_s(),
        ) as querier:
            self._await_match(querier, "serving")
            done = zenoh.handlers.Callback(put, drop=lambda: replies.put_nowait(None), indirect=False)
            querier.get(done, payload=question.packed())
            found = []
            while (reply := _taken(replies, self._left_s(), "answered")) is not None:
                if reply.ok is None:
                    raise ServerFault(f"answered with an error: {error_line(_text(reply.err))}")
                found.append(_bytes(reply.ok))
            return found

    def _await_match(self, declared: Any, what: str) -> None:
        """Wait until the other side of a query or a publication is known."""
        import zenoh

        matched = threading.Event()

        def changed(status: Any) -> None:
            if status.matching:
                matched.set()

        declared.declare_matching_listener(zenoh.handlers.Callback(changed, indirect=False))
        if not declared.matching_status.matching and not matched.wait(self._left_s()):
            raise TimedOut(f"not {what}: is still starting, or has no such deployment")

    def _answered(self, what: str) -> bytes:
        answer = _taken(self._answers, self._left_s(), what)
        if answer is None or not self._present:
            raise ServerFault("stopped, or dropped the connection")
        received: bytes = answer
        return received

    def _left_s(self) -> float:
        return max(0.001, self._until_s - time.monotonic())

    def _presence_changed(self, sample: Any) -> None:
        import zenoh

        if sample.kind == zenoh.SampleKind.DELETE:
            self._present = False
            self._offer(None)

    def _received(self, sample: Any) -> None:
        self._offer(_bytes(sample))

    def _offer(self, answer: bytes | None) -> None:
        with contextlib.suppress(queue.Full):  # nothing here reads so many
            self._answers.put_nowait(answer)


def _opened(url: str, router: bool, file: str, timeout_s: float) -> Any:
    """Open a zenoh session with the server at an address, or with its router."""
    import zenoh

    parts = urlsplit(url)
    settings = {
        "mode": "client" if router else "peer",
        "connect/endpoints": [f"{parts.scheme}/{parts.netloc}"],
        "connect/timeout_ms": round(1e3 * timeout_s),
        "connect/exit_on_failure": True,
        "listen/endpoints": [],
    }
    try:
        socket.create_connection((parts.hostname, parts.port or 0), timeout_s).close()  # has a reason at once
        return zenoh.open(zenoh_config(file, settings))
    except OSError as error:
        raise ServerFault(f"not reachable: {error.strerror or error}") from None
    except (ValueError, zenoh.ZError) as error:
        raise ServerFault(f"is no server of zenoh, or knows no such client: {zenoh_reason(error)}") from None


@contextlib.contextmanager
def _zenoh_faults() -> Iterator[None]:
    """Make errors of zenoh's faults of the server."""
    import zenoh

    try:
        yield
    except zenoh.ZError as error:
        raise ServerFault(f"dropped the connection: {zenoh_reason(error)}") from None


def _drop() -> Any:
    import zenoh

    return zenoh.CongestionControl.DROP


def _taken(replies: queue.Queue[Any], timeout_s: float, what: str) -> Any:
    try:
        return replies.get(timeout=timeout_s)
    except queue.Empty:
        raise TimedOut(f"not {what} in time: is still starting, or stalls") from None


def _bytes(sample: Any) -> bytes:
    """Return the content of a sample, or of a reply; nothing of a longer one."""
    return bytes(sample.payload.to_bytes()) if len(sample.payload) <= LONGEST_ANSWER else b""


def _text(error: Any) -> str:
    return "" if error is None else _bytes(error).decode(errors="replace")


def _read(received: bytes) -> WireMessage:
    try:
        return read_message(received)
    except PackedError as error:
        raise ServerFault(f"answered with {error}") from None


def _check_kind(answer: WireMessage, kind: str) -> None:
    """Check that an answer is no refusal.

    Raises:
        ServerFault: it is one, or another kind.
    """
    if answer.kind == kind:
        return
    if answer.kind != "error":
        raise ServerFault(f"answered with {answer.kind!r}, must be {kind!r}")
    code, details = answer.body.get("code"), answer.body.get("details")
    if code == "busy" and isinstance(details, dict) and details.get("admission_blocker"):
        left = details.get("absence_grace_remaining_s")
        when = f"; it waits {left:.0f} s for a client that is away" if isinstance(left, int | float) else ""
        blocker = error_line(str(details["admission_blocker"]))
        raise ServerFault(f"serves another client ({blocker}), stop that one{when}")
    raise ServerFault(f"answered {error_line(str(code))}: {error_line(str(answer.body.get('message')))}")
