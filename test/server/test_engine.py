"""What comes back is what the rollout's verifier says, whatever draft and target read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_lab.history import History
from adahi_ros.acceptance.interface import DataRule, LinkFacts, Verdict
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.acceptance.replace import Replace
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import GOAL, OBSERVATION, CodeSpace
from adahi_ros.policies.vqbet.code_policy import ActionDecoder, CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import code_signature
from adahi_ros.protocol.request import (
    NO_FINGERPRINT,
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
        request = Request.from_draft(draft, 2, step, sent.update(window))
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
    return replace(Request.from_draft(draft, 0, 7, update), **given)


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


def together(engine: Engine, requests: list[Request]) -> list[Reply]:
    replies = engine.finish(engine.begin(requests), NOW_S)
    assert all(isinstance(each, Reply) for each in replies)
    return replies  # type: ignore[return-value]


class ByData(DataRule):
    """Keeps whole drafts whose data say so, and asks where they say nothing."""

    needs_codes = True

    @classmethod
    def pack(cls, data: Mapping[str, np.ndarray], link: LinkFacts) -> bytes:
        return b"keep"

    @classmethod
    def answered(cls, data: Mapping[str, np.ndarray], asked: bytes) -> dict[str, np.ndarray]:
        return dict(data)

    def unpack(self, packed: bytes, codes: np.ndarray) -> dict[str, np.ndarray]:
        if packed not in (b"", b"keep", b"drop"):
            raise ValueError(f"{packed!r}, must be keep or drop")
        return {"kept": np.array([packed == b"keep"]), "asks": np.array([not packed])}

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        assert draft.distribution is not None
        assert target.distribution is not None
        codes, kept = draft.distribution.codes, draft.data["kept"]
        own = target.distribution.actions_of(codes)
        actions = np.where(kept[:, None, None], own, target.actions)
        asks = tuple(b"more" if each else b"" for each in draft.data["asks"])
        return Verdict(actions, np.repeat(kept[:, None], codes.shape[1], axis=1), asks=asks)


def counting(target: Recalling) -> list[int]:
    """Have a target note for how many robots it proposes each time."""
    return noted(target, lambda observations, draws, sampling: len(draws))


@pytest.fixture
def by_data(monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, list[int]]:
    """A verifier with that rule, and for how many robots its target proposed each time."""
    monkeypatch.setitem(ACCEPTANCES.shipped, "by_data", ByData)
    target = Recalling(2)
    requested = counting(target)
    return Engine(TargetVerifier(target, "by_data"), SEED), requested


def test_a_rule_decides_by_its_own_data_or_asks_for_more(by_data: tuple[Engine, list[int]]) -> None:
    engine, requested = by_data
    said = {data: request_of(rule_data=data) for data in (b"keep", b"drop", b"")}
    keep, drop, asked = together(engine, list(said.values()))
    assert (all(keep.accepted), any(drop.accepted), keep.rule_data, drop.rule_data) == (True, False, b"", b"")
    assert not np.array_equal(keep.actions, drop.actions)
    assert (asked.rule_data, len(asked.actions), asked.accepted) == (b"more", 0, ())
    before = len(requested)
    for copy, one in zip(together(engine, list(said.values())), (keep, drop, asked), strict=True):
        np.testing.assert_array_equal(copy.actions, one.actions)  # sent again as they were
        assert copy.rule_data == one.rule_data
    assert len(requested) == before


def test_data_that_a_rule_cannot_read_are_refused_by_name(by_data: tuple[Engine, list[int]]) -> None:
    with pytest.raises(RequestError, match=r"^rule_data: b'garbage', must be keep or drop$") as refusal:
        by_data[0].verify(request_of(rule_data=b"garbage"), NOW_S)
    assert refusal.value.fault is RequestFault.WRONG_SHAPE


def test_another_instruction_is_another_request() -> None:
    target = Recalling(2)
    target.signature = replace(target.signature, instruction=True)
    given = noted(target, lambda observations, draws, sampling: observations.instructions)
    engine = Engine(TargetVerifier(target), SEED)
    for instruction in ("fold", "fold", "pour"):
        engine.verify(request_of(instruction=instruction), NOW_S)
    assert given == [("fold",), ("pour",)]


def test_a_rule_with_codes_that_the_target_has_not_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Replace):
        def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
            return replace(super().verify(draft, target, draws), codes=np.array([[1, 5]]))

    monkeypatch.setitem(ACCEPTANCES.shipped, "wrong", Wrong)
    engine = Engine(TargetVerifier(Recalling(2), "wrong"), SEED)
    with pytest.raises(ValueError, match=r"from 1 to 5, must be \(1, 2\), from 0 to 4"):
        engine.verify(request_of(), NOW_S)


def test_a_rule_with_data_is_whole_or_refused() -> None:
    class Part(Replace, DataRule):
        pass

    with pytest.raises(TypeError, match=r"abstract methods .*answered.*pack.*unpack"):
        Part()  # type: ignore[abstract]
