"""A session whose messages are handed over by calls: the bytes, the verdict, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message

from adahi_lab.bench.verification_calls import VerificationCalls
from adahi_lab.nodes.called_verifier import CalledTransport, CalledVerifier
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations, Offer
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.request import sent_codes
from adahi_ros.protocol.window import WireWindow
from adahi_ros.server.verifier import TargetVerifier, VerificationRequest, verification_uniforms

SEED, EPISODE = 3, 5
EVEN = np.full((2, 4), 0.25)
OFFERED = Offer({OBSERVATION: 3, GOAL: 1})
ROWS = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
AIM = np.array([0.5], np.float32)
DRAFT = Proposal(np.zeros((1, 1, 2), np.float32), sent_codes(np.array([[1, 2]]), counted(EVEN)[None]))


class Tapped:
    """A verifier by calls, and what crossed."""

    def __init__(self, policy: Policy) -> None:
        self.called = CalledVerifier(TargetVerifier(policy), "speculative", SEED)
        self.sent: list[bytes] = []
        self.received: list[bytes] = []

    def verify(self, request: bytes) -> bytes:
        self.sent.append(request)
        self.received.append(self.called.verify(request))
        return self.received[-1]

    def calls(self, policy: Policy, **wanted: Any) -> VerificationCalls:
        codes = policy.signature.codes
        assert codes is not None
        transport = CalledTransport(self.called.describe, self.verify, codes.fingerprint)
        return VerificationCalls(transport, replace(Wants(policy.signature, OFFERED), **wanted))


@pytest.fixture
def policy(fixed_policy: Callable[..., Policy]) -> Policy:
    return fixed_policy(EVEN.tolist())


def test_the_verdict_is_the_verifiers_and_the_bytes_are_those_that_crossed(policy: Policy) -> None:
    tapped = Tapped(policy)
    calls, verifier = tapped.calls(policy), TargetVerifier(policy)
    for step in range(3):
        verdict = calls.ask(DRAFT, WireWindow.pack(ROWS[step : step + 2], AIM), EPISODE, step)
        seen = Observations({OBSERVATION: ROWS[None, step : step + 2]}, {GOAL: AIM[None]})
        draws = verification_uniforms(SEED, "robot", EPISODE, step, 2)
        expected = verifier.verify(VerificationRequest(seen, DRAFT), draws)
        np.testing.assert_array_equal(verdict.actions, expected.actions)
        np.testing.assert_array_equal(verdict.accepted, expected.accepted)
    assert calls.request_bytes == [len(each) for each in tapped.sent]
    assert calls.response_bytes == [len(each) for each in tapped.received]
    sent = [deserialize_message(each, VerifyDraft.Request) for each in tapped.sent]
    assert [len(each.observation_window) for each in sent] == [6, 3, 3]  # whole, then what is new
    assert [len(each.draft_actions) for each in sent] == [0, 0, 0]  # the rule needs none


def test_a_verifier_that_does_not_fit_is_refused_at_once(policy: Policy) -> None:
    with pytest.raises(ValueError, match=r"^target: the robot wants 'kitchen', the verifier has ''$"):
        Tapped(policy).calls(policy, target="kitchen")


def test_a_request_that_is_refused_has_no_verdict(policy: Policy) -> None:
    calls = Tapped(policy).calls(policy)
    with pytest.raises(RuntimeError, match=r"^refused: goal: 2 values, expected 1"):
        calls.ask(DRAFT, WireWindow.pack(ROWS[:2], np.zeros(2, np.float32)), EPISODE, 0)
    assert calls.request_bytes == calls.response_bytes == []
    assert calls.ask(DRAFT, WireWindow.pack(ROWS[:2], AIM), EPISODE, 0).actions.shape == (1, 1, 2)
