"""The robot goes on when the verifier is killed, and asks again when it is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adahi_ros.protocol.records import Reason
from test.system.stage import Robot, Stage


def stepping(stage: Stage, exported: Path, **parameters: Any) -> Robot:
    """Start a robot in lockstep, so that a busy machine does not look like a robot without observations."""
    stage.start_draft(exported, command__lockstep=True, **parameters)
    robot = Robot(stage)
    stage.activate()
    stage.start_simulator(lockstep=True)
    return robot


def test_drafts_while_the_verifier_is_dead_then_verification_again(stage: Stage, exported: Path) -> None:
    verifier = stage.start_verifier(exported)
    robot = stepping(stage, exported, deadline_s=0.3)
    wait_for = robot.wait_for_step
    wait_for("verified step", lambda record: record.verified)
    stage.processes.kill(verifier)
    wait_for("step without a verifier", lambda record: record.reason is Reason.BREAKER_OPEN)
    dead = list(robot.steps)
    assert {record.reason for record in dead} <= {Reason.NONE, Reason.DEADLINE, Reason.BREAKER_OPEN}
    assert any(record.reason is Reason.DEADLINE and record.transmitted for record in dead)
    for record in dead:
        assert record.verified == (record.reason is Reason.NONE)
        assert record.verified or record.action == record.draft_action
        assert record.reason is not Reason.BREAKER_OPEN or not record.transmitted
    stage.start_verifier(exported)
    wait_for("verified step after the restart", lambda record: record.verified)


def test_a_verifier_that_is_not_active_is_none_and_keeps_its_policy(stage: Stage, exported: Path) -> None:
    """`ros2 lifecycle set /target_verifier deactivate`: robots go on without; then it is there at once."""
    stage.clear()
    verifier = stage.start_verifier(exported)
    wait_for = stepping(stage, exported).wait_for_step

    def set_verifier(*labels: str) -> None:
        for label in labels:
            assert stage.change_state(label, "target_verifier")

    wait_for("verified step", lambda record: record.verified)
    set_verifier("deactivate")
    wait_for("step without a verifier", lambda record: record.reason is Reason.NO_VERIFIER)
    set_verifier("activate")
    wait_for("verified step again", lambda record: record.verified)
    set_verifier("deactivate", "cleanup", "configure", "activate")
    wait_for("verified step of a verifier that was configured anew", lambda record: record.verified)
    assert "Traceback" not in verifier.output
