"""A chunk of tokens by many requests: the replies together are the target's own chunk."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from adahi_lab.papers.pipeinfer import pipelined_transport
from adahi_lab.papers.pipeinfer.pipelined_transport import MOST_IN_FLIGHT, PipelinedTransport
from adahi_lab.papers.pipeinfer.token_runs import CUTOFF, NO_CUTOFF, Cutoff
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.assets import asset
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.request import OK, Reply, Request, RequestFault, fingerprint_number
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.hedged_transport import HedgedTransport
from adahi_ros.robot.outcomes import Check
from adahi_ros.robot.transport import Sent
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier

FOLDER = asset("checkpoints/metaworld/tokens")
N = 32


@pytest.fixture(scope="module")
def draft() -> TokenPolicy:
    policy = load_policy(FOLDER / "draft", "onnxruntime")
    assert isinstance(policy, TokenPolicy)
    return policy


class Inner:
    """Carries requests to an engine; the test says when each reply arrives, and how it is changed."""

    present, absence = True, ""
    next_due_s = math.inf

    def __init__(self, draft: TokenPolicy) -> None:
        policy = load_policy(FOLDER / "plans" / "target", "onnxruntime")
        self.signature = policy.signature
        self.engine = Engine(TargetVerifier(policy, "likeliest"), 0)
        self.fingerprint = fingerprint_number(draft.codec.fingerprint)
        self.waiting: list[tuple[int, Request]] = []
        self.sent: list[Request] = []
        self.change: Callable[[Reply], Reply] = lambda reply: reply
        self.figures: dict[str, object] = {}
        self._ids, self._arrived = count(), list[Reply | Described]()
        self.description = Description("tokens", "likeliest", self.signature, policy_fingerprint="0" * 16)

    def accept_only(self, check: Check) -> None:
        pass

    def submit(self, request: Request, window: WireWindow) -> Sent:
        sent = next(self._ids)
        named = replace(request, robot_id="robot", session=1, fingerprint=self.fingerprint, window=window)
        self.waiting.append((sent, named))
        self.sent.append(named)
        return Sent(sent, 100)

    def deliver(self, index: int) -> None:
        sent, request = self.waiting.pop(index)
        reply = self.engine.verify(request, 0.0)
        self._arrived.append(self.change(replace(reply, id=sent, size_bytes=10, compute_ms=1.0)))

    def describe(self) -> int:
        sent = next(self._ids)
        self._arrived.append(Described(sent, self.description))
        return sent

    def poll(self) -> list[Reply | Described]:
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, sent: int) -> None:
        self.waiting = [each for each in self.waiting if each[0] != sent]


def request_of(inner: Inner, seed: int = 0, first_step: int = 4) -> Request:
    signature, rng = inner.signature, np.random.default_rng(seed)
    numbers = rng.normal(size=(signature.history, signature.observation_dim)).astype(np.float32)
    goal = rng.normal(size=signature.goal_dim).astype(np.float32)
    return Request(2, 4, first_step, WireWindow.pack(numbers, goal))


def own_chunk(inner: Inner, request: Request) -> np.ndarray:
    """The target's own actions, by one request without tokens in process."""
    signature = inner.signature
    window = np.frombuffer(request.window.rows.numbers, "<f4").reshape(1, signature.history, -1)
    seen = signature.observations(window, np.frombuffer(request.window.goal, "<f4")[None])
    plain = load_policy(FOLDER / "target", "onnxruntime")
    assert isinstance(plain, TokenPolicy)
    actions: np.ndarray = plain.codec.decode(plain.likeliest(seen, N).codes)[0]
    return actions


def replies(transport: PipelinedTransport, inner: Inner, seed: int) -> list[Reply]:
    """Deliver replies in any order until the chunk is there."""
    rng, found = np.random.default_rng(seed), list[Reply]()
    for _ in range(500):
        found += [each for each in transport.poll() if isinstance(each, Reply)]
        if found:
            break
        if inner.waiting and rng.random() < 0.5:
            inner.deliver(int(rng.integers(len(inner.waiting))))
    return found


