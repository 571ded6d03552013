"""An assignment replaces the instruction or the goal of one robot's requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.signature import Feature, Signature
from adahi_ros.protocol.notice import ROBOTS_MOST
from adahi_ros.protocol.request import Request
from adahi_ros.server.assignments import Assignments

READS = Signature(
    history=1,
    horizon=1,
    action_dim=1,
    features=(Feature("observation", 2),),
    conditions=(Feature("goal", 2),),
    instruction=True,
)
READS_NEITHER = replace(READS, conditions=(), instruction=False)
REQUEST = Request(0, 0, 0, instruction="push", robot_id="arm")


@pytest.fixture
def assignments() -> Assignments:
    return Assignments()


def test_a_robot_without_an_assignment_keeps_its_request(assignments: Assignments) -> None:
    assignments.assign("leg", "walk", [], [READS])
    assert assignments.applied(REQUEST) is REQUEST


def test_what_is_not_assigned_stays_that_of_the_request(assignments: Assignments) -> None:
    assert assignments.assign("arm", "", [1.0, 2.0], [READS]) == 1
    applied = assignments.applied(REQUEST)
    assert (applied.instruction, applied.assignment) == ("push", 1)
    np.testing.assert_array_equal(applied.assigned_goal, [1.0, 2.0])
    assignments.assign("arm", "pull", [], [READS])
    applied = assignments.applied(REQUEST)
    assert (applied.instruction, applied.assigned_goal, applied.assignment) == ("pull", None, 2)


@pytest.mark.parametrize(
    ("robot", "instruction", "goal", "reads", "message"),
    [
        ("", "pull", [], READS, "robot_id: '', must have from 1 to 64 characters"),
        ("x" * 65, "pull", [], READS, "robot_id: "),
        ("leg", "pull", [], READS, "robot_id: 'leg', must be one of 'arm'"),
        ("arm", "x" * 513, [], READS, "instruction: 513 characters, must be at most 512"),
        ("arm", "pull", [], READS_NEITHER, "instruction: 'pull', must be empty"),
        ("arm", "", [1.0], READS, "goal: 1 values, must be 2"),
        ("arm", "", [1.0, np.nan], READS, r"goal\[1\]: nan, must be finite"),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_its_field(
    assignments: Assignments, robot: str, instruction: str, goal: list[float], reads: Signature, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        assignments.assign(robot, instruction, goal, [reads], ["arm"])
    assert (assignments.revision, dict(assignments.revisions)) == (0, {})


def test_the_number_of_robots_is_bounded(assignments: Assignments) -> None:
    for number in range(ROBOTS_MOST):
        assignments.assign(f"r{number}", "pull", [], [READS])
    with pytest.raises(ValueError, match="robot_id: 'arm', must be one of the 256"):
        assignments.assign("arm", "pull", [], [READS])
    assignments.assign("r0", "push", [], [READS])
    assignments.assign("r0", "", [], [READS])
    assignments.assign("arm", "pull", [], [READS])
    assert len(assignments.revisions) == ROBOTS_MOST
