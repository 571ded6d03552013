# SPDX-License-Identifier: Apache-2.0
"""CoSine for robots: drafters are ROS nodes, and the target computes in the verifier's node.

    robots ─▶ target_verifier (engine `cosine`) ─▶ target_verifier (rule `next_token`) in each namespace

Robots ask for plans as of any target. A drafter is a target verifier of its own with a draft's checkpoint.
No robot waits long for a drafter: a lost one is left out, and called again every second until it replies.
Without any, the target decodes alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.exceptions import NameValidationException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future as RosFuture

from adahi_lab.papers.cosine.collaboration import Opinion
from adahi_lab.papers.cosine.next_token import opinion_of
from adahi_lab.papers.cosine.serving import Service, Way
from adahi_lab.papers.cosine.serving_loop import Ask, LiveChunk, Owns, Places, ServingLoop, own_tokens
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import UNITS
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.policies import policy_from
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.common.verifier_messages import from_described, from_reply, to_request
from adahi_ros.nodes.robot.dds_transport import VerifierClients
from adahi_ros.nodes.server.target_verifier_parameters import (
    EngineSource,
    Say,
    TargetVerifierParameters,
    compute_arguments,
    target_by,
)
from adahi_ros.protocol.request import OK, Request, Sender
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.service import LoadedTarget, target_name
from adahi_ros.server.verifier import TargetVerifier, Verdicts, VerificationRequest

RULE = "replace"
SEEK_S, LOOK_S = 1.0, 0.1  # between two calls of lost drafters, and two looks for the end
NAMES = 1024  # of chunks at a drafter


class NodePlaces(Places):
    """See `Places`.

    Args:
        drafters: namespaces of their nodes.
        reliability: of requests, one of `RELIABILITIES`.
        target: computes here.
        warn: called with the reason why a drafter is left out.

    Raises:
        NameValidationException: a namespace is not valid.
    """

    def __init__(self, drafters: Sequence[str], reliability: str, target: TokenPolicy, warn: Say) -> None:
        super().__init__(len(drafters))
        self._target, self._warn = target, warn
        assert target.signature.codes is not None
        self._fingerprint = target.signature.codes.fingerprint
        self._sender = Sender.of_new_start("", "", self._fingerprint)
        self._node = Node("cosine", use_global_arguments=False)
        self._clients = [VerifierClients(self._node, reliability, each) for each in drafters]
        self._drafts: list[Signature | None] = [None for _ in drafters]
        self._calls: list[list[RosFuture]] = [[] for _ in drafters]
        self._seeking = [RosFuture() for _ in drafters]
        steady_timer(self._node, SEEK_S, self._seek)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._verifier = ThreadPoolExecutor(1, "verify")
        self._thread = threading.Thread(target=self._spin, name="drafters")  # waited for
        self._thread.start()

    def close(self) -> None:
        """End all calls."""
        self._over.set()
        self._thread.join()
        self._verifier.shutdown()

    def own(self, asks: Sequence[Ask]) -> Future[Owns]:
        """See `Places`."""
        return self._verifier.submit(own_tokens, self._target, asks)

    def opinions(self, drafter: int, asks: Sequence[Ask]) -> Future[list[Opinion]]:
        """See `Places`."""
        found: Future[list[Opinion]] = Future()
        client = self._clients[drafter].verifying
        calls = self._calls[drafter] = [client.call_async(self._request(drafter, ask)) for ask in asks]
        for call in calls:
            call.add_done_callback(lambda _: self._gather(asks, calls, found))
        return found

    def lost(self, drafter: int, why: str) -> None:
        """See `Places`."""
        super().lost(drafter, why)
        self._warn(f"{self._clients[drafter].name}: left out until it replies again: {why}")
        for call in self._calls[drafter]:
            self._clients[drafter].verifying.remove_pending_request(call)

    def _request(self, drafter: int, ask: Ask) -> VerifyDraft.Request:
        number, observations, tokens = ask
        target, draft = self._target.signature, self._drafts[drafter]
        assert draft is not None
        window = target.window(observations)[0, -draft.history :]
        goal = target.condition(observations)[0, : draft.goal_dim]
        codec, packed = self._target.codec, WireWindow.pack(window, goal)
        codes = np.array([*tokens, *[0] * (codec.codebooks - len(tokens))])
        sure = np.eye(codec.codebook_size, dtype=np.uint16)[codes] * np.uint16(UNITS)
        request = Request(number, 0, 0, packed, codes=codes, counts=sure.ravel())
        message = to_request(request, packed, self._sender)
        message.robot_id = f"chunk_{number % NAMES}"
        return message

    def _gather(self, asks: Sequence[Ask], calls: Sequence[RosFuture], found: Future[list[Opinion]]) -> None:
        """Set the opinions once all are there, or the first fault."""
        with self._lock:
            if found.done() or not all(call.done() for call in calls):
                return
            try:
                replies = zip(asks, calls, strict=True)
                found.set_result([self._opinion(call.result(), len(ask[2])) for ask, call in replies])
            except ValueError as error:
                found.set_exception(error)

    def _opinion(self, response: VerifyDraft.Response, place: int) -> Opinion:
        reply, codec = from_reply(0, response), self._target.codec
        if reply.status != OK or reply.fault:
            raise ValueError(reply.fault or reply.message)
        return opinion_of(reply.rule_data, place, codec.codebooks, codec.codebook_size)

    def _spin(self) -> None:
        executor = SingleThreadedExecutor()
        executor.add_node(self._node)
        with suppress(ExternalShutdownException):  # the process ends
            while not self._over.is_set():
                executor.spin_once(LOOK_S)
        executor.shutdown()
        self._node.destroy_node()

    def _seek(self) -> None:
        """Request the description of each drafter that is not present."""
        for drafter, clients in enumerate(self._clients):
            clients.describing.remove_pending_request(self._seeking[drafter])
            if not self.present[drafter] and clients.present:
                call = self._seeking[drafter] = clients.describing.call_async(DescribeTarget.Request())
                call.add_done_callback(partial(self._described, drafter))

    def _described(self, drafter: int, call: RosFuture) -> None:
        described = from_described(0, call.result())
        draft = None if described.description is None else described.description.signature
        if draft is None or draft.codes is None or draft.codes.fingerprint != self._fingerprint:
            self.lost(drafter, described.fault or "its tokens are not the target's")
        else:
            self._drafts[drafter], self.present[drafter] = draft, True


class CosineVerifier:
    """A `Verifier` that decodes the target's own chunks, one robot at a time from its engine.

    Args:
        target: of the chunks.
        loop: decodes them.
        robots: at once.
    """

    alone = True

    def __init__(self, target: TokenPolicy, loop: ServingLoop, robots: int) -> None:
        self.terms, self.at_once = TargetVerifier(target, RULE).terms, robots
        self._codec, self._loop = target.codec, loop

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`."""
        verdicts: Future[Verdicts] = Future()
        chunk = LiveChunk(self._codec.codebooks, request.observations)
        (episode,) = request.observations.episodes
        assert isinstance(episode, tuple)
        self._loop.ask(episode[0], chunk)
        chunk.found.add_done_callback(lambda _: verdicts.set_result([self._verdict(chunk)]))
        return verdicts

    def _verdict(self, chunk: LiveChunk) -> Verdict | Exception:
        try:
            codes = np.array([chunk.found.result()[0]], dtype=np.int64)
        except Exception as error:  # noqa: BLE001  a policy may raise anything
            return error.with_traceback(None)
        return Verdict(self._codec.decode(codes), np.zeros((1, 0), dtype=bool), codes=codes)


