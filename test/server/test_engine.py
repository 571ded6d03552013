"""What comes back is what the rollout's verifier says, whatever draft and target read."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import GOAL, OBSERVATION, CodeSpace
from adahi_ros.lab.history import History
from adahi_ros.policies.vqbet.code_policy import ActionDecoder, CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import code_signature
from adahi_ros.protocol.request import (
    NO_FINGERPRINT,
    UNKNOWN_MS,
    Reply,
    Request,
    RequestError,
    RequestFault,
    sent_codes,
)
from adahi_ros.protocol.window import SentWindows
from adahi_ros.robot.target_view import Features
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, verification_uniforms
from test.server.noting import noted

SEED, STEPS, HORIZON = 3, 12, 4
NOW_S = 1.0
DRAW = np.random.default_rng(0)
WEIGHTS = DRAW.normal(size=(9, 4, 2, 5))
DECODER = ActionDecoder(
    DRAW.normal(size=(5, 5, HORIZON, 2)).astype(np.float32), np.array([1.0, 1.0], np.float32)
)


CODES = CodeSpace(DECODER.fingerprint, 2, 5)


class Recalling(CodePolicy):
    """Depends on every number of all that it reads: O 3, G 1, N 2, K 5, T 4, A 2."""

    def __init__(self, history: int) -> None:
        super().__init__(code_signature(DECODER, history, 3, 1), DECODER, "recalling")

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        seen = np.concatenate([windows, np.repeat(goals[:, None], windows.shape[1], axis=1)], axis=2)
        logits = np.einsum("bho,honk->bnk", seen, WEIGHTS[: windows.shape[1]]).astype(np.float32)
        return Prediction(logits, np.tile(logits[..., None, None], (1, 1, 1, HORIZON, 2)))


@pytest.mark.parametrize("rule", ["speculative", "replace"])
@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_target_may_read_more_or_less_of_the_past_than_the_draft(rule: str, length: int) -> None:
    target = Recalling(length)
    engine, verifier = Engine(TargetVerifier(target, rule), SEED), TargetVerifier(target, rule)
    view, sent, history = Features(3), SentWindows(), History(target.signature, 1)
    fingerprint = int(DECODER.fingerprint, 16)
    draw = np.random.default_rng(1)
    sizes = []
    for step in range(STEPS):
        seen = {OBSERVATION: draw.normal(size=3), GOAL: np.ones(1)}
        view.add(seen)
        observations = history.push({name: values[None] for name, values in seen.items()})
        if step % 3 == 1:
            continue  # the gate holds it back
        counts = counted(draw.dirichlet(np.ones(5), size=(1, 2)))
        draft = Proposal(np.zeros((1, 0, 2), np.float32), sent_codes(draw.integers(5, size=(1, 2)), counts))
        window = view.window(target.signature)
        request = Request.of(draft, 2, step, sent.update(window))
        request = replace(request, robot_id="arm", fingerprint=fingerprint)
        sizes.append(len(request.window.rows.numbers))
        reply = engine.verify(request, NOW_S)
        sent.replied(window, reply.window_kept)
        expected = verifier.verify(
            VerificationRequest(observations, draft), verification_uniforms(SEED, "arm", 2, step, 2)
        )
        np.testing.assert_array_equal(reply.actions, expected.actions.ravel())
        np.testing.assert_array_equal(reply.accepted, expected.accepted[0])
    assert length == 1 or max(sizes[1:]) < sizes[0]  # only what is new is sent


def request_of(**changes: Any) -> Request:
    view = Features(3)
    view.add({OBSERVATION: np.full(3, 0.5), GOAL: np.ones(1)})
    counts = counted(np.full((1, 2, 5), 0.2))
    draft = Proposal(np.zeros((1, 0, 2), np.float32), sent_codes(np.array([[1, 2]]), counts))
    update = SentWindows().update(view.window(Recalling(2).signature))
    given = {"robot_id": "arm", "fingerprint": int(DECODER.fingerprint, 16), **changes}
    return replace(Request.of(draft, 0, 7, update), **given)


def bare(**changes: Any) -> Request:
    """A request of a robot that drafts no codes."""
    nothing = np.empty(0, np.int64)
    return request_of(codes=nothing, counts=nothing, fingerprint=NO_FINGERPRINT, **changes)


@pytest.mark.parametrize("ahead", range(HORIZON))
def test_a_reply_may_begin_at_a_later_step(ahead: int) -> None:
    engine = Engine(TargetVerifier(Recalling(2)), SEED)
    whole, later = (engine.verify(each, NOW_S) for each in (request_of(), request_of(first_step=7 + ahead)))
    np.testing.assert_array_equal(later.actions, whole.actions[2 * ahead :])
    np.testing.assert_array_equal(later.accepted, whole.accepted)


@pytest.mark.parametrize(("ahead", "sent", "count"), [(0, 2, None), (2, 0, None), (2, 1, 1), (2, 3, 2)])
def test_drafted_actions_before_the_reply_begins_are_committed(
    ahead: int, sent: int, count: int | None
) -> None:
    target = Recalling(2)
    given = noted(target, lambda observations, draws, sampling: sampling.committed)
    engine = Engine(TargetVerifier(target, "replace", agreement="continue"), SEED)
    actions = np.arange(2 * sent, dtype=np.float32)
    engine.verify(bare(actions=actions, first_step=7 + ahead), NOW_S)
    engine.verify(bare(actions=actions + 1, first_step=7 + ahead), NOW_S)  # another request
    if count is None:
        assert given[0] is None
    else:
        np.testing.assert_array_equal(given[0], actions[: 2 * count].reshape(1, count, 2))
    assert len(given) == (2 if sent else 1)


def test_what_is_committed_is_as_the_target_acts_and_finite() -> None:
    engine = Engine(TargetVerifier(Recalling(2), "replace", agreement="continue"), SEED)
    with pytest.raises(RequestError, match=r"^draft_actions: 3 values, must be"):
        engine.verify(bare(actions=np.zeros(3, np.float32), first_step=8), NOW_S)
    with pytest.raises(RequestError, match=r"^draft_actions\[1\]: inf, must be finite"):
        engine.verify(bare(actions=np.array([0.0, np.inf], np.float32), first_step=8), NOW_S)


@pytest.mark.parametrize("first_step", [6, 7 + HORIZON, 2**32 - 1])
def test_a_reply_begins_within_the_horizon(first_step: int) -> None:
    engine = Engine(TargetVerifier(Recalling(2)), SEED)
    with pytest.raises(RequestError, match=f"^first_step: {first_step}, must be from 7 to 10$") as refusal:
        engine.verify(request_of(first_step=first_step), NOW_S)
    assert refusal.value.fault is RequestFault.WRONG_SHAPE


def test_codes_of_another_tokenizer_are_refused_and_may_be_left_out() -> None:
    other = request_of(fingerprint=1)
    for rule in ("speculative", "replace"):
        with pytest.raises(RequestError, match=r"^tokenizer_fingerprint: 0{15}1, must be ") as refusal:
            Engine(TargetVerifier(Recalling(2), rule), SEED).verify(other, NOW_S)
        assert refusal.value.fault is RequestFault.TOKENIZER_MISMATCH
    verdict = Engine(TargetVerifier(Recalling(2), "replace"), SEED).verify(bare(), NOW_S)
    with_codes = Engine(TargetVerifier(Recalling(2), "replace"), SEED).verify(request_of(), NOW_S)
    np.testing.assert_array_equal(verdict.actions, with_codes.actions)
    assert verdict.accepted == ()
    with pytest.raises(RequestError, match=re.escape("codes: 0 values, expected 2 for shape (2,)")):
        Engine(TargetVerifier(Recalling(2)), SEED).verify(bare(), NOW_S)


def test_a_target_without_a_tokenizer_replaces() -> None:
    target = Recalling(2)
    target.signature = replace(target.signature, codes=None)
    engine = Engine(TargetVerifier(target, "replace"), SEED)
    assert len(engine.verify(bare(), NOW_S).actions) == HORIZON * 2
    with pytest.raises(RequestError, match="must be none: the target has no tokenizer") as refusal:
        engine.verify(request_of(), NOW_S)
    assert refusal.value.fault is RequestFault.TOKENIZER_MISMATCH


def together(engine: Engine, requests: list[Request]) -> list[Reply]:
    replies = engine.finish(engine.begin(requests), NOW_S)
    assert all(isinstance(each, Reply) for each in replies)
    return replies  # type: ignore[return-value]


class ByLink(Speculative):
    """Keeps whole drafts of robots with a round trip above 50 ms."""

    uses_link = True

    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        verdict = super().verify(draft, target, draws)
        assert draft.distribution is not None
        assert target.distribution is not None
        trips_ms = np.zeros(len(draws)) if round_trip_ms is None else round_trip_ms
        kept = trips_ms > 50.0  # none where it is unknown
        own = target.distribution.actions_of(draft.distribution.codes)
        actions = np.where(kept[:, None, None], own, verdict.actions)
        return Verdict(actions, verdict.accepted | kept[:, None])


def counting(target: Recalling) -> list[int]:
    """Have a target note for how many robots it proposes each time."""
    return noted(target, lambda observations, draws, sampling: len(draws))


def test_by_link_a_draft_stands_where_the_round_trip_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACCEPTANCES.shipped, "by_link", ByLink)
    target = Recalling(2)
    requested = counting(target)
    engine = Engine(TargetVerifier(target, "by_link"), SEED)
    plain = Engine(TargetVerifier(Recalling(2)), SEED)
    steps = range(40)
    all_stand = [request_of(step=step, first_step=step, round_trip_ms=51.0) for step in steps]
    none_stand = [replace(each, round_trip_ms=49.0) for each in all_stand]
    unknown = [replace(each, round_trip_ms=UNKNOWN_MS) for each in all_stand]
    for verdict in together(engine, all_stand):
        assert all(verdict.accepted)
    expected = together(plain, unknown)
    assert not all(all(verdict.accepted) for verdict in expected)
    for requests in (none_stand, unknown):
        for verdict, one in zip(together(engine, requests), expected, strict=True):
            np.testing.assert_array_equal(verdict.accepted, one.accepted)
            np.testing.assert_allclose(verdict.actions, one.actions, rtol=1e-6)
    before = len(requested)
    together(engine, all_stand)  # sent again as they were
    assert len(requested) == before


def test_the_round_trip_makes_no_new_request_where_no_rule_uses_it() -> None:
    target = Recalling(2)
    requested = counting(target)
    engine = Engine(TargetVerifier(target), SEED)
    replies = [engine.verify(request_of(round_trip_ms=ms), NOW_S).actions for ms in (0.0, 7.0, 60_000.0)]
    assert len(requested) == 1
    for actions in replies[1:]:
        np.testing.assert_array_equal(actions, replies[0])


@pytest.mark.parametrize("rule", ["speculative", "replace"])
@pytest.mark.parametrize("sent_ms", [np.nan, np.inf, -1.0, 60_001.0])
def test_garbage_of_the_link_is_refused_also_for_a_remembered_reply(rule: str, sent_ms: float) -> None:
    engine = Engine(TargetVerifier(Recalling(2), rule), SEED)
    engine.verify(request_of(), NOW_S)
    with pytest.raises(RequestError, match=r"^round_trip_ms: "):
        engine.verify(request_of(round_trip_ms=sent_ms), NOW_S)


def test_another_instruction_is_another_request() -> None:
    target = Recalling(2)
    target.signature = replace(target.signature, instruction=True)
    given = noted(target, lambda observations, draws, sampling: observations.instructions)
    engine = Engine(TargetVerifier(target), SEED)
    for instruction in ("fold", "fold", "pour"):
        engine.verify(request_of(instruction=instruction), NOW_S)
    assert given == [("fold",), ("pour",)]
