"""Few goals of many commands, one at a time."""

from __future__ import annotations

import pytest

from adahi_ros.safety.goals import (
    ANSWER_S,
    CANCEL_ANSWER_S,
    CANCEL_QUICKLY,
    CANCEL_RETRY_S,
    CANCEL_SLOWLY_S,
    RETRY_S,
    TOLERANCE,
    Cancel,
    Goals,
)


def test_a_position_that_stays_is_one_goal() -> None:
    goals = Goals()
    assert goals.want(0.04, 0.0) == 0.04
    assert goals.answered(goals.newest, True, 0.1) is None
    assert [goals.want(0.04 - 0.9 * TOLERANCE * (step % 2), 0.2 + step) for step in range(5)] == [None] * 5
    assert goals.want(0.0, 9.0) == 0.0


def test_only_the_newest_wish_during_a_goal_request_follows_it() -> None:
    goals = Goals()
    assert goals.want(0.04, 0.0) == 0.04
    assert [goals.want(position, 0.1) for position in (0.03, 0.02)] == [None, None]
    assert goals.answered(goals.newest, True, 0.2) == 0.02
    assert goals.answered(goals.newest, True, 0.3) is None


def test_a_goal_that_is_refused_is_requested_again_but_not_at_every_step() -> None:
    goals = Goals()
    goals.want(0.04, 0.0)
    assert goals.answered(goals.newest, False, 0.1) is None
    assert goals.want(0.04, 0.2) is None
    assert goals.want(0.04, 0.1 + RETRY_S) == 0.04


def test_after_a_hold_the_same_position_is_a_new_goal() -> None:
    goals = Goals()
    assert goals.held
    goals.want(0.04, 0.0)
    goals.hold()
    assert goals.held
    assert goals.answered(goals.newest, True, 0.1) is None  # nothing is wanted any more
    assert goals.want(0.04, 0.2) == 0.04


def test_a_goal_from_before_a_hold_stays_outdated() -> None:
    goals = Goals()
    goals.want(0.04, 0.0)
    assert not goals.outdated(1)
    goals.hold()
    assert goals.want(0.02, 0.1) is None  # the first is still asked for
    assert goals.outdated(1)
    assert goals.answered(1, True, 0.2) is None  # its cancel comes first
    assert goals.want(0.02, 0.3) == 0.02
    assert (goals.outdated(1), goals.outdated(2)) == (True, False)


def test_an_unanswered_goal_is_sent_again_and_its_late_answer_ignored() -> None:
    goals = Goals()
    assert goals.want(0.04, 0.0) == 0.04
    assert goals.want(0.04, 0.9 * ANSWER_S) is None
    assert goals.want(0.04, ANSWER_S) == 0.04
    assert goals.answered(1, False, ANSWER_S) is None
    assert goals.want(0.0, 1.5 * ANSWER_S) is None  # the second is still asked for
    assert goals.answered(2, True, 1.5 * ANSWER_S) == 0.0


def test_a_new_server_gets_the_goal_though_the_position_stays() -> None:
    goals = Goals()
    goals.want(0.04, 0.0)
    goals.lost()  # before it has answered
    assert goals.want(0.04, 0.1) == 0.04
    assert goals.answered(2, True, 0.2) is None
    goals.lost()  # and after
    assert goals.want(0.04, 0.3) == 0.04


def test_a_cancel_request_is_sent_again_only_on_failure() -> None:
    cancel = Cancel()
    assert (cancel.wanted, cancel.sends_now(0.0)) == (False, False)
    cancel.want(1.0)
    assert cancel.wanted
    assert [cancel.sends_now(now_s) for now_s in (0.9, 1.0, 1.1)] == [False, True, False]
    cancel.answered(False, 1.2)
    assert not cancel.sends_now(1.2)
    assert cancel.sends_now(1.2 + CANCEL_RETRY_S)
    cancel.answered(True, 1.4)
    assert cancel.confirmed
    assert not cancel.sends_now(99.0)


@pytest.mark.parametrize("answers", [True, False])
def test_a_driver_that_does_not_cancel_is_asked_for_ever_but_slowly(answers: bool) -> None:
    cancel, asked_s = Cancel(), list[float]()
    cancel.want(0.0)
    for step in range(6000):
        if cancel.sends_now(step / 100):
            asked_s.append(step / 100)
            if answers:
                cancel.answered(False, step / 100)
    assert cancel.failures >= len(asked_s) - 1
    assert 60.0 - asked_s[-1] <= CANCEL_SLOWLY_S + CANCEL_ANSWER_S
    assert len(asked_s) <= CANCEL_QUICKLY + 60.0 / CANCEL_SLOWLY_S


def test_a_cancel_request_that_is_wanted_sooner_is_sent_sooner() -> None:
    cancel = Cancel()
    cancel.want(5.0)
    cancel.want(1.0)
    assert cancel.sends_now(1.0)
