"""A robot that acts by intents, in simulated time: one reply is enough; a wrong one is not acted upon."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.corrector.corrector import Correction
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.records import NO_PLAN, Reason
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.diagnosis import Diagnosis
from adahi_ros.robot.prefetch import PATIENCE_S
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import DRAFT, OFFERED, PERIOD_S, MakeRobot, Robot
from test.robot.test_diagnosis import report

HORIZON, SIZE = 8, 3
ENCODER, OTHER = "00000000000000aa", "00000000000000bb"


class StubIntent(Intent):
    """Its action is the first number of the intent, in thousandths."""

    def __init__(self, policy: Policy) -> None:
        signature = Signature(1, HORIZON, 2, (Feature(OBSERVATION, 3),))
        Actor.__init__(self, signature, policy, policy.action_scale, "stub")
        self.encoder = None
        self.encoder_fingerprint, self.size = ENCODER, SIZE

    def act(self, observation: np.ndarray, previous: np.ndarray, intent: np.ndarray) -> Correction:
        return Correction(np.repeat(intent[:, :1] / np.float32(1000), 2, axis=1), np.full(len(intent), 0.5))


def by_intent(number: int) -> tuple[float, ...]:
    return (float(np.float32(number) / np.float32(1000)),) * 2


@pytest.fixture
def acting(fixed_policy: Callable[..., Policy]) -> StubIntent:
    return StubIntent(fixed_policy(DRAFT))


@pytest.fixture
def robot(make_robot: MakeRobot, acting: StubIntent) -> Robot:
    """A robot that asks only where it must, and waits for no reply."""
    return make_robot("never", plans=HORIZON, acting=acting).connect()


def test_a_lost_request_is_sent_again_soon_and_then_ever_later(robot: Robot) -> None:
    robot.link.delay_s = (9.0, 9.0)
    sent = [step for step, record in enumerate(robot.walk(range(40))) if record.transmitted]
    waited = np.diff(sent) * PERIOD_S - PATIENCE_S * 2.0 ** np.arange(len(sent) - 1)
    assert len(sent) == 4
    assert (waited >= -1e-9).all()
    assert (waited <= PERIOD_S + 1e-9).all()


def test_one_reply_is_enough_however_old_it_is(robot: Robot) -> None:
    first, *others = robot.walk(range(60))
    assert (first.transmitted, first.reason, first.plan_age, first.plan_left) == (True, Reason.NO_PLAN, -1, 0)
    assert first.action == first.draft_action != ()
    assert not any(each.transmitted for each in others)
    assert {each.action for each in others} == {by_intent(1)}
    assert [each.plan_age for each in others] == list(range(1, 60))
    assert [each.plan_left for each in others] == [200 - age for age in range(1, 60)]
    assert {each.planned_action for each in others} == {()}
    assert {each.expected_error for each in others} == {0.5}
    assert {each.reason for each in others} == {Reason.NONE}
    (request,) = [each for each, _ in robot.link.updates]
    assert (request.without_actions, request.actions.size, request.ahead) == (True, 0, 0)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("lost", ["verifier", "replies"])
def test_fallback_applies_as_soon_as_the_intent_is_too_old(
    make_robot: MakeRobot, acting: StubIntent, waits: bool, lost: str
) -> None:
    limit = 3
    robot = make_robot("never", limit=limit, plans=HORIZON, waits=waits, acting=acting).connect()
    robot.walk(range(2))
    if lost == "verifier":
        robot.link.present = False
    else:
        robot.link.delay_s = (1e6, 1e6)
    # Without the verifier, it acts by the intent for all its steps, and `fallback` does not apply.
    alone = robot.walk(range(2, 200))
    assert {(each.action, each.reason) for each in alone} == {(by_intent(1), Reason.NONE)}
    assert not any(each.transmitted for each in alone if each.plan_left > HORIZON)
    assert alone[-1].plan_left == 1
    assert robot.commands.withheld == 0
    # Then the draft acts for `fallback_limit` steps, and the robot is held.
    after = robot.walk(range(200, 200 + 10))
    assert {each.plan_left for each in after} == {0}
    assert {each.plan_age for each in after} == {NO_PLAN}
    drafted = [each.action == each.draft_action != () for each in after]
    assert drafted == [True] * limit + [False] * (10 - limit)
    assert {each.reason for each in after[limit:]} == {Reason.FALLBACK_LIMIT}
    assert robot.commands.withheld == 10 - limit
    assert robot.loop.fallback.withholds


def test_diagnostics_have_the_age_of_the_intent(robot: Robot) -> None:
    assert robot.loop.controller.held is not None
    assert robot.loop.controller.held.figures == {}
    robot.see(1, 0)
    assert robot.loop.controller.held.figures == {"intent.age": "inf", "intent.left": 0}
    robot.walk(range(1, 30))
    figures = report(Diagnosis(robot.link.now_s - 1.0), robot)[2]
    assert (figures["intent.age"], figures["intent.left"]) == ("29", 171)


@pytest.mark.parametrize("waits", [False, True])
def test_another_instruction_drops_the_intent(make_robot: MakeRobot, acting: StubIntent, waits: bool) -> None:
    robot = make_robot("never", plans=HORIZON, waits=waits, acting=acting)
    robot.verifier.describe_otherwise(instruction=True)
    robot.loop.tell("left")
    robot.connect()
    robot.walk(range(3))
    robot.loop.tell("right")
    here, *others = robot.walk(range(3, 6))
    assert here.transmitted
    assert not any(each.transmitted for each in others)
    assert {each.action for each in others} == {by_intent(4)}
    instructions = [request.instruction for request, _ in robot.link.updates]
    assert instructions == ["left", "right"]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"intent_fingerprint": 0xBB}, "intent_fingerprint: 00000000000000bb, must be 00000000000000aa"),
        ({"intent": (9,) * (SIZE - 1)}, "intent: 2 values, expected 3"),
        ({"intent": (-128,) * SIZE}, "intent[0]: -128, must be from -127 to 127"),
        ({"actions": (0.0,) * 2 * HORIZON}, "actions: 16 values, expected 0"),
    ],
)
def test_a_wrong_intent_is_never_acted_upon(
    make_robot: MakeRobot, acting: StubIntent, waits: bool, changes: dict[str, object], message: str
) -> None:
    robot = make_robot("never", plans=HORIZON, waits=waits, acting=acting).connect()
    robot.verifier.changes = changes
    records = robot.walk(range(4))
    assert {each.plan_age for each in records} == {NO_PLAN}
    assert {each.action for each in records} == {each.draft_action for each in records}
    bad = [each for each in records if each.reason is Reason.BAD_REPLY]
    assert bad
    assert bad[0].message.startswith(message)


def test_a_verifier_with_another_encoder_is_queried_what_it_is_now(robot: Robot) -> None:
    robot.walk(range(2))
    assert robot.session.link is VerifierState.READY
    robot.choose("age", 1.0)
    robot.verifier.changes = {"intent_fingerprint": 0xBB}
    robot.verifier.describe_intents(OTHER, SIZE)
    robot.session._wants = Wants(robot.policy.signature, OFFERED, intent=(ENCODER, SIZE))
    robot.walk(range(2, 30))
    assert robot.session.link is VerifierState.MISMATCHED
    assert robot.session.trouble.startswith(
        f"intent_fingerprint: the robot's is {ENCODER}, the verifier's {OTHER};"
    )


def test_the_step_of_a_reply_is_by_intent_also_where_the_reply_has_a_plan(acting: StubIntent) -> None:
    """So that an evaluation in process is what a robot does whose replies have no plan."""
    controller = Controller(acting, ControllerConfig(ThresholdedGate("never", 0.0)), "intent")
    assert controller.drops_actions
    controller.reset(0, [0, 1])
    observed = {OBSERVATION: np.zeros((2, 3), np.float32), GOAL: np.zeros((2, 1), np.float32)}
    step = controller.begin(observed)
    assert step.transmit.tolist() == [True, True]
    plan, nothing = np.full((1, HORIZON, 2), 0.5, np.float32), np.zeros((1, 0), bool)
    verdict = Verdict(plan, nothing, np.full((1, SIZE), 7, np.int8))
    actions = controller.finish(step, verdict, np.array([False, True]), stand_in=np.zeros((2, 2), np.float32))
    assert actions.tolist() == [[0.0, 0.0], list(by_intent(7))]
    later = controller.begin(observed, stand_in=np.zeros((2, 2), np.float32))
    assert later.transmit.tolist() == [True, False]
    assert later.plan_left.tolist() == [0, 199]
    assert np.isnan(later.planned).all()


def test_a_reply_says_how_far_it_moved_the_action(acting: StubIntent) -> None:
    """Once, and not the first one: before it the robot had no intent."""
    controller = Controller(acting, ControllerConfig(ThresholdedGate("never", 0.0)), "intent")
    controller.reset(0, [0, 1])
    observed = {OBSERVATION: np.zeros((2, 3), np.float32), GOAL: np.zeros((2, 1), np.float32)}
    nothing = np.zeros((1, 0), bool)
    found = []
    for number in (7, None, 9, None, 9, None):
        step = controller.begin(observed, stand_in=np.zeros((2, 2), np.float32))
        if number is not None:
            verdict = Verdict(np.zeros((1, 0, 2), np.float32), nothing, np.full((1, SIZE), number, np.int8))
            controller.receive(verdict, step.index, np.array([False, True]))
        assert step.proposal is not None
        assert step.proposal.change is not None
        assert np.isnan(step.proposal.change[0])
        found.append(float(step.proposal.change[1]))
    moved = float(np.sqrt(np.mean((0.002 / acting.action_scale) ** 2)))
    np.testing.assert_allclose(found, [np.nan] * 3 + [moved, np.nan, 0.0], atol=1e-6)