@dataclass(eq=False)
class CosineEngine(EngineSource):
    """The engine `cosine`: a target of tokens here, and drafters in other nodes."""

    drafters: tuple[str, ...] = argument((), "Namespaces of the drafters' nodes, such as /drafter_0")
    robots: int = argument(16, "Robots that are decoded at once", 1, 1024)
    routed: bool = argument(True, "Choose drafters by what was kept; else each robot has one at random")
    fused: int = argument(2, "Most drafters that work on one robot, of those there are", 1, 64)
    pipelined: bool = argument(True, "Draft for one half of the robots while the other half is verified")
    tokens: int = argument(0, "Drafted tokens per verification; 0 adapts them to the load", 0, 64)

    loads_targets = False

    _opened: ExitStack = field(default_factory=ExitStack, init=False)

    def open(self, values: TargetVerifierParameters, warn: Say, away: Say) -> list[LoadedTarget]:
        """See `EngineSource`."""
        if values.rule.name not in ("by_target", RULE):
            raise ParameterError(f"rule.name: {values.rule.name!r}, must be {RULE!r} for engine.name:=cosine")
        names = [each for each in self.drafters if each]
        if not names:
            raise ParameterError("engine.drafters: [], must be namespaces for engine.name:=cosine")
        target = policy_from(values, away, **compute_arguments(values))
        if not isinstance(target, TokenPolicy) or target.codec.end is not None:
            raise ParameterError(f"checkpoint: {values.checkpoint!r}, must emit chunks of as many tokens")
        way = Way(self.routed, min(self.fused, len(names)), self.pipelined, self.tokens)
        if values.added_compute_s:
            target.on_pass = lambda robots, positions: time.sleep(values.added_compute_s)
        try:
            places = NodePlaces(names, values.verification.reliability, target, warn)
        except NameValidationException as error:
            raise ParameterError(f"engine.drafters: {names}, must be namespaces: {error}") from None
        self._opened.callback(places.close)
        loop = ServingLoop(places, way, Service(len(names), draft_more_s=0.0, pass_more_s=0.0))
        self._opened.callback(loop.close)
        verifier = CosineVerifier(target, loop, self.robots)
        name = target_name(values.target_name, values.checkpoint)
        return [target_by(values, name, verifier, target.device)]

    def close(self) -> None:
        """See `EngineSource`."""
        self._opened.close()
