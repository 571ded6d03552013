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

PATIENT = {"deadline_s": 5.0, "safety__hold_after_s": 60.0, "verifier_wait_s": 30.0}
BACKUP = "/backup/verify_draft"


@pytest.fixture
def start_backup(stage: Any) -> Callable[..., Any]:
    def start(**parameters: Any) -> Any:
        named = {name.replace("__", "."): value for name, value in parameters.items()}
        process = stage.processes.start("target_verifier_node", named, namespace="/backup")
        stage.wait(lambda: "target policy of" in process.output, "the backup")
        return process

    return start


def test_every_step_is_verified_though_the_first_is_killed(
    stage: Any, make_robot: Callable[[Any], Any], exported: Path, start_backup: Callable[..., Any]
) -> None:
    # A world that waits for replies asks as fast as they come: that is no flood.
    target = {"checkpoint": str(exported / "target"), "batch__quota_hz": 0.0}
    verifier = stage.start("target_verifier_node", **target)
    start_backup(**target)
    draft = stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        gate__name="always",
        verification__backups=["backup"],
        command__lockstep=True,
        **PATIENT,
    )
    robot = make_robot(stage)
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    stage.start("robot_simulator_node", lockstep=True)
    stage.wait(lambda: len(robot.steps) > 50, "steps")
    stage.processes.kill(verifier)
    robot.steps.clear()
    stage.wait(lambda: len(robot.steps) > 100, "steps without the first")
    assert all(record.verified for record in robot.steps)
    draft.ask_to_end()
    draft.end()
    (said,) = [line for line in draft.output.splitlines() if "verifiers: " in line]
    told = json.loads(said.partition("verifiers: ")[2])
    assert told[f"{BACKUP}.answers"] > 50
    assert told["/verify_draft.misses"] < 40
    stage.processes.all.remove(draft)
    stage.processes.end()
    stage.processes.all.clear()


def test_a_backup_of_another_policy_is_refused_by_name(
    stage: Any, exported: Path, start_backup: Callable[..., Any]
) -> None:
    stage.start("target_verifier_node", checkpoint=str(exported / "target"))
    start_backup(checkpoint=str(exported / "target"), rule="replace")
    draft = stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        verification__backups=["backup"],
        **PATIENT,
    )
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    refusal = f"verifier {BACKUP} is not asked: acceptance: replace, must be speculative"
    stage.wait(lambda: refusal in draft.output, "the refusal")
    stage.wait(lambda: "verifier ready" in draft.output, "the other verifier")
    stage.processes.end()
    stage.processes.all.clear()


def with_other_weights(exported: Path, folder: Path) -> Path:
    """Copy checkpoints; the target there has one weight that is another, and the same sizes."""
    copied = shutil.copytree(exported, folder / "other")
    weights = copied / "target.safetensors"
    tensors = load_file(weights)
    last = sorted(name for name, values in tensors.items() if values.dtype == np.float32)[-1]
    tensors[last].flat[0] += 0.5
    save_file(tensors, weights)
    return copied / "target"


def test_a_backup_of_the_same_sizes_with_other_weights_is_not_asked(
    stage: Any, exported: Path, start_backup: Callable[..., Any], tmp_path: Path
) -> None:
    stage.start("target_verifier_node", checkpoint=str(exported / "target"), target="arm")
    start_backup(checkpoint=str(with_other_weights(exported, tmp_path)), target="arm")
    draft = stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        verification__backups=["backup"],
        **PATIENT,
    )
    assert stage.change_state("configure")
    assert stage.change_state("activate")
    stage.wait(lambda: f"verifier {BACKUP} is not asked: policy_fingerprint: " in draft.output, "the refusal")
    stage.wait(lambda: "verifier ready" in draft.output, "the first")
    stage.processes.end()
    stage.processes.all.clear()


@pytest.mark.parametrize(
    ("backups", "says"),
    [
        (["not a name"], "verification.backups: 'not a name', must be a namespace"),
        (["b", "/b"], "verification.backups: '/b', must not be that of another: /b/verify_draft"),
    ],
)
def test_backups_that_cannot_be_are_refused_by_name(
    stage: Any, exported: Path, backups: list[str], says: str
) -> None:
    draft = stage.start(
        "draft_policy_node", checkpoint=str(exported / "draft"), verification__backups=backups
    )
    assert not stage.change_state("configure")
    stage.wait(lambda: says in draft.output, "the refusal")
    stage.processes.end()
    stage.processes.all.clear()
