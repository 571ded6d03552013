"""The robot goes on when the verifier is killed, and asks again when it is back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adahi_ros.protocol.records import Reason, StepRecord


def test_drafts_while_the_verifier_is_dead_then_verification_again(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path
) -> None:
    target = {"checkpoint": str(exported / "target")}
    verifier = stage.start("target_verifier_node", **target)
    # In lockstep the world waits: a machine that is busy must not look like a robot without observations.
    patient = {"deadline_s": 0.3, "safety__hold_after_s": 60.0}
    draft = {"checkpoint": str(exported / "draft"), "gate__name": "always", **patient}
    stage.start("draft_policy_node", verifier_wait_s=30.0, command__lockstep=True, **draft)
    robot = make_robot(stage)
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    stage.start("robot_simulator_node", lockstep=True)

    def wait_for(what: str, right: Callable[[StepRecord], bool]) -> None:
        robot.steps.clear()
        stage.wait(lambda: any(right(record) for record in robot.steps), what)

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
    stage.start("target_verifier_node", **target)
    wait_for("verified step after the restart", lambda record: record.verified)


def test_a_verifier_that_is_not_active_is_none_and_keeps_its_policy(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path
) -> None:
    """`ros2 lifecycle set /target_verifier deactivate`: robots go on without; then it is there at once."""
    stage.processes.end()
    stage.processes.all.clear()
    verifier = stage.start("target_verifier_node", checkpoint=str(exported / "target"))
    draft = {"checkpoint": str(exported / "draft"), "gate__name": "always", "deadline_s": 5.0}
    draft["command__lockstep"] = True
    stage.start("draft_policy_node", verifier_wait_s=30.0, safety__hold_after_s=60.0, **draft)
    robot = make_robot(stage)
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    stage.start("robot_simulator_node", lockstep=True)

    def set_verifier(label: str) -> None:
        assert stage.observer.change_state("target_verifier", label, 30.0, stage.check)

    def wait_for(what: str, right: Callable[[StepRecord], bool]) -> None:
        robot.steps.clear()
        stage.wait(lambda: any(right(record) for record in robot.steps), what)

    wait_for("verified step", lambda record: record.verified)
    set_verifier("deactivate")
    wait_for("step without a verifier", lambda record: record.reason is Reason.NO_VERIFIER)
    set_verifier("activate")
    wait_for("verified step again", lambda record: record.verified)
    set_verifier("deactivate")
    set_verifier("cleanup")
    set_verifier("configure")
    set_verifier("activate")
    wait_for("verified step of a verifier that was configured anew", lambda record: record.verified)
    assert "Traceback" not in verifier.output
