"""Robots that go on by plans: who asks, what is executed in between, and what late replies do."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Observations, Signature
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.policies.corrector.corrector import Correction, Corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import AS_TRAINED, Actor, Policy, Sampling
from adahi_ros.proposers.draft import DraftChecksPlanProposer
from adahi_ros.proposers.interface import ProposerContext
from adahi_ros.robot.controller import Controller

B, A, T = 3, 2, 4
EVERYONE = np.ones(B, dtype=bool)
CORRECTION = np.array([0.25, -0.25], np.float32)
READS, GOALS = (Feature(OBSERVATION, 1),), (Feature(GOAL, 1),)


def wide() -> ActionRange:
    return ActionRange(np.full(A, -1000.0), np.full(A, 1000.0))


class StubCorrector(Corrector):
    """Adds the same to every action, and expects half a scale of error; keeps what it was shown."""

    def __init__(self, conditions: tuple[Feature, ...] = GOALS) -> None:
        self.allowed = wide()
        Actor.__init__(self, Signature(1, T, A, READS, conditions), self.allowed, np.ones(A), "stub")
        self.views: list[PlanView] = []

    def correct(self, view: PlanView) -> Correction:
        self.views.append(view)
        return Correction(view.ahead[:, 0] + CORRECTION, np.full(len(view.age), 0.5))


def observed(step: int) -> dict[str, np.ndarray]:
    values = (10.0 * step + np.arange(B, dtype=np.float32))[:, None]
    return {OBSERVATION: values, GOAL: -values}


def planned(requested_at: int, count: int = B, steps: int = T) -> np.ndarray:
    """Actions (count, steps, A) from the step that asked on: the value tells who asked, and for when."""
    values = 100.0 * requested_at + np.arange(requested_at, requested_at + steps, dtype=np.float32)
    return np.broadcast_to(values[None, :, None], (count, steps, A)).astype(np.float32)


def verdict(requested_at: int, count: int = B) -> Verdict:
    return Verdict(planned(requested_at, count), np.zeros((count, 0), dtype=bool))


def controller(proposer: str, gate: ThresholdedGate, batch: int = B) -> tuple[Controller, StubCorrector]:
    corrector = StubCorrector()
    made = Controller(corrector, ControllerConfig(gate), proposer)
    made.reset(1, list(range(batch)))
    return made, corrector


def begin(made: Controller) -> None:
    """Make a first step, with a plan for every robot."""
    made.finish(made.begin(observed(0)), verdict(0))


def test_no_more_of_a_plan_is_gone_by_than_the_execution_horizon() -> None:
    made = Controller(
        StubCorrector(), ControllerConfig(ThresholdedGate("never")), "plan", execution_horizon=2
    )
    made.reset(1, list(range(B)))
    first = made.begin(observed(0))
    made.finish(first, verdict(0), EVERYONE)
    assert made.begin(observed(1)).plan_left.tolist() == [1] * B
    over = made.begin(observed(2))
    assert over.plan_left.tolist() == [0] * B
    assert over.transmit.all()


@pytest.mark.parametrize("proposer", ["corrector", "plan"])
def test_who_has_no_plan_asks_whatever_the_gate_and_rests_without_a_reply(proposer: str) -> None:
    made, _ = controller(proposer, ThresholdedGate("never"))
    step = made.begin(observed(0))
    assert step.transmit.all()
    assert step.sound.all()
    assert np.isnan(step.intended).all()
    with pytest.raises(LookupError, match="step 0: a robot has no plan"):
        made.finish(step, None)
    resting = np.full((B, A), 5.0, np.float32)
    np.testing.assert_array_equal(made.finish(step, None, None, resting), resting)
    assert made.begin(observed(1)).transmit.all()


def test_a_corrected_action_is_executed_between_replies() -> None:
    made, corrector = controller("corrector", ThresholdedGate("never"))
    for index in range(T + 1):
        step = made.begin(observed(index))
        assert step.transmit.tolist() == [index in (0, T)] * B  # at the end of its plan it asks
        if index == T:
            break
        action = made.finish(step, verdict(0) if index == 0 else None)
        made.executed(action)
        # What has just been planned is done as it is: nothing has happened since.
        expected = np.full((B, A), index) + (CORRECTION if index else 0.0)
        np.testing.assert_allclose(action, expected)
    third = corrector.views[2]
    np.testing.assert_array_equal(third.observation, observed(2)[OBSERVATION])
    np.testing.assert_array_equal(third.previous, observed(1)[OBSERVATION])
    np.testing.assert_array_equal(third.at_request, observed(0)[OBSERVATION])
    np.testing.assert_array_equal(third.goal, observed(2)[GOAL])
    np.testing.assert_array_equal(third.ahead[0, :, 0], [2.0, 3.0, 3.0, 3.0])
    assert (third.left.tolist(), third.age.tolist()) == ([2] * B, [2] * B)


@pytest.mark.parametrize(("threshold", "asks"), [(0.4, True), (0.6, False)])
def test_the_gate_goes_by_the_error_that_the_corrector_expects(threshold: float, asks: bool) -> None:
    made, _ = controller("corrector", ThresholdedGate("expected_error", threshold))
    first = made.begin(observed(0))
    assert np.isinf(first.score).all()
    made.finish(first, verdict(0))
    second = made.begin(observed(1))
    np.testing.assert_array_equal(second.score, 0.5)
    assert second.transmit.tolist() == [asks] * B


def test_a_corrector_that_goes_wild_is_refused_by_name_or_stood_in_for() -> None:
    made, corrector = controller("corrector", ThresholdedGate("never"))
    begin(made)
    corrector.allowed.low = np.full(A, 900.0)  # now nothing is sound
    with pytest.raises(ValueError, match=r"action\[0\]: 1.25, must be from 900"):
        made.begin(observed(1))
    step = made.begin(observed(1), stand_in=np.full((B, A), 7.0, np.float32))
    assert not step.sound.any()
    assert not step.transmit.any()
    np.testing.assert_array_equal(made.finish(step, None), 7.0)


def followed(made: Controller, index: int) -> np.ndarray:
    """Begin a step; return the first number of each action, NaN where there is no plan."""
    return made.begin(observed(index)).intended[:, 0]


class StubDraft(Policy):
    """Drafts what it has drawn; no numbers where that is 1."""

    def __init__(self) -> None:
        super().__init__(Signature(1, 1, A, READS, GOALS), wide(), np.array([1.0, 2.0]), "draft", 1)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        drawn = np.where(draws == 1.0, np.nan, draws)[:, None]
        return Proposal(np.tile(drawn, (1, 1, A)).astype(np.float32))


def test_a_draft_tells_how_far_it_is_from_the_plan_and_the_plan_goes_on() -> None:
    memory, plan, draft = ObservationBuffer(4), Plan(B, A), StubDraft()
    plan.splice(np.array([[[2.0, 2.0]], [[0.5, 0.5]]], np.float32), 0, 0, np.array([True, True, False]))
    observations = draft.signature.observations(observed(0)[OBSERVATION][:, None], observed(0)[GOAL])
    for drawn, expected in ((0.5, [np.sqrt((1.5**2 + 0.75**2) / 2), 0.0, np.inf]), (1.0, [np.inf] * 3)):
        context = ProposerContext(0, observations, memory, plan, np.full((B, 1), drawn), 1.0)
        proposal = DraftChecksPlanProposer(draft).propose(context)
        np.testing.assert_array_equal(proposal.actions[:, 0], plan.at(0))
        assert proposal.expected_error is not None
        np.testing.assert_allclose(proposal.expected_error, expected)


def test_where_the_draft_disagrees_a_request_is_sent_and_no_draft_executed() -> None:
    made = Controller(
        StubDraft(), ControllerConfig(ThresholdedGate("expected_error", 50.0)), "draft_checks_plan"
    )
    made.reset(1, list(range(B)))
    assert not made.drafts
    first = made.begin(observed(0))
    assert first.transmit.all()  # there is no plan
    made.finish(first, verdict(0))
    second = made.begin(observed(1))  # 1 is planned, which any draw is near to
    assert not second.transmit.any()
    np.testing.assert_array_equal(made.finish(second, None), 1.0)
    made.receive(verdict(1), 1, EVERYONE)  # and from now on more than 100
    third = made.begin(observed(2))
    assert third.transmit.all()
    np.testing.assert_array_equal(made.finish(third, None), 102.0)


def test_of_a_late_reply_the_actions_for_later_steps_are_used() -> None:
    made, _ = controller("plan", ThresholdedGate("never"))
    begin(made)
    assert followed(made, 1).tolist() == [1.0] * B
    assert followed(made, 2).tolist() == [2.0] * B
    rows = np.array([False, True, True])
    assert made.receive(verdict(1, 2), 1, rows).tolist() == [True, True]
    assert followed(made, 3).tolist() == [3.0, 103.0, 103.0]
    step = made.begin(observed(4))
    np.testing.assert_array_equal(step.intended[:, 0], [np.nan, 104.0, 104.0])
    np.testing.assert_array_equal(step.transmit, ~rows)


def test_of_a_late_reply_what_is_no_action_is_dropped() -> None:
    made, _ = controller("plan", ThresholdedGate("age", 1.5))
    begin(made)
    bad = verdict(1)
    bad.actions[0, 3, 1], bad.actions[2, 0, 0] = np.nan, 1e6
    made.finish(made.begin(observed(1)), None)
    assert made.receive(bad, 1, EVERYONE).tolist() == [False, True, False]
    step = made.begin(observed(2))
    np.testing.assert_array_equal(step.intended[:, 0], [2.0, 102.0, 2.0])
    assert step.transmit.tolist() == [True, False, True]  # theirs is as old as it was


def test_a_reply_that_was_overtaken_does_no_harm() -> None:
    made, _ = controller("plan", ThresholdedGate("never"))
    begin(made)
    for index in (1, 2):
        followed(made, index)
    made.receive(verdict(2), 2, EVERYONE)
    made.receive(verdict(1), 1, EVERYONE)
    assert followed(made, 3).tolist() == [203.0] * B
    assert followed(made, 4).tolist() == [204.0] * B  # which the overtaken one speaks of, too
    made.receive(verdict(0), 0, EVERYONE)  # all over
    made.receive(verdict(2), 2, EVERYONE)  # doubled
    assert followed(made, 5).tolist() == [205.0] * B
    assert np.isnan(followed(made, 6)).all()


def test_the_gate_receives_what_is_done_and_planned_in_action_scales() -> None:
    reported: list[GateContext] = []

    class Listening(Gate):
        blind = True

        def score(self, context: GateContext) -> np.ndarray:
            reported.append(context)
            return np.zeros(B)

    made, corrector = controller("corrector", ThresholdedGate("listening", 0.5, Listening()))
    corrector.action_scale = np.array([1.0, 2.0], np.float32)
    begin(made)
    made.executed(np.full((B, A), 6.0, np.float32))
    made.begin(observed(1))
    before, now = (each.course for each in reported)
    assert before is not None
    assert now is not None
    assert np.isnan(before.executed).all()
    assert np.isnan(before.intended).all()
    assert (before.left.tolist(), now.left.tolist()) == ([0] * B, [T - 1] * B)
    np.testing.assert_array_equal(now.executed[0], [6.0, 3.0])
    np.testing.assert_array_equal(now.intended[0], [1.25, 0.375])
    np.testing.assert_array_equal(now.ahead[0], [[1.0, 0.5], [2.0, 1.0], [3.0, 1.5]])


@pytest.mark.parametrize("late", [False, True])
def test_a_gate_learns_what_fresh_plans_say_of_the_step_that_sent(late: bool) -> None:
    reported: list[tuple[int, np.ndarray, np.ndarray]] = []

    class Learning(Gate):
        blind = True

        def score(self, context: GateContext) -> np.ndarray:
            return np.zeros(B)

        def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:
            reported.append((requested_at, fresh, rows))

    made, corrector = controller("corrector", ThresholdedGate("learning", 0.5, Learning()))
    corrector.action_scale = np.array([1.0, 2.0], np.float32)
    some, reply = np.array([False, True, True]), verdict(0, 2)
    reply.actions[:] = [[[3.0]], [[5000.0]]]  # of which the second is no action
    step = made.begin(observed(0))
    if late:
        made.begin(observed(1))
        made.receive(reply, 0, some)
    else:
        made.finish(step, reply, some, np.zeros((B, A), np.float32))
    ((requested_at, fresh, rows),) = reported
    assert (requested_at, rows.tolist()) == (0, [1])
    np.testing.assert_array_equal(fresh, [[3.0, 1.5]])


class Nosy(Gate):
    """A gate that asks where anything that it is told is 1000 or more; keeps the names of what it is told."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def score(self, context: GateContext) -> np.ndarray:
        self.seen |= context.observed.keys() | context.observations.conditions.keys()
        reported = [*context.observed.values(), *context.observations.conditions.values()]
        return np.max([values.max(axis=1) for values in reported], axis=0)


@pytest.mark.parametrize("reported", [True, False])
def test_a_goal_that_the_policy_does_not_receive_stays_off_the_robot(reported: bool) -> None:
    nosy = Nosy()
    done = []
    for goal in (-1.0, 1000.0):
        corrector = StubCorrector(GOALS if reported else ())
        controller = Controller(
            corrector, ControllerConfig(ThresholdedGate("nosy", 999.0, nosy)), "corrector"
        )
        controller.reset(0, list(range(B)))
        requested, actions = [], []
        for index in range(3):
            step = controller.begin({**observed(index), GOAL: np.full((B, 1), goal, np.float32)})
            reply = verdict(index) if index == 0 else None
            actions.append(controller.finish(step, reply))
            controller.executed(actions[-1])
            requested.append(step.transmit)
        goals = {float(value) for view in corrector.views for value in view.goal.ravel()}
        assert goals == ({goal} if reported else set())
        done.append((np.stack(actions), np.stack(requested[1:])))
    assert (GOAL in nosy.seen) == reported
    np.testing.assert_array_equal(done[0][0], done[1][0])
    assert np.array_equal(done[0][1], done[1][1]) != reported
