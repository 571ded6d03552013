"""A robot without a policy of its own goes on by the target's plans, and is held where it has none."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.protocol.records import Reason
from test.robot.conftest import Robot

HORIZON = 8


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("gate", ["age", "deviation", "expected_error", "never"])
@pytest.mark.parametrize("limit", [None, 0])
def test_nothing_but_plans_is_commanded_and_no_longer_than_they_are(
    waits: bool, gate: str, limit: int | None
) -> None:
    robot = Robot(AbsentPolicy(3, 1, 2), gate, limit=limit, plans=HORIZON, waits=waits)
    robot.loop.start(0.0)
    robot.walk(range(1))  # before a verifier has described itself
    assert robot.commands.sent == []
    assert robot.records[-1].reason is Reason.FALLBACK_LIMIT
    assert robot.records[-1].draft_action == ()
    robot.pass_time(1.0)
    robot.walk(range(1, 21))
    assert not np.isinf([record.deviation for record in robot.records]).any()  # NaN where there is none
    served = len(robot.commands.sent)
    assert served >= 19
    robot.verifier.replies = False
    robot.walk(range(21, 41))
    assert len(robot.commands.sent) < served + HORIZON
    assert robot.commands.withheld > 10
    assert np.isfinite([action for _, action in robot.commands.sent]).all()
    robot.verifier.replies = True
    robot.pass_time(2.0)
    robot.walk(range(41, 46))
    assert len(robot.commands.sent) >= served + 4


@pytest.mark.parametrize("waits", [True, False])
def test_plans_beyond_the_units_of_any_robot_are_refused(waits: bool) -> None:
    robot = Robot(AbsentPolicy(3, 1, 2), "always", limit=0, plans=HORIZON, waits=waits).connect()
    robot.verifier.changes = {"actions": (1e30,) * 2 * HORIZON}
    robot.see(1, 0)
    robot.pass_time(0.05)
    robot.see(1, 1)
    assert robot.records[-1].reason in (Reason.BAD_REPLY, Reason.FALLBACK_LIMIT)
    assert "action[0]: 1e+30, must be from -1e+09 to 1e+09" in robot.records[-1].message
    assert robot.commands.sent == []
