"""Robots that act by intents: who requests, which reply counts, and when an intent is too old."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.corrector.corrector import Correction
from adahi_ros.policies.intent.intent import Intent, IntentEncoder
from adahi_ros.policies.intent.intent_checkpoint import EncoderConfig
from adahi_ros.policies.intent.intent_features import RepliesView
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.intent import IntentProposer
from adahi_ros.robot.controller import Controller

B, A, T, STEPS = 2, 1, 3, 6
ALL = np.ones(B, dtype=bool)


class StubEncoder(IntentEncoder):
    """The first action of the newest plan is the intent; keeps what it was shown."""

    def __init__(self, replies: int, extra: int) -> None:
        self.sizes = EncoderConfig(1, A, T, extra, replies, size=1)
        self.fingerprint = "0" * 16
        self.views: list[RepliesView] = []

    def encode(self, view: RepliesView) -> np.ndarray:
        self.views.append(view)
        return view.plan[:, 0, 0].astype(np.int8)


class StubIntent(Intent):
    """Its action is the intent."""

    def __init__(self, encoder: IntentEncoder | None) -> None:
        allowed = ActionRange(np.full(A, -1000.0), np.full(A, 1000.0))
        Actor.__init__(self, Signature(1, T, A, (Feature(OBSERVATION, 1),)), allowed, np.ones(A), "stub")
        self.encoder, self.encoder_fingerprint, self.size = encoder, "0" * 16, 1

    def act(self, observation: np.ndarray, previous: np.ndarray, intent: np.ndarray) -> Correction:
        return Correction(intent.astype(np.float32), np.full(len(intent), 0.5))


def observed(step: int) -> dict[str, np.ndarray]:
    return {OBSERVATION: np.full((B, 1), float(step), np.float32)}


def reply(value: int, intent: int | None = None, robots: int = B) -> Verdict:
    sent = None if intent is None else np.full((robots, 1), intent, np.int8)
    return Verdict(np.full((robots, T, A), float(value), np.float32), np.zeros((robots, 0), bool), sent)


def controller(encoder: IntentEncoder | None, gate: ThresholdedGate | None = None) -> Controller:
    robot = StubIntent(encoder)
    config = ControllerConfig(gate or ThresholdedGate("never"))
    made = Controller(robot, config, made=IntentProposer(robot, steps=STEPS))
    made.reset(1, list(range(B)))
    return made


def test_one_reply_lasts_long_after_its_plan_is_over() -> None:
    made = controller(None)
    first = made.begin(observed(0))
    assert first.transmit.all()
    assert np.isnan(first.intended).all()
    # By the intent, not by the plan's first action: over DDS the reply has no actions.
    np.testing.assert_array_equal(made.finish(first, reply(9, 7)), np.full((B, A), 7.0))
    for index in range(1, STEPS):
        step = made.begin(observed(index))
        assert not step.transmit.any()
        assert step.plan_left.tolist() == [STEPS - index] * B
        assert step.plan_age.tolist() == [index] * B
        np.testing.assert_array_equal(made.finish(step, None), np.full((B, A), 7.0))
    too_old = made.begin(observed(STEPS))
    assert too_old.transmit.all()
    assert np.isnan(too_old.intended).all()


def test_an_older_reply_that_arrives_later_changes_nothing() -> None:
    made = controller(None)
    made.finish(made.begin(observed(0)), reply(1, 1))
    for index in (1, 2):
        made.finish(made.begin(observed(index)), None)
    made.receive(reply(3, 3), 2, ALL)
    made.receive(reply(2, 2), 1, ALL)
    np.testing.assert_array_equal(made.begin(observed(3)).intended, np.full((B, A), 3.0))


def test_a_reply_for_one_robot_leaves_the_others_alone() -> None:
    made = controller(None)
    made.finish(made.begin(observed(0)), reply(1, 1))
    made.receive(reply(5, 5, robots=1), 1, np.array([False, True]))
    np.testing.assert_array_equal(made.begin(observed(2)).intended[:, 0], [1.0, 5.0])


def test_a_reply_without_an_intent_is_refused() -> None:
    made = controller(None)
    with pytest.raises(ValueError, match="intent: empty, the target must have an encoder"):
        made.finish(made.begin(observed(0)), reply(1))


def test_the_robots_encoder_reads_replies_and_their_observations() -> None:
    encoder = StubEncoder(replies=2, extra=0)
    made = controller(encoder)
    made.finish(made.begin(observed(0)), reply(1))
    for index in (1, 2, 3):
        made.finish(made.begin(observed(index)), None)
    made.receive(reply(4), 2, ALL)
    made.receive(reply(6), 3, ALL)
    view = encoder.views[-1]
    assert view.requested_at.tolist() == [[3, 2]] * B
    assert view.plan[:, :, 0, 0].tolist() == [[6.0, 4.0]] * B
    assert view.observation[:, :, 0].tolist() == [[3.0, 2.0]] * B
    np.testing.assert_array_equal(made.begin(observed(4)).intended, np.full((B, A), 6.0))


@pytest.mark.parametrize("what", ["forget_plan", "reset"])
def test_nothing_is_left_of_an_intent_after_a_gap_or_in_a_new_episode(what: str) -> None:
    made = controller(None)
    made.finish(made.begin(observed(0)), reply(1, 1))
    if what == "reset":
        made.reset(1, list(range(B)))
    else:
        made.forget_plan()
    step = made.begin(observed(0), at=None if what == "reset" else 1)
    assert step.transmit.all()
    assert np.isnan(step.intended).all()


def test_the_age_gate_requests_again_and_no_plan_is_committed() -> None:
    made = controller(None, ThresholdedGate("age", 2.0))
    made.finish(made.begin(observed(0)), reply(1, 1))
    requested = []
    for index in range(1, 5):
        step = made.begin(observed(index))
        requested.append(bool(step.transmit.all()))
        assert made.committed(step, 2).actions.shape == (B, 0, A)
        made.finish(step, reply(2, 2) if step.transmit.all() else None)
    assert requested == [False, False, True, False]
