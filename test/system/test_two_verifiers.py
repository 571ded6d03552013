"""A robot that knows two verifiers goes on where one is killed, and refuses one of another policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adahi_ros.nodes.launching.child_processes import NodeProcess
from test.system.stage import Robot, Stage

BACKUP = "/backup/verify_draft"


@pytest.fixture
def start_backup(stage: Stage) -> Callable[..., NodeProcess]:
    def start(checkpoints: Path, **parameters: Any) -> NodeProcess:
        process = stage.start_verifier(checkpoints, namespace="/backup", **parameters)
        stage.wait(lambda: "target policy of" in process.output, "the backup")
        return process

    return start


def test_every_step_is_verified_though_the_first_is_killed(
    stage: Stage, exported: Path, start_backup: Callable[..., NodeProcess]
) -> None:
    # A world that waits for replies asks as fast as they come: that is no flood.
    verifier = stage.start_verifier(exported, batch__quota_hz=0.0)
    start_backup(exported, batch__quota_hz=0.0)
    draft = stage.start_draft(exported, verification__backups=["backup"], command__lockstep=True)
    robot = Robot(stage)
    stage.activate()
    stage.start_simulator(lockstep=True)
    stage.wait(lambda: len(robot.steps) > 50, "steps")
    stage.processes.kill(verifier)
    robot.steps.clear()
    stage.wait(lambda: len(robot.steps) > 300, "steps without the first")
    assert all(record.verified for record in robot.steps)
    (report,) = [line for line in stage.end(draft).splitlines() if "verifiers: " in line]
    figures = json.loads(report.partition("verifiers: ")[2])
    assert figures[f"{BACKUP}.answers"] > 50
    assert figures["/verify_draft.misses"] < 40
    stage.clear()


def test_a_backup_of_another_policy_is_refused_by_name(
    stage: Stage, exported: Path, start_backup: Callable[..., NodeProcess]
) -> None:
    stage.start_verifier(exported)
    start_backup(exported, rule__name="replace")
    draft = stage.start_draft(exported, verification__backups=["backup"])
    stage.activate()
    refusal = f"verifier {BACKUP} is not asked: acceptance: replace, must be speculative"
    stage.wait(lambda: refusal in draft.output, "the refusal")
    stage.wait(lambda: "verifier ready" in draft.output, "the other verifier")
    stage.clear()


@pytest.mark.parametrize(
    ("backups", "says"),
    [
        (["not a name"], "verification.backups: 'not a name', must be a namespace"),
        (["b", "/b"], "verification.backups: '/b', must differ from the others: /b/verify_draft"),
    ],
)
def test_backups_that_cannot_be_are_refused_by_name(
    stage: Stage, exported: Path, backups: list[str], says: str
) -> None:
    draft = stage.start_draft(exported, verification__backups=backups)
    assert not stage.change_state("configure")
    stage.wait(lambda: says in draft.output, "the refusal")
    stage.clear()
