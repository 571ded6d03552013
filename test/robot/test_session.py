"""The session with the verifier, in simulated time."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from adahi_ros.core.signature import CodeSpace, Feature
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import PROTOCOL_VERSION, RequestFault
from adahi_ros.protocol.window import WHOLE
from adahi_ros.robot.link_estimate import FIRST_PAUSE_S, FIRST_S, MISSES_UNTIL_OPEN, RETRANSMISSIONS
from adahi_ros.robot.session import DESCRIBE_RETRY_S, OF_ANOTHER, UNDESCRIBED, OnOutcome, VerifierState
from test.robot.conftest import Fate, MakeRobot, Robot

PERIOD_S = 0.2


def test_it_looks_for_a_verifier_until_there_is_one(make_robot: MakeRobot) -> None:
    robot = make_robot()
    assert robot.loop.next_due_s == math.inf
    robot.link.present = False
    robot.loop.start(10.0)
    robot.pass_time(3.0)
    assert (robot.session.link, robot.link.described) == (VerifierState.ABSENT, 0)
    robot.link.present = True
    robot.pass_time(0.1)
    assert robot.session.link is VerifierState.READY
    assert not robot.session.trouble
    assert robot.changes == [VerifierState.READY]


def test_why_there_is_no_verifier_is_said_where_it_is_known(make_robot: MakeRobot) -> None:
    robot = make_robot()
    robot.link.present, robot.link.absence = False, "another reliability"
    robot.loop.start(10.0)
    robot.pass_time(0.2)
    assert (robot.session.link, robot.session.trouble) == (VerifierState.ABSENT, "another reliability")
    assert robot.changes == [VerifierState.ABSENT]  # once, for the log
    robot.link.present = True
    robot.pass_time(0.1)
    assert (robot.session.link, robot.session.trouble) == (VerifierState.READY, "")


def test_a_verifier_that_does_not_describe_itself_is_queried_again(make_robot: MakeRobot) -> None:
    robot = make_robot()
    robot.verifier.replies = False
    robot.loop.start(10.0)
    robot.pass_time(3.5 * DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.ABSENT
    assert robot.link.described == 4
    assert len(robot.link.open) == 1
    robot.verifier.replies = True
    robot.pass_time(DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.READY


def test_a_verifier_whose_description_cannot_be_read_differs_from_none(make_robot: MakeRobot) -> None:
    """The description of an earlier protocol is shorter: no middleware hands it over."""
    robot = make_robot()
    robot.verifier.replies = False
    robot.loop.start(10.0)
    robot.pass_time((UNDESCRIBED + 0.5) * DESCRIBE_RETRY_S)
    assert f"its protocol is not {PROTOCOL_VERSION}" in robot.session.trouble
    assert robot.changes == [VerifierState.ABSENT]
    robot.pass_time(10 * DESCRIBE_RETRY_S)
    assert robot.changes == [VerifierState.ABSENT]  # once
    robot.verifier.replies = True
    robot.pass_time(DESCRIBE_RETRY_S)
    assert (robot.session.link, robot.session.trouble) == (VerifierState.READY, "")


def test_a_refusal_of_the_robots_name_is_kept_until_the_next_start(robot: Robot) -> None:
    message = "robot_id: 'robot', must be 'arm' on this service"
    robot.verifier.changes = {"status": int(RequestFault.UNKNOWN_ROBOT), "message": message, "actions": ()}
    robot.walk(range(3), PERIOD_S)
    assert robot.session.misnamed == message
    assert robot.changes == [VerifierState.READY] * 2  # what was told of once is not told of again
    robot.loop.stop()
    assert robot.session.misnamed == ""


CODES = CodeSpace("feedfacefeedface", 2, 4)
MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"codes": CODES}, "tokenizer_fingerprint: the draft's is "),
    ({"codes": None}, "codes: the draft's is a tokenizer, the target's none"),
    ({"horizon": 9}, "horizon: the draft's is 1, the target's 9"),
    ({"action_dim": 9}, "action_dim: the draft's is 2, the target's 9"),
    ({"history": 0}, "history: the target's is 0, must be from 1 to 64"),
    ({"features": (Feature("observation", 9),)}, "observation: 9 numbers are read, the robot offers 3"),
    ({"conditions": (Feature("speed", 1),)}, "speed: is read, but the robot offers observation, goal"),
]


@pytest.mark.parametrize(("changes", "trouble"), MISFITS)
def test_a_verifier_that_does_not_fit_is_named(
    make_robot: MakeRobot, changes: dict[str, Any], trouble: str
) -> None:
    robot = make_robot()
    right = robot.verifier.description
    robot.verifier.describe_otherwise(**changes)
    robot.loop.start(10.0)
    robot.pass_time(1.0)
    assert robot.session.link is VerifierState.MISMATCHED
    assert robot.session.trouble.startswith(trouble)
    robot.verifier.description = right
    robot.pass_time(DESCRIBE_RETRY_S + 0.1)
    assert robot.session.link is VerifierState.READY


@pytest.mark.parametrize("fault", sorted(OF_ANOTHER))
def test_a_verifier_of_another_kind_is_found_out_by_its_refusal(robot: Robot, fault: RequestFault) -> None:
    """The drafts go on, and so does verification with the right one."""
    right = robot.verifier.description
    robot.verifier.speak("feedfacefeedface")
    robot.verifier.changes = {"status": int(fault), "message": "another"}
    first = robot.see(1, 0)
    robot.pass_time(PERIOD_S)
    assert robot.record(first).reason is Reason.REFUSED
    assert robot.changes[1:] == [VerifierState.ABSENT, VerifierState.MISMATCHED]
    second = robot.see(1, 1)
    record = robot.record(second)
    assert (record.reason, record.transmitted) == (Reason.REFUSED, False)
    assert "feedfacefeedface" in record.message
    assert record.action == record.draft_action
    robot.verifier.description, robot.verifier.changes = right, {}
    robot.pass_time(DESCRIBE_RETRY_S + 0.1)
    third = robot.see(1, 2)
    robot.pass_time(PERIOD_S)
    assert robot.record(third).verified


@pytest.mark.parametrize("gone", ["present", "replies"])
def test_a_verifier_of_another_kind_that_has_gone_is_none(robot: Robot, gone: str) -> None:
    robot.verifier.speak("feedfacefeedface")
    robot.verifier.changes = {"status": int(RequestFault.TOKENIZER_MISMATCH)}
    robot.see(1, 0)
    robot.pass_time(3 * DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.MISMATCHED
    setattr(robot.link if gone == "present" else robot.verifier, gone, False)
    robot.pass_time(3 * DESCRIBE_RETRY_S)
    assert robot.session.link is VerifierState.ABSENT
    assert "verifier lost" in robot.session.trouble
    assert robot.record(robot.see(1, 1)).reason is Reason.NO_VERIFIER


def test_a_verifier_that_is_lost_is_not_sent_to(robot: Robot) -> None:
    robot.walk(range(1), PERIOD_S)
    robot.link.present = False
    robot.pass_time(0.1)
    assert (robot.session.link, robot.session.trouble) == (
        VerifierState.ABSENT,
        "verifier lost: its services are gone",
    )
    record = robot.record(robot.see(1, 1))
    assert (record.reason, record.transmitted) == (Reason.NO_VERIFIER, False)


def test_only_what_is_new_of_a_window_is_sent_or_all_where_that_is_wanted(robot: Robot) -> None:
    robot.walk(range(3), PERIOD_S)
    (_, whole), *_, (_, short) = robot.link.updates
    assert whole.base == WHOLE != short.base
    assert 2 * len(short.rows.numbers) == len(whole.rows.numbers)
    assert robot.session.windows_resent == 0
    robot.verifier.restart()
    last = robot.see(1, 3)
    robot.pass_time(PERIOD_S)
    (first, refused), (again, resent) = robot.link.updates[-2:]
    assert first is again
    assert refused.base != WHOLE == resent.base
    assert robot.session.windows_resent == 1
    record = robot.record(last)
    assert record.verified
    assert record.request_bytes == sum(list(robot.link.sent.values())[-2:])
    assert robot.record(last).verify_ms == pytest.approx(20.0)


def test_a_whole_window_that_is_refused_is_not_sent_for_ever(robot: Robot) -> None:
    robot.verifier.changes = {"status": int(RequestFault.WINDOW_UNKNOWN), "message": "base_window: unknown"}
    robot.walk(range(1), PERIOD_S)
    assert robot.records[0].reason is Reason.REFUSED
    assert len(robot.link.updates) == 1


def test_a_request_without_a_reply_is_sent_again_as_it_was(robot: Robot) -> None:
    robot.loop.deadline_s = 10.0
    robot.verifier.replies = False
    robot.see(1, 0)
    robot.pass_time(0.9 * FIRST_S)
    assert len(robot.link.updates) == 1
    robot.pass_time(1.0)
    assert len(robot.link.updates) == 1 + RETRANSMISSIONS
    assert all(update == robot.link.updates[0] for update in robot.link.updates)
    robot.verifier.replies = True
    robot.pass_time(10.0)
    assert [record.reason for record in robot.records] == [Reason.DEADLINE]
    assert not robot.link.open


def test_what_was_lost_before_does_not_delay_the_next_retransmission(robot: Robot) -> None:
    robot.link.loss, robot.link.delay_s = 0.2, (0.01, 0.01)
    verified = [record.verified for record in robot.walk(range(300))]
    assert sum(verified) > 0.8 * len(verified)


def test_a_slow_verifier_is_sent_to_less_and_less_often(robot: Robot) -> None:
    robot.link.delay_s = (0.1, 0.1)
    bursts: list[list[float]] = [[]]
    step = 0
    while len(bursts) < 4:
        shown_s = robot.link.now_s
        robot.see(1, step)
        robot.pass_time(0.11)
        step += 1
        record = robot.records[-1]
        assert not record.verified
        if record.transmitted:
            assert record.reason is Reason.DEADLINE
            bursts[-1].append(shown_s)
        else:
            assert record.reason is Reason.BREAKER_OPEN
            assert "too slow" in record.message
            if bursts[-1]:
                bursts.append([])
    assert [len(burst) for burst in bursts] == [MISSES_UNTIL_OPEN, 1, 1, 0]
    pauses_s = [after[0] - before[-1] for before, after in pairwise(bursts[:3])]
    assert pauses_s[0] > FIRST_PAUSE_S
    assert pauses_s[1] > 2 * FIRST_PAUSE_S
    assert robot.session.on_trial or robot.session.link is VerifierState.UNRESPONSIVE
    robot.link.delay_s = (0.005, 0.005)
    robot.pass_time(1.0)
    assert robot.session.on_trial
    last = robot.see(1, step)
    robot.pass_time(PERIOD_S)
    assert robot.record(last).verified
    assert not robot.session.on_trial
    assert robot.changes[-1] is VerifierState.READY


def test_requests_that_newer_observations_overtake_open_the_breaker(robot: Robot) -> None:
    """So a verifier that is gone is noticed even where the deadline is longer than the control period."""
    robot.loop.deadline_s = 30.0
    robot.verifier.replies = False
    seen = []
    for step in range(MISSES_UNTIL_OPEN + 1):
        seen.append(robot.see(1, step))
        robot.pass_time(0.05)
    reasons = [robot.record(each).reason for each in seen]
    assert reasons == [Reason.SUPERSEDED] * MISSES_UNTIL_OPEN + [Reason.BREAKER_OPEN]


def test_a_reply_after_its_deadline_is_dropped(robot: Robot) -> None:
    robot.loop.deadline_s = 0.008
    late = robot.see(1, 0)
    robot.stall(0.009)  # the deadline is missed before anybody polls, and the reply comes after
    assert robot.record(late).reason is Reason.DEADLINE
    before = repr((robot.records, robot.commands.sent, robot.session.estimate(0.0)))
    robot.pass_time(PERIOD_S)
    assert repr((robot.records, robot.commands.sent, robot.session.estimate(0.0))) == before
    robot.loop.deadline_s = 0.05
    robot.see(1, 1)
    robot.stall(0.06)  # both were due
    assert robot.records[-1].reason is Reason.DEADLINE
    assert [each.fate for each in robot.session.submitted] == [Fate.MISSED] * 2


def test_several_requests_may_be_on_their_way(robot: Robot) -> None:
    link, session = robot.link, robot.session
    robot.walk(range(1), PERIOD_S)
    request = session.submitted[0].pending.request
    ended: list[tuple[int, Reason]] = []
    pending = []

    def noted(number: int) -> OnOutcome:
        return lambda outcome: ended.append((number, outcome.reason))

    for number, delay_s in enumerate((0.03, 0.01, 0.02, 1.0)):
        link.delay_s = (delay_s, delay_s)
        pending.append(
            session.submit(replace(request, step=number, first_step=number), 0.1, link.now_s, noted(number))
        )
    session.cancel(pending[0])
    robot.pass_time(0.2)
    assert ended == [(1, Reason.NONE), (2, Reason.NONE), (3, Reason.DEADLINE)]
    assert [each.fate for each in session.submitted[1:]] == [
        Fate.CANCELLED,
        Fate.REPLIED,
        Fate.REPLIED,
        Fate.MISSED,
    ]
    assert not link.open


def test_what_was_stopped_hears_nothing(robot: Robot) -> None:
    robot.see(1, 0)
    robot.loop.stop()
    assert robot.loop.next_due_s == math.inf
    assert not robot.link.open
    assert robot.session.submitted[0].fate is Fate.CANCELLED
    robot.pass_time(1.0)
    robot.loop.poll()
    assert not robot.records
    assert robot.session.link is VerifierState.ABSENT


def test_a_verifier_that_keeps_no_window_gets_each_whole_and_once(robot: Robot) -> None:
    robot.verifier.keeps_windows = False
    robot.walk(range(4))
    assert all(record.verified for record in robot.records)
    assert [update.base for _, update in robot.link.updates] == [0] * 4
    assert robot.session.windows_resent == 0
    robot.verifier.keeps_windows = True
    robot.walk(range(4, 6))
    assert [update.base == 0 for _, update in robot.link.updates[4:]] == [True, False]