@pytest.mark.parametrize("batch", [1, 4, 31])
@pytest.mark.parametrize(("ahead", "cutoff"), [(0, NO_CUTOFF), (3, CUTOFF)])
def test_replies_in_any_order_make_the_targets_own_chunk(
    draft: TokenPolicy, batch: int, ahead: int, cutoff: Cutoff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelined_transport, "CUTOFF", cutoff)
    for seed in range(3):
        inner = Inner(draft)
        transport = PipelinedTransport(inner, draft, batch, lambda: 0.0)
        request = request_of(inner, seed, first_step=4 + ahead)
        sent = transport.submit(request, request.window)
        (reply,) = replies(transport, inner, seed)
        assert (reply.status, reply.id, reply.first_step) == (OK, sent.id, 4 + ahead)
        assert list(reply.accepted) == []
        expected = own_chunk(inner, request)[ahead:]
        np.testing.assert_array_equal(np.reshape(reply.actions, (-1, 4)), expected)
        assert transport.next_due_s == math.inf  # nothing is left of it


def test_drafted_runs_go_out_before_any_reply(draft: TokenPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelined_transport, "CUTOFF", NO_CUTOFF)
    inner = Inner(draft)
    transport = PipelinedTransport(inner, draft, 4, lambda: 7.0)
    request = request_of(inner)
    transport.submit(request, request.window)
    assert transport.next_due_s == 7.0  # there is more to draft
    for _ in range(40):
        transport.poll()
    lengths = [each.codes.size for each in inner.sent]
    assert lengths == [1, 5, 9, 13]
    assert len(lengths) == MOST_IN_FLIGHT
    assert transport.figures["runs"] == 4
    for each in inner.sent:
        assert each.codes.tolist() == inner.sent[-1].codes[: each.codes.size].tolist()
        assert each.counts.reshape(-1, 256).sum(axis=1).tolist() == [65535] * each.codes.size


def test_a_lost_message_is_sent_again_with_the_request(draft: TokenPolicy) -> None:
    inner = Inner(draft)
    transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
    request = request_of(inner)
    first = transport.submit(request, request.window)
    transport.poll()
    inner.waiting.clear()  # lost
    second = transport.submit(request, request.window)
    assert second.id != first.id
    (reply,) = replies(transport, inner, 1)
    assert reply.id in (first.id, second.id)
    np.testing.assert_array_equal(np.reshape(reply.actions, (-1, 4)), own_chunk(inner, request))


def test_a_run_that_the_verifier_overtakes_is_read_again(draft: TokenPolicy) -> None:
    inner, calls = Inner(draft), count()
    inner.change = lambda reply: (
        replace(reply, status=int(RequestFault.SUPERSEDED), accepted=(), actions=())
        if next(calls) % 3 == 0
        else reply
    )
    transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
    request = request_of(inner)
    transport.submit(request, request.window)
    (reply,) = replies(transport, inner, 2)
    np.testing.assert_array_equal(np.reshape(reply.actions, (-1, 4)), own_chunk(inner, request))


USELESS: dict[str, Callable[[Reply, int], Reply]] = {
    "superseded": lambda reply, call: replace(reply, status=int(RequestFault.SUPERSEDED), actions=()),
    "refused": lambda reply, call: replace(reply, accepted=(False,) * len(reply.accepted)),
    "of other assignments": lambda reply, call: replace(reply, assignment=call),
}


@pytest.mark.parametrize("useless", USELESS)
def test_useless_replies_get_ever_fewer_requests(draft: TokenPolicy, useless: str) -> None:
    """The verifier takes every run, and gives no token: in 4 s of quick replies it gets few requests."""
    inner, calls, clock = Inner(draft), count(), [0.0]
    inner.change = lambda reply: USELESS[useless](reply, next(calls)) if clock[0] > 0.0 else reply
    transport = PipelinedTransport(inner, draft, 4, lambda: clock[0])
    request = request_of(inner)
    transport.submit(request, request.window)
    for _ in range(20):
        transport.poll()
    inner.deliver(0)  # the first is as it should be
    transport.poll()
    while clock[0] < 4.0:
        clock[0] += 0.002
        transport.poll()
        if inner.waiting:
            inner.deliver(0)
    assert len(inner.sent) < 40
    assert clock[0] < transport.next_due_s < math.inf
    inner.change = lambda reply: reply
    found: list[Reply] = []
    while not found and clock[0] < 6.0:
        clock[0] += 0.01
        if inner.waiting:
            inner.deliver(0)
        found = [each for each in transport.poll() if isinstance(each, Reply)]
    np.testing.assert_array_equal(np.reshape(found[0].actions, (-1, 4)), own_chunk(inner, request))


