"""A robot that knows two verifiers goes on where one is killed, and refuses one of another policy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

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


def with_other_weights(exported: Path, folder: Path) -> Path:
    """Copy checkpoints; the target there has one weight that is another, and the same sizes."""
    copied = shutil.copytree(exported, folder / "other")
    weights = copied / "target.safetensors"
    tensors = load_file(weights)
    last = sorted(name for name, values in tensors.items() if values.dtype == np.float32)[-1]
    tensors[last].flat[0] += 0.5
    save_file(tensors, weights)
    return copied


def test_a_backup_of_the_same_sizes_with_other_weights_gets_no_request(
    stage: Stage, exported: Path, start_backup: Callable[..., NodeProcess], tmp_path: Path
) -> None:
    stage.start_verifier(exported, target_name="arm")
    start_backup(with_other_weights(exported, tmp_path), target_name="arm")
    draft = stage.start_draft(exported, verification__backups=["backup"])
    stage.activate()
    stage.wait(lambda: f"verifier {BACKUP} is not asked: policy_fingerprint: " in draft.output, "the refusal")
    stage.wait(lambda: "verifier ready" in draft.output, "the first")
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
