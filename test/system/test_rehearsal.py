"""What a node goes through between two steps, to be ready for the next, has no effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adahi_ros.speculation.records import StepRecord

PERIOD_S = 0.05
STEPS = 6


def decided(record: StepRecord) -> tuple[Any, ...]:
    return (
        *(record.deviation, record.score, record.transmitted, record.verified, record.accepted),
        *(record.draft_action, record.action, record.request_bytes, record.reason),
    )


def test_a_robot_with_time_between_its_steps_does_what_one_in_a_hurry_does(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path
) -> None:
    stage.start("target_verifier_node", checkpoint=str(exported / "target"), seed=5)
    robot = make_robot(stage)
    stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        gate__name="always",
        control_rate_hz=1.0 / PERIOD_S,
        deadline_s=20.0,
        verifier_wait_s=60.0,
        max_age_s=60.0,
    )
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    robot.show_until_answered(0)

    def episode(number: int, pause_s: float) -> list[tuple[Any, ...]]:
        records = []
        for step in range(STEPS):
            robot.show(number, step)
            records.append(decided(robot.answer_to(number, step)))
            resume = robot.now() + pause_s * 1e9
            stage.wait(lambda resume=resume: robot.now() >= resume, "the end of a pause")
        return records

    hurried = episode(1, 0.0)
    robot.show_until_answered(2)
    robot.steps.clear()
    assert episode(1, 2 * PERIOD_S) == hurried
    assert all(record[3] for record in hurried)
