"""A robot that may not go on by its draft alone: held without its target, and on again with it."""

from __future__ import annotations

from pathlib import Path

from adahi_msgs.msg import SafetyState
from diagnostic_msgs.msg import DiagnosticArray

from adahi_ros.protocol.records import Reason
from test.ball_contract import ball_contract
from test.system.stage import HeldVerifier, Robot, Stage, describe_policy, reliable_input

LIMIT = 2
HELD = "held: no reply of the target"


def test_a_robot_without_its_target_is_held_and_goes_on_when_that_is_there(
    stage: Stage, exported: Path
) -> None:
    safety: list[SafetyState] = stage.received(SafetyState, "safety_state")
    health: list[DiagnosticArray] = stage.received(DiagnosticArray, "/diagnostics")
    process = stage.start_draft(
        exported,
        fallback="hold",
        fallback_limit=LIMIT,
        verifier_wait_s=0.0,
        verification__reliability="reliable",
        deadline_s=30.0,
        contract=ball_contract(max_age_s=1.0),
        command__lockstep=True,
        qos_overrides=reliable_input(),
    )
    robot = Robot(stage)
    stage.activate()
    robot.show_until_commanded(1)

    for _ in range(LIMIT + 2):
        robot.next()
    reasons = [record.reason for record in robot.steps]
    assert reasons == [Reason.NO_VERIFIER] * LIMIT + [Reason.FALLBACK_LIMIT] * (len(reasons) - LIMIT)
    assert [bool(record.action) for record in robot.steps] == [
        reason is Reason.NO_VERIFIER for reason in reasons
    ]
    assert robot.steps[-1].message.startswith("no verifier: ")
    stage.wait(lambda: bool(safety) and safety[-1].holding, "hold")
    assert list(safety[-1].interventions) == [SafetyState.INTERVENTION_UNVERIFIED]
    stage.wait(
        lambda: any(status.message == HELD for each in health for status in each.status), "diagnostics"
    )
    assert "drafts are executed for 2 steps in a row, then the robot is held" in process.output

    verifier = HeldVerifier(stage, describe_policy(exported / "draft"))
    try:
        stage.wait(lambda: "verifier ready" in process.output, "verifier")
        step = robot.step + 1
        stamp = robot.show(1, step)
        verifier.reply(verifier.wait_for_request(1, step))
        record = robot.answer_to(1, step)
        assert record.verified
        assert robot.command_to(stamp) == record.action
        stage.wait(lambda: not safety[-1].holding, "end of the hold")
        stage.processes.end()
        assert process.exit_code == 0
        assert "Traceback" not in process.output
    finally:
        verifier.close()
