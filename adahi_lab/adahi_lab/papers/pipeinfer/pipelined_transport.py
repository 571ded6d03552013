# SPDX-License-Identifier: Apache-2.0
"""A request for a chunk of tokens as many requests: drafted runs go out while earlier ones are verified.

Continuous asynchronous speculation, as in PipeInfer (Butler et al., arXiv 2407.11798). The robot drafts a
token at each `poll`, and sends a run as soon as it has enough, without waiting for replies. A reply has the
number of tokens that the target keeps, and its own next one. The replies together are the target's own chunk.

The verifier finds out by itself which runs are void (`adahi_lab.papers.pipeinfer.layered_target`), so no
message cancels them. Nothing is drawn by chance: the target decodes greedily, by the rule `likeliest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, Run, TokenRuns
from adahi_lab.papers.tokens.greedy_draft import GreedyDraft
from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.proposal import UNITS
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import OK, Reply, Request, RequestFault
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Check
from adahi_ros.robot.transport import Sent, Transport
from adahi_ros.robot.transports import AroundTransport

RULE = "likeliest"
MOST_IN_FLIGHT = 4  # runs of one chunk: a verifier keeps no more requests of a robot waiting
PAUSE_S = 0.01  # before the next run, after the second useless reply in a row; doubled with each further one
DOUBLED_MOST = 6


@dataclass(eq=False)
class _Chunk:
    """A request for a chunk, and its runs.

    Attributes:
        request: for the whole chunk.
        window: the part of its window that is sent.
        runs: decides.
        draft: drafts.
        since_s: when it began.
        ids: of the messages that the caller knows.
        sent: the runs in flight, with when they were sent, by their messages.
        link_ms: shortest round trip of a run without the verifier's compute.
        size_bytes: of all replies.
        assignment: of the first reply.
        useless: replies in a row that gave no further token.
        restarts: how often the assignment was another.
        resume_s: no run goes out before.
    """

    request: Request
    window: WireWindow
    runs: TokenRuns
    draft: GreedyDraft
    since_s: float
    ids: list[int] = field(default_factory=list)
    sent: dict[int, tuple[Run, float]] = field(default_factory=dict)
    link_ms: float = math.inf
    size_bytes: int = 0
    assignment: int | None = None
    useless: int = 0
    restarts: int = 0
    resume_s: float = -math.inf

    def pause(self, times: int, now_s: float) -> None:
        """Send nothing for a while, because of so many useless replies; the first delays nothing."""
        if times > 1:
            self.resume_s = now_s + PAUSE_S * 2 ** min(times - 2, DOUBLED_MOST)


class PipelinedTransport(Transport):
    """See the module, and `Transport`. Requests with codes of their own pass unchanged.

    Attributes:
        figures: see `Transport`; with the runs so far, and how many of them became void.

    Args:
        transport: to the verifier.
        draft: drafts the tokens, one for each entry of an action.
        batch: drafted tokens per run.
        clock: monotonic time in seconds.

    Raises:
        ValueError: the draft does not emit such tokens.
    """

    def __init__(self, transport: Transport, draft: Policy, batch: int, clock: Callable[[], float]) -> None:
        if not isinstance(draft, TokenPolicy) or not isinstance(draft.codec, BinCodec):
            found = draft.codec.kind if isinstance(draft, TokenPolicy) else type(draft).__name__
            raise ValueError(f"checkpoint: {found}, must emit tokens, one for each entry of an action")
        self._transport, self._policy, self._codec = transport, draft, draft.codec
        self._batch, self._clock = batch, clock
        self._chunks: list[_Chunk] = []
        self._runs = self._void = 0

    @property
    def figures(self) -> dict[str, object]:
        """See `Transport`."""
        return {**self._transport.figures, "runs": self._runs, "void_runs": self._void}

    @property
    def present(self) -> bool:
        """See `Transport`."""
        return self._transport.present

    @property
    def absence(self) -> str:
        """See `Transport`."""
        return self._transport.absence

    @property
    def next_due_s(self) -> float:
        """See `Transport`; now, where there is a token to draft."""
        now_s = self._clock()
        due_s = [
            max(now_s, chunk.resume_s)
            for chunk in self._chunks
            if chunk.runs.wants_draft or chunk.resume_s > now_s
        ]
        return min([self._transport.next_due_s, *due_s])

    def accept_only(self, check: Check) -> None:
        """See `Transport`."""
        self._transport.accept_only(check)

    def describe(self) -> int:
        """See `Transport`."""
        return self._transport.describe()

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send the first run of a chunk; `poll` sends more. A request in flight sends its runs again."""
        if request.codes.size or request.without_actions:
            return self._transport.submit(request, window)
        chunk = next((each for each in self._chunks if each.request is request), None)
        if chunk is None:
            chunk = self._begun(request, window)
            self._chunks.append(chunk)
            return self._first(chunk)
        chunk.window = window
        again = list(chunk.runs.in_flight)
        if not again:
            return self._first(chunk)
        messages = [self._send(chunk, run) for run in again]
        chunk.ids.append(messages[0].id)
        return Sent(messages[0].id, sum(each.size_bytes for each in messages))

    def cancel(self, sent: int) -> None:
        """See `Transport`."""
        for chunk in [each for each in self._chunks if sent in each.ids]:
            chunk.ids.remove(sent)
            if not chunk.ids:
                self._close(chunk)
        if not any(sent in chunk.sent for chunk in self._chunks):
            self._transport.cancel(sent)

    def poll(self) -> list[Reply | Described | Sent]:
        """Return what has arrived, and draft a token of each chunk."""
        arrived: list[Reply | Described | Sent] = []
        ours = {sent for chunk in self._chunks for sent in chunk.sent}
        for received in self._transport.poll():
            of = received.id if isinstance(received, Reply | Sent) else None
            chunk = next((each for each in self._chunks if of in each.sent), None)
            if isinstance(received, Described):
                arrived.append(_greedy(received))
            elif chunk is None:
                if of not in ours:  # else of a run that a reply before it made void
                    arrived.append(received)
            elif isinstance(received, Reply):
                arrived += self._replied(chunk, received)
            else:
                assert isinstance(received, Sent)
                arrived.append(Sent(chunk.ids[-1], received.size_bytes))
        for chunk in self._chunks:
            if self._clock() < chunk.resume_s:
                continue
            if chunk.runs.wants_draft:
                self._draft(chunk)
            while (run := chunk.runs.next_run()) is not None:
                arrived.append(Sent(chunk.ids[-1], self._send(chunk, run).size_bytes))
        return arrived

    def _begun(self, request: Request, window: WireWindow) -> _Chunk:
        policy, whole = self._policy.signature, request.window
        numbers = np.frombuffer(whole.rows.numbers, dtype="<f4").reshape(1, whole.length, -1)
        goal = np.frombuffer(whole.goal, dtype="<f4")[: policy.goal_dim].reshape(1, -1)
        observations = policy.observations(numbers[:, -policy.history :], goal)
        draft = GreedyDraft(self._policy, observations)
        return _Chunk(request, window, self._new_runs(), draft, self._clock())

    def _new_runs(self) -> TokenRuns:
        # A request without codes is for a whole chunk, so the shortest run has a token.
        return TokenRuns(self._codec.codebooks, self._batch, MOST_IN_FLIGHT, 1, CUTOFF)

    def _first(self, chunk: _Chunk) -> Sent:
        """Draft until a run is due, and send it."""
        while (run := chunk.runs.next_run()) is None:
            self._draft(chunk)
        message = self._send(chunk, run)
        chunk.ids.append(message.id)
        return message

    def _draft(self, chunk: _Chunk) -> None:
        chunk.runs.draft(*chunk.draft.next_token(chunk.runs.drafted))

    def _send(self, chunk: _Chunk, run: Run) -> Sent:
        codes = np.array(run.tokens, dtype=np.int64)
        sure = np.eye(self._codec.codebook_size, dtype=np.uint16)[codes] * np.uint16(UNITS)
        request = chunk.request
        part = replace(request, first_step=request.step, actions=request.actions[:0], codes=codes)
        message = self._transport.submit(replace(part, counts=sure.ravel()), chunk.window)
        chunk.sent[message.id] = run, self._clock()
        self._runs += 1
        return message

    def _replied(self, chunk: _Chunk, reply: Reply) -> list[Reply]:
        """Take in the reply to a run; return the reply to the chunk once it is known, or the first error."""
        run, sent_s = chunk.sent.pop(reply.id)
        if reply.status == RequestFault.SUPERSEDED:  # too many of this robot waited
            chunk.runs.lost(run)
            self._count_useless(chunk)
            return []
        fault = reply.fault
        if reply.status == OK and not fault:
            fault = self._fault(reply, run, chunk.request)
        if reply.status != OK or fault:
            self._close(chunk)
            return [replace(reply, id=chunk.ids[-1], fault=fault)]
        chunk.size_bytes += reply.size_bytes
        chunk.link_ms = min(chunk.link_ms, 1e3 * (self._clock() - sent_s) - reply.compute_ms)
        if chunk.assignment not in (None, reply.assignment):  # the rest would be of another goal
            self._forget(chunk, [each for each, _ in chunk.sent.values()])
            chunk.runs = self._new_runs()
            chunk.assignment = None
            chunk.restarts += 1
            chunk.pause(chunk.restarts, self._clock())
            return []
        chunk.assignment = reply.assignment
        size = self._codec.action_dim
        actions = np.asarray(reply.actions, dtype=np.float32).reshape(1, -1, size)
        accepted = next((at for at, kept in enumerate(reply.accepted) if not kept), len(run.tokens))
        following = int(self._codec.encode(actions)[0, accepted])
        known, awaited = len(chunk.runs.verified), run in chunk.runs.in_flight
        void = chunk.runs.returned(run, accepted, following)
        if len(chunk.runs.verified) > known:
            chunk.useless = 0
        elif awaited:
            self._count_useless(chunk)
        self._void += len(void)
        self._forget(chunk, void)
        if not chunk.runs.done:
            return []
        self._close(chunk)
        request, codes = chunk.request, np.array([chunk.runs.verified])
        compute_ms = max(0.0, 1e3 * (self._clock() - chunk.since_s) - max(0.0, chunk.link_ms))
        made = self._codec.decode(codes)[0, request.ahead :].ravel()
        return [
            Reply(
                *(OK, "", *request.about),
                actions=made,
                compute_ms=compute_ms,
                window_kept=reply.window_kept,
                id=chunk.ids[-1],
                size_bytes=chunk.size_bytes,
                assignment=reply.assignment,
            )
        ]

    def _count_useless(self, chunk: _Chunk) -> None:
        chunk.useless += 1
        chunk.pause(chunk.useless, self._clock())

    def _fault(self, reply: Reply, run: Run, request: Request) -> str:
        """Return what is wrong with a reply to a run; empty for nothing."""
        actions = np.asarray(reply.actions, dtype=np.float32)
        whole = self._codec.chunk_length * self._codec.action_dim
        named, wanted = (reply.episode, reply.step, reply.first_step), (*request.about[:2], request.step)
        if named != wanted:
            return f"episode_id, step_id, first_step: {named}, must be {wanted}"
        if len(reply.accepted) != len(run.tokens):
            return f"accepted: {len(reply.accepted)} values, must be {len(run.tokens)}"
        if actions.size != whole:
            return f"actions: {actions.size} values, must be {whole}"
        return "" if np.isfinite(actions).all() else "actions: not finite, must be finite"

    def _forget(self, chunk: _Chunk, runs: list[Run]) -> None:
        """Drop replies to runs."""
        for sent in [each for each, (run, _) in chunk.sent.items() if run in runs]:
            del chunk.sent[sent]
            self._transport.cancel(sent)

    def _close(self, chunk: _Chunk) -> None:
        """Forget a chunk and all its runs."""
        self._chunks.remove(chunk)
        for sent in chunk.sent:
            self._transport.cancel(sent)


@dataclass(frozen=True)
class Pipelined(AroundTransport):
    """The transport `pipelined` of a robot's node."""

    tokens_per_run: int = argument(4, "Drafted tokens per request, with the rule likeliest", 1, 64)

    def around(self, transport: Transport, policy: Policy, clock: Callable[[], float]) -> Transport:
        """See `AroundTransport`."""
        return PipelinedTransport(transport, policy, self.tokens_per_run, clock)


def _greedy(described: Described) -> Described:
    """Return a description, or the fault of a target that does not reply to runs."""
    found = described.description
    if found is None or found.acceptance == RULE:
        return described
    fault = f"acceptance: {found.acceptance!r}, must be {RULE!r} with the transport pipelined"
    return replace(described, description=None, fault=fault)
