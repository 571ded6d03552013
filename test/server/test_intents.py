"""A verifier with an encoder of intents: what it sends, and which encoder it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test.toys import Constant

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Feature, Signature
from adahi_ros.policies.intent.intent import Intent, IntentEncoder
from adahi_ros.policies.intent.intent_features import RepliesView
from adahi_ros.protocol.request import Request, RequestError, RequestFault, fingerprint_number
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier
from test.tiny_intents import tiny_intents

TARGET = Signature(
    2, 4, 2, (Feature(OBSERVATION, 3), Feature(IMAGE_FEATURES, 2)), (Feature(GOAL, 1),), parameters=1
)
NOW_S = 1.0


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Intent:
    return tiny_intents(tmp_path_factory.mktemp("intents"), "intent", TARGET)


@pytest.fixture
def encoder(acting: Intent) -> IntentEncoder:
    assert acting.encoder is not None
    return acting.encoder


def request_of(window: np.ndarray, goal: np.ndarray, without_actions: bool = False) -> Request:
    draft = Proposal(np.zeros((1, 0, 2), np.float32))
    whole = WireWindow.pack(window[:, :3], goal, features=window[:, 3:])
    return replace(Request.from_draft(draft, 1, 2, whole, without_actions=without_actions), robot_id="arm")


def test_a_reply_has_the_intent_of_its_plan_or_the_intent_alone(encoder: IntentEncoder) -> None:
    target = Constant(TARGET, (0.5, -0.25))
    engine = Engine(TargetVerifier(target, "replace", intents=encoder), 0)
    draw = np.random.default_rng(0)
    window, goal = (
        draw.normal(size=(2, 5)).astype(np.float16).astype(np.float32),
        np.array([0.75], np.float32),
    )
    whole = engine.verify(request_of(window, goal), NOW_S)
    alone = engine.verify(request_of(window, goal, without_actions=True), NOW_S)
    extra = np.concatenate([window[-1:, 3:], goal[None]], axis=1)
    plan = np.tile(np.array([0.5, -0.25], np.float32), (4, 1))
    view = RepliesView(window[None, -1:, :3], plan[None, None], np.zeros((1, 1), np.int64), extra)
    (expected,) = encoder.encode(view)
    assert np.abs(expected).max() > 0
    for reply in (whole, alone):
        np.testing.assert_array_equal(reply.intent, expected)
        assert reply.intent_fingerprint == fingerprint_number(encoder.fingerprint)
    assert (len(whole.actions), len(alone.actions)) == (8, 0)
    again = engine.verify(request_of(window, goal), NOW_S)
    np.testing.assert_array_equal(again.actions, whole.actions)


def test_an_intent_alone_needs_an_encoder() -> None:
    engine = Engine(TargetVerifier(Constant(TARGET, (0.5, -0.25)), "replace"), 0)
    zeros = np.zeros((2, 5), np.float32), np.zeros(1, np.float32)
    reply = engine.verify(request_of(*zeros), NOW_S)
    assert (len(reply.intent), reply.intent_fingerprint) == (0, 0)
    with pytest.raises(
        RequestError, match=r"^without_actions: true, must be false: a reply has neither "
    ) as caught:
        engine.verify(request_of(*zeros, without_actions=True), NOW_S)
    assert caught.value.fault is RequestFault.WRONG_SHAPE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 5}, "intent: its encoder's horizon is 4, must be 5, as for the target"),
        ({"action_dim": 1}, "intent: its encoder's action_dim is 2, must be 1"),
        ({"conditions": ()}, "intent: its encoder's extra_dim is 3, must be 2"),
        ({"features": (Feature(OBSERVATION, 4),)}, "intent: its encoder's observation_dim is 3, must be 4"),
        ({"features": (Feature("state", 3),)}, "intent: its encoder's observation_dim is 3, must be 0"),
    ],
)
def test_an_encoder_of_another_target_is_refused(encoder: IntentEncoder, changes: dict, message: str) -> None:
    target = Constant(replace(TARGET, **changes), (0.5, -0.25))
    with pytest.raises(ValueError, match=f"^{message}"):
        TargetVerifier(target, "replace", intents=encoder)


def test_an_encoder_of_several_replies_is_not_for_a_verifier(tmp_path: Path) -> None:
    encoder = tiny_intents(tmp_path, "intent", TARGET, replies=2).encoder
    with pytest.raises(ValueError, match=r"^intent: its encoder's replies is 2, must be 1"):
        TargetVerifier(Constant(TARGET, (0.5, -0.25)), "replace", intents=encoder)
