"""A robot that may not go on by its draft alone: held without its target, and on again with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adahi_msgs.msg import SafetyState
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from adahi_ros.nodes.common.verifier_messages import describe
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason, StepRecord

LIMIT = 2


def test_a_robot_without_its_target_is_held_and_goes_on_when_that_is_there(
    stage: Any,
    make_robot: Callable[[Any], Any],
    make_held_verifier: Callable[..., Any],
    exported: Path,
) -> None:
    safety: list[SafetyState] = []
    health: list[DiagnosticStatus] = []
    stage.node.create_subscription(SafetyState, "safety_state", safety.append, 1000)
    stage.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda message: health.extend(message.status), 10
    )
    process = stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        gate__name="always",
        fallback="hold",
        fallback_limit=LIMIT,
        verifier_wait_s=0.0,
        verification__reliability="reliable",
        deadline_s=30.0,
        max_age_s=1.0,
        safety__hold_after_s=60.0,
        command__lockstep=True,
        qos_overrides={
            f"/{topic}": {"subscription": {"reliability": "reliable", "depth": 100}}
            for topic in ("joint_states", "task_state")
        },
    )
    robot, step = make_robot(stage), 0
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    robot.show_until_answered(1)

    def observe() -> StepRecord:
        nonlocal step
        step += 1
        robot.show(1, step)
        record: StepRecord = robot.answer_to(1, step)
        return record

    for _ in range(LIMIT + 2):
        observe()
    reasons = [record.reason for record in robot.steps]
    assert reasons == [Reason.NO_VERIFIER] * LIMIT + [Reason.FALLBACK_LIMIT] * (len(reasons) - LIMIT)
    assert [bool(record.action) for record in robot.steps] == [
        reason is Reason.NO_VERIFIER for reason in reasons
    ]
    assert robot.steps[-1].message.startswith("no verifier: ")
    stage.wait(lambda: bool(safety) and safety[-1].holding, "hold")
    assert list(safety[-1].interventions) == [SafetyState.INTERVENTION_UNVERIFIED]
    stage.wait(lambda: any(each.message == "held: no reply of the target" for each in health), "diagnostics")
    assert "drafts are executed for 2 steps in a row, then the robot is held" in process.output

    draft = load_policy(exported / "draft", "onnxruntime")
    verifier = make_held_verifier(stage, describe(Description("ball", "speculative", draft.signature)))
    try:
        stage.wait(lambda: "verifier ready" in process.output, "verifier")
        step += 1
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
