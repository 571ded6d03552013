"""What ends a run of a policy, and what is counted until then."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.robot.policy_run import Attempt, AttemptLimits, End, NodeState, preparations

LIMITS = AttemptLimits(time_s=10.0, no_verifier_s=2.0, no_steps_s=3.0, stopped_s=1.0)


Make = Callable[..., StepRecord]


@pytest.fixture
def attempt() -> Attempt:
    return Attempt(LIMITS, 100.0)


def why(attempt: Attempt, now_s: float) -> End | None:
    """Return what has ended an attempt."""
    found = attempt.ended(now_s)
    return None if found is None else found[0]


def test_steps_calls_and_fallbacks_are_counted(attempt: Attempt, step_record: Make) -> None:
    attempt.stepped(step_record(transmitted=True, reason=Reason.NONE), 100.1)
    attempt.stepped(step_record(transmitted=False, reason=Reason.NONE), 100.2)
    attempt.stepped(step_record(transmitted=True, reason=Reason.DEADLINE), 100.3)
    assert (attempt.counts.steps, attempt.counts.calls, attempt.counts.fallbacks) == (3, 2, 1)
    assert attempt.ended(100.4) is None
    assert math.isnan(attempt.success_estimate)
    assert attempt.elapsed_s(100.4) == pytest.approx(0.4)


def test_waiting_for_the_first_reply_is_no_fallback(attempt: Attempt, step_record: Make) -> None:
    waiting = step_record(reason=Reason.FALLBACK_LIMIT, action=(), requests_pending=1)
    attempt.stepped(waiting, 100.1)
    assert attempt.counts.fallbacks == 0
    attempt.stepped(step_record(reason=Reason.NONE), 100.2)
    attempt.stepped(waiting, 100.3)
    assert attempt.counts.fallbacks == 1


def test_steps_of_a_person_are_counted_apart_and_need_no_verifier(
    attempt: Attempt, step_record: Make
) -> None:
    by_person = step_record(reason=Reason.PERSON, transmitted=False)
    for number, record in enumerate([step_record(), by_person, by_person, step_record(), by_person]):
        attempt.stepped(record, 100.1 + number)
    counts = attempt.counts
    assert (counts.steps, counts.person_steps, counts.takeovers, counts.fallbacks) == (5, 3, 2, 0)
    assert attempt.person
    assert attempt.ended(105.9) is None  # the last step that needed a verifier was at 103.1
    assert why(attempt, 106.2) is End.NO_VERIFIER


def test_time_starts_when_the_policy_acts_and_earlier_messages_count(
    attempt: Attempt, step_record: Make
) -> None:
    attempt.stepped(step_record(), 100.1)
    attempt.activated(130.0)
    assert attempt.counts.steps == 1
    assert attempt.elapsed_s(130.5) == pytest.approx(0.5)
    assert attempt.ended(131.9) is None
    assert why(attempt, 132.1) is End.NO_VERIFIER


def begin(attempt: Attempt, record: Any, until_s: float) -> None:
    """Step with a verifier, ten times a second."""
    attempt.safety(False, False, True, 100.0)
    for tick in range(round(10 * (until_s - 100.0))):
        attempt.stepped(record, 100.0 + tick / 10)
        attempt.linked(True, 100.0 + tick / 10)


@pytest.mark.parametrize("success", [True, False])
def test_who_judges_ends_it_and_nothing_after_that_does(
    attempt: Attempt, step_record: Make, success: bool
) -> None:
    attempt.stepped(step_record(), 100.1)
    attempt.judged(success)
    attempt.safety(True, True, False, 100.0)
    assert why(attempt, 1000.0) is (End.SUCCESS if success else End.FAILURE)
    assert attempt.holding


def test_time_silence_and_a_verifier_that_is_gone_end_it(attempt: Attempt, step_record: Make) -> None:
    record = step_record()
    begin(attempt, record, 109.0)
    assert attempt.ended(109.9) is None
    assert attempt.ended(110.0) == (End.TIME_LIMIT, "10 s are over")

    silent = Attempt(LIMITS, 100.0)
    begin(silent, record, 101.0)
    assert silent.ended(103.5) is None
    assert silent.ended(104.5) == (End.NO_STEPS, "no control step for 3.6 s, allowed are 3 s")

    alone = Attempt(LIMITS, 100.0)
    begin(alone, record, 101.0)
    for tick in range(21):
        alone.stepped(record, 101.0 + tick / 10)
        alone.linked(False, 101.0 + tick / 10)
    assert alone.ended(103.0) is None
    assert alone.ended(103.1) == (End.NO_VERIFIER, "no verifier for 2.1 s, allowed are 2 s")


def test_a_stop_ends_it_but_one_of_before_may_be_lifted(attempt: Attempt) -> None:
    attempt.safety(False, False, True, 100.0)
    attempt.safety(True, True, False, 100.0)
    assert attempt.ended(100.1) == (End.STOPPED, "the operator stopped the robot")

    lifted = Attempt(LIMITS, 100.0)
    lifted.safety(True, True, False, 100.0)
    assert lifted.ended(100.9) is None
    lifted.safety(False, False, True, 100.0)
    assert lifted.ended(101.5) is None

    held = Attempt(LIMITS, 100.0)
    held.safety(False, True, False, 100.0)  # until a fresh press
    held.safety(True, True, False, 100.0)  # its release
    assert held.ended(100.1) is None
    held.safety(False, False, True, 100.2)
    held.safety(True, True, False, 100.3)
    assert why(held, 100.4) is End.STOPPED

    stays = Attempt(LIMITS, 100.0)
    stays.safety(True, True, False, 100.0)
    assert why(stays, 101.1) is End.STOPPED


def test_time_without_the_operator_is_no_time_without_a_step(step_record: Make) -> None:
    waiting = Attempt(LIMITS, 100.0)
    begin(waiting, step_record(), 101.0)
    for second in range(8):
        waiting.safety(False, True, False, 101.0 + second)
        assert waiting.ended(101.5 + second) is None
    waiting.safety(False, True, True, 108.5)
    assert waiting.ended(109.0) is None
    assert why(waiting, 111.5) in (End.NO_STEPS, End.TIME_LIMIT)


def test_an_enabled_robot_that_stays_held_ends_it_where_that_is_limited() -> None:
    held = Attempt(AttemptLimits(0.0, 0.0, 0.0, 0.0, held_s=2.0), 100.0)
    held.safety(False, True, True, 100.0)
    held.activated(101.0)  # what was before does not count
    assert held.ended(103.5) is None
    for enabled, holding, now_s in ((True, True, 104.0), (True, False, 105.0), (False, True, 106.0)):
        held.safety(False, holding, enabled, now_s)
        assert held.ended(now_s + 0.9) is None
    assert held.ended(109.0) is None  # the operator does not enable it
    held.safety(False, True, True, 110.0)
    held.safety(False, True, True, 111.0)
    assert held.ended(112.0) is None
    assert held.ended(112.1) == (End.TIME_LIMIT, "held for 2.1 s, allowed are 2 s")


def test_what_is_reported_before_the_first_step_is_of_what_was_before(
    attempt: Attempt, step_record: Make
) -> None:
    attempt.judged(False)
    attempt.stepped(step_record(), 100.1)
    assert attempt.ended(100.2) is None


def test_a_node_that_is_deactivated_and_a_runner_that_is_shut_down_end_it(attempt: Attempt) -> None:
    attempt.deactivated()
    attempt.shut_down()
    assert why(attempt, 100.1) is End.DEACTIVATED
    ending = Attempt(LIMITS, 100.0)
    ending.shut_down()
    ending.deactivated()  # that is what follows
    assert ending.ended(1000.0) == (End.SHUT_DOWN, "the policy runner was shut down")


@pytest.mark.parametrize(
    ("state", "as_it_is", "with_another_policy"),
    [
        (NodeState.UNCONFIGURED, "configured activated", "policy configured activated"),
        (NodeState.INACTIVE, "activated", "cleaned policy configured activated"),
        (NodeState.ACTIVE, "", "deactivated cleaned policy configured activated"),
    ],
)
def test_a_policy_is_chosen_while_its_node_is_unconfigured(
    state: NodeState, as_it_is: str, with_another_policy: str
) -> None:
    def way(other_policy: bool) -> str:
        words = {"given its policy": "policy", "cleaned up": "cleaned"}
        values = [each.value for each in preparations(int(state), other_policy)]
        return " ".join(words.get(value, value) for value in values)

    assert (way(False), way(True)) == (as_it_is, with_another_policy)


@pytest.mark.parametrize(
    ("state", "why"), [(4, "is shut down"), (10, "is amid a transition, 10"), (0, "amid")]
)
@pytest.mark.parametrize("other_policy", [False, True])
def test_a_node_that_is_shut_down_or_amid_a_transition_cannot_act(
    state: int, why: str, other_policy: bool
) -> None:
    with pytest.raises(ValueError, match=why):
        preparations(state, other_policy)