@pytest.mark.parametrize(
    "changes",
    [
        {"status": int(RequestFault.BUSY)},
        {"accepted": (True,) * 9},
        {"actions": (0.0,) * 7},
        {"actions": (float("nan"),) * N},
        {"fault": "it cannot be read"},
        {"step": 3},
        {"accepted": (), "actions": (0.0,) * N},  # as to a request without tokens
    ],
)
def test_a_bad_reply_ends_the_chunk_with_that_reply(draft: TokenPolicy, changes: dict[str, object]) -> None:
    inner = Inner(draft)
    inner.change = lambda reply: replace(reply, **changes)  # type: ignore[arg-type]
    transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
    request = request_of(inner)
    sent = transport.submit(request, request.window)
    (reply,) = replies(transport, inner, 3)
    assert reply.id == sent.id
    assert reply.status != OK or reply.fault  # so nothing of it is executed
    assert not inner.waiting  # the other runs are cancelled


def test_a_void_runs_reply_in_the_same_poll_is_dropped(draft: TokenPolicy) -> None:
    """The caller knows the first run's message as the chunk's: its reply must not pass for the chunk's."""
    for seed in range(3):
        inner = Inner(draft)
        transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
        request = request_of(inner, seed)
        transport.submit(request, request.window)
        found: list[Reply] = []
        for _ in range(6):
            transport.poll()
        assert len(inner.waiting) > 1
        for _ in range(500):
            while inner.waiting:
                inner.deliver(-1)  # the newest first
            found += [each for each in transport.poll() if isinstance(each, Reply)]
            if found:
                break
        (reply,) = found
        assert list(reply.accepted) == []
        np.testing.assert_array_equal(np.reshape(reply.actions, (-1, 4)), own_chunk(inner, request))


def test_a_target_with_another_rule_is_refused(draft: TokenPolicy) -> None:
    inner = Inner(draft)
    transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
    transport.describe()
    (right,) = transport.poll()
    assert isinstance(right, Described)
    assert right.description is inner.description
    inner.description = replace(inner.description, acceptance="speculative")
    transport.describe()
    (refused,) = transport.poll()
    assert isinstance(refused, Described)
    assert refused.description is None
    assert refused.fault == "acceptance: 'speculative', must be 'likeliest' with the transport pipelined"


def test_a_cancelled_chunk_and_requests_with_codes_leave_nothing(draft: TokenPolicy) -> None:
    inner = Inner(draft)
    transport = PipelinedTransport(inner, draft, 4, lambda: 0.0)
    request = request_of(inner)
    sent = transport.submit(request, request.window)
    transport.poll()
    transport.cancel(sent.id)
    assert not inner.waiting
    assert transport.next_due_s == math.inf
    own = replace(request, codes=np.array([1, 2]))
    passed = transport.submit(own, own.window)
    assert inner.sent[-1].codes.tolist() == [1, 2]
    transport.cancel(passed.id)
    assert not inner.waiting


def test_several_verifiers_read_runs_side_by_side(draft: TokenPolicy) -> None:
    """DSI: each run goes to the verifier with the fewest."""
    for seed in range(3):
        ends = {"first": Inner(draft), "second": Inner(draft)}
        hedged = HedgedTransport(ends, "spread", lambda: 0.0, lambda news: None)
        hedged.describe()
        hedged.poll()
        transport = PipelinedTransport(hedged, draft, 4, lambda: 0.0)
        request, rng = request_of(ends["first"], seed), np.random.default_rng(seed)
        transport.submit(request, request.window)
        found: list[Reply] = []
        for _ in range(500):
            found += [each for each in transport.poll() if isinstance(each, Reply)]
            end = ends["first" if rng.random() < 0.5 else "second"]
            if end.waiting and rng.random() < 0.5:
                end.deliver(int(rng.integers(len(end.waiting))))
            if found:
                break
        np.testing.assert_array_equal(
            np.reshape(found[0].actions, (-1, 4)), own_chunk(ends["first"], request)
        )
        sent = [len(end.sent) for end in ends.values()]
        assert min(sent) >= 0.2 * sum(sent)


def test_another_draft_is_refused(draft: TokenPolicy) -> None:
    other = load_policy(asset("checkpoints/ball") / "draft", "onnxruntime")
    with pytest.raises(ValueError, match="checkpoint: CodePolicy, must emit tokens"):
        PipelinedTransport(Inner(draft), other, 4, lambda: 0.0)
