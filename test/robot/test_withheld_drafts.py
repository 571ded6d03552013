"""What a robot does that may not go on without its target, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.gates.gate_config import DeviationTracker
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import MakeRobot, Robot

PERIOD_S = 0.05
PATIENCE_S = 0.2  # past every deadline

Make = Callable[..., Any]


@pytest.fixture
def alone(make_robot: MakeRobot) -> Make:
    """From a limit to a robot for which there is no verifier."""

    def make(limit: int | None) -> Any:
        robot = make_robot(limit=limit)
        robot.link.present = False
        robot.loop.start(0.0)
        return robot

    return make


def reasons(robot: Robot) -> list[Reason]:
    return [record.reason for record in robot.records]


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_draft_acts_alone_for_so_many_steps_and_is_withheld_then(alone: Make, limit: int) -> None:
    robot = alone(limit)
    robot.walk(range(limit + 2), episode=0)
    assert reasons(robot) == [Reason.NO_VERIFIER] * limit + [Reason.FALLBACK_LIMIT] * 2
    assert (len(robot.commands.sent), robot.commands.withheld) == (limit, 2)
    held = robot.records[-1]
    assert (held.action, held.verified) == ((), False)
    assert held.message == "no verifier: no verifier has described itself"
    assert held.draft_action
    assert held.reason_counts[Reason.FALLBACK_LIMIT] == 2


def test_a_verified_draft_ends_it_and_is_requested_whatever_the_gate_says(make_robot: MakeRobot) -> None:
    robot = make_robot(limit=1).connect()
    robot.verifier.replies = False
    robot.walk(range(2), PATIENCE_S, 0)
    assert reasons(robot) == [Reason.DEADLINE, Reason.FALLBACK_LIMIT]
    robot.choose("never")
    robot.walk(range(2, 4), PATIENCE_S, 0)
    assert robot.session.link is VerifierState.UNRESPONSIVE
    assert [record.message for record in robot.records[1:]] == [
        *("deadline", "deadline"),
        "breaker open: verifier too slow, or gone: several replies not by the deadline",
    ]
    robot.verifier.replies = True
    robot.pass_time(1.0)  # a probe is replied to
    robot.walk(range(4, 5), episode=0)
    record = robot.records[-1]
    assert (record.reason, record.transmitted, record.verified) == (Reason.NONE, True, True)
    assert record.action
    robot.walk(range(5, 6), episode=0)  # which the gate leaves to the draft again
    assert not robot.records[-1].transmitted
    assert robot.records[-1].action


def test_what_the_gate_leaves_to_the_draft_neither_counts_nor_ends_the_row(alone: Make) -> None:
    robot = alone(2)
    gates = ["never", "always", "never", "never", "always", "never", "always", "never"]
    for step, gate in enumerate(gates):
        robot.choose(gate)
        robot.see(0, step)
    assert reasons(robot) == [
        *(Reason.NONE, Reason.NO_VERIFIER, Reason.NONE, Reason.NONE, Reason.NO_VERIFIER, Reason.NONE),
        *(Reason.FALLBACK_LIMIT, Reason.FALLBACK_LIMIT),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": 6, "message": "no"}, "refused: no"),
        ({"step": 99}, "bad reply: episode_id, step_id, first_step: (0, 99, 1), must be (0, 1, 1)"),
    ],
)
def test_requests_without_a_good_reply_count(
    make_robot: MakeRobot, changes: dict[str, Any], message: str
) -> None:
    robot = make_robot(limit=1).connect()
    robot.verifier.changes = changes
    robot.walk(range(2), episode=0)
    assert (robot.records[-1].reason, robot.records[-1].message) == (Reason.FALLBACK_LIMIT, message)


def test_a_withheld_step_sends_again_where_its_observation_is_repeated(alone: Make) -> None:
    robot = alone(0)
    observation = robot.see(0, 0)
    assert reasons(robot) == [Reason.FALLBACK_LIMIT]
    robot.show(replace(observation, stamp_ns=1000))
    assert len(robot.records) == 1
    robot.link.present = True
    robot.pass_time(2.0)
    for stamp_ns in (1001, 1002):
        robot.show(replace(observation, stamp_ns=stamp_ns))
    assert len(robot.session.submitted) == 1
    robot.pass_time(PERIOD_S)
    assert robot.records[-1].verified
    assert robot.records[-1].action
    robot.show(replace(observation, stamp_ns=1003))
    assert (len(robot.session.submitted), robot.commands.repeated) == (1, [1000, 1003])


def test_a_step_that_waited_too_long_is_drafted_at_the_next_repetition(
    make_robot: MakeRobot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulator waits for its first command, and the verifier has ended meanwhile."""
    robot = make_robot(limit=None).connect()
    robot.loop._acts_within_s = 0.0
    observation = robot.see(0, 0)
    robot.link.present = False
    robot.pass_time(60.0)
    assert not robot.records[-1].action
    assert robot.loop._trouble is not None
    robot.show(replace(observation, stamp_ns=1000))
    assert robot.records[-1].action


def test_the_deviation_is_from_commands_and_not_from_what_was_wanted(make_robot: MakeRobot) -> None:
    robot = make_robot("never").connect()
    robot.commands.share = 0.5
    average = DeviationTracker(robot.policy.action_scale, 0.5, "std")
    for step in range(12):
        robot.commands.enabled = not 4 <= step < 8  # at rest meanwhile: nothing goes in
        robot.see(0, step)
        record = robot.records[-1]
        expected = average.deviation(np.array([record.draft_action]))[0]
        known = expected if np.isfinite(expected) else np.nan
        assert record.deviation == pytest.approx(known, rel=1e-5, nan_ok=True)
        assert (record.action == ()) is not robot.commands.enabled
        if record.action:
            average.update(np.array([record.action]))
