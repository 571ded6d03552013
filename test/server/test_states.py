"""A rule that reads hidden states gets them at once, or after a reply that says which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.wisv.hidden_states import HiddenStates, packed_states
from adahi_ros.acceptance.interface import LinkFacts
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.request import OK, Reply, Request, RequestError, SentParts, fingerprint_number
from adahi_ros.protocol.window import SentWindows, WireWindow
from adahi_ros.robot.target_view import Features
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier

N, T, A, K = 32, 8, 4, 256
FOLDER = asset("checkpoints/metaworld/tokens")
ARGUMENTS = {"file": str(FOLDER / "wisv.safetensors")}
OBSERVED = np.random.default_rng(2).normal(scale=0.1, size=18).astype(np.float32)


@pytest.fixture(scope="module")
def pair() -> tuple[TokenPolicy, TokenPolicy]:
    """The shipped draft and target."""
    draft, target = (load_policy(FOLDER / name, "onnxruntime") for name in ("draft", "target"))
    assert isinstance(draft, TokenPolicy)
    assert isinstance(target, TokenPolicy)
    return draft, target


@pytest.fixture
def engine(pair: tuple[TokenPolicy, TokenPolicy]) -> Engine:
    """A verifier's."""
    return Engine(TargetVerifier(pair[1], "hidden_states", arguments=ARGUMENTS), 0)


def window(target: TokenPolicy) -> WireWindow:
    view = Features(18)
    view.add({"observation": OBSERVED, "goal": np.zeros(35, np.float32)})
    return SentWindows().update(view.window(target.signature))


def request(pair: tuple[TokenPolicy, TokenPolicy], sent: bool) -> Request:
    draft, target = pair
    seen = draft.signature.observations(np.tile(OBSERVED, (1, 4, 1)), np.zeros((1, 0), np.float32))
    made = draft.likeliest(seen, N)
    sure = np.eye(K, dtype=np.uint16)[made.codes] * np.uint16(UNITS)
    drawn = CodeDistribution(sure / UNITS, made.codes, draft.codec.decode, sure)
    data = {"states": packed_states(made.hidden), "sent": np.full((1, N), sent)}
    parts = SentParts(actions=False, codes=True, data=True).select(
        Proposal(np.zeros((1, T, A), np.float32), drawn, data=data)
    )
    made_by = Request.from_draft(parts, 0, 0, window(target))
    assert not made_by.counts.size
    fingerprint = fingerprint_number(draft.codec.fingerprint)
    packed = HiddenStates.pack(data, LinkFacts())
    return replace(made_by, robot_id="arm", fingerprint=fingerprint, rule_data=packed)


def test_the_second_message_gets_the_reply_of_the_first(
    engine: Engine, pair: tuple[TokenPolicy, TokenPolicy]
) -> None:
    brief = request(pair, sent=False)
    whole = engine.verify(request(pair, sent=True), 0.0)
    first: Reply = engine.verify(brief, 0.0)
    assert first.status == OK
    assert len(first.actions) == 0
    assert first.accepted == ()
    data = HiddenStates.answered(brief.data, first.rule_data)
    second = engine.verify(replace(brief, rule_data=HiddenStates.pack(data, LinkFacts())), 0.0)
    assert second.rule_data == b""
    np.testing.assert_array_equal(second.actions, whole.actions)
    assert second.accepted == whole.accepted
    assert len(whole.actions) == T * A
    again = engine.verify(brief, 0.0)
    assert again.rule_data == first.rule_data


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (bytes(13), "13 bytes, must be 12 for 0 hidden states of 48"),
        (b"", "0 bytes, must be at least 12 for 32 codes"),
    ],
)
def test_other_data_are_refused(
    engine: Engine, pair: tuple[TokenPolicy, TokenPolicy], packed: bytes, message: str
) -> None:
    with pytest.raises(RequestError, match=f"^rule_data: {message}"):
        engine.verify(replace(request(pair, sent=True), rule_data=packed), 0.0)


def test_requests_with_states_are_verified_together(
    engine: Engine, pair: tuple[TokenPolicy, TokenPolicy]
) -> None:
    alone = [engine.verify(request(pair, sent=sent), 0.0) for sent in (True, False)]
    requests = [replace(request(pair, sent=sent), robot_id=f"arm_{sent}") for sent in (True, False)]
    together = engine.finish(engine.begin(requests), 0.0)
    for one, other in zip(alone, together, strict=True):
        assert isinstance(other, Reply)
        np.testing.assert_allclose(one.actions, other.actions, atol=1e-6)
        assert one.accepted == other.accepted
