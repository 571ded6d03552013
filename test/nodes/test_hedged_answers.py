"""Two verifiers of one checkpoint and one seed give one answer, whichever of them it is that gives it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_lab.bench.verification_calls import VerificationCalls
from adahi_lab.nodes.called_verifier import CalledTransport, CalledVerifier
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import GOAL, OBSERVATION, Offer
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.request import sent_codes
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.hedged_transport import HedgedTransport
from adahi_ros.server.verifier import TargetVerifier

SEED, EPISODE, STEPS = 3, 5, 6
EVEN = np.full((2, 4), 0.25)
ROWS = np.random.default_rng(0).normal(size=(STEPS + 1, 3)).astype(np.float32)
AIM = np.array([0.5], np.float32)
DRAFT = Proposal(np.zeros((1, 1, 2), np.float32), sent_codes(np.array([[1, 2]]), counted(EVEN)[None]))
REFUSED: bytes = serialize_message(VerifyDraft.Response(status=VerifyDraft.Response.STATUS_INTERNAL_ERROR))


class Verifier:
    """One by calls, that refuses the requests of some steps."""

    def __init__(self, policy: Policy, refuses: set[int]) -> None:
        codes = policy.signature.codes
        assert codes is not None
        self.called = CalledVerifier(TargetVerifier(policy), "speculative", SEED)
        self.transport = CalledTransport(self.called.describe, self.verify, codes.fingerprint)
        self._refuses = refuses
        self.answered: list[int] = []

    def verify(self, request: bytes) -> bytes:
        step = deserialize_message(request, VerifyDraft.Request).step_id
        if step in self._refuses:
            return REFUSED
        self.answered.append(step)
        return self.called.verify(request)


@pytest.mark.parametrize("refuses", [set(), {0, 2, 3}, set(range(STEPS))])
def test_the_answer_is_the_same_whichever_one_gives_it(
    fixed_policy: Callable[..., Policy], refuses: set[int]
) -> None:
    """A refusal sends the request to the other, which has some windows and lacks others."""
    policy = fixed_policy(EVEN.tolist())
    alone, first, backup = (Verifier(policy, each) for each in (set(), refuses, set()))
    wants = Wants(policy.signature, Offer({OBSERVATION: 3, GOAL: 1}))
    both = {"first": first.transport, "backup": backup.transport}
    hedged = HedgedTransport(both, "off", lambda: 0.0, lambda news: None)
    calls = [VerificationCalls(each, wants) for each in (alone.transport, hedged)]
    for step in range(STEPS):
        window = WireWindow.pack(ROWS[step : step + 2], AIM)
        expected, found = (each.ask(DRAFT, window, EPISODE, step) for each in calls)
        np.testing.assert_array_equal(found.actions, expected.actions)
        np.testing.assert_array_equal(found.accepted, expected.accepted)
    assert len(first.answered) == STEPS - len(refuses)
    assert len(backup.answered) == len(refuses)
