"""By the rule semantic, what a robot has measured of its link decides which of its drafts stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_ros.acceptance.semantic import SemanticHead, save_semantic_head, signs_of
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import fingerprint_of
from test.system.stage import Robot, Stage

SHORTEST_MS, LONGEST_MS = 1e-3, 60_000.0  # no link of this machine is shorter than the one, or longer


def undecided(target_path: Path, path: Path) -> str:
    """Write a head that says of every mismatch that it matters with a probability of a half."""
    target = load_policy(target_path, "onnxruntime")
    codes = target.signature.codes
    assert codes is not None
    zeros = np.zeros(signs_of(codes, target.signature.action_dim))
    head = SemanticHead(zeros, np.ones(len(zeros)), zeros, np.zeros(1), fingerprint_of(target))
    save_semantic_head(path, head)
    return str(path)


@pytest.mark.parametrize(("patience_ms", "all_stand"), [(SHORTEST_MS, True), (LONGEST_MS, False)])
def test_drafts_stand_by_the_round_trip_that_the_robot_has_measured(
    stage: Stage, exported: Path, tmp_path: Path, patience_ms: float, all_stand: bool
) -> None:
    stage.start_verifier(
        exported,
        rule="semantic",
        semantic__file=undecided(exported / "target", tmp_path / "head.safetensors"),
        semantic__patience_ms=patience_ms,
        batch__quota_hz=0.0,  # a world that waits for replies asks as fast as they come
    )
    stage.start_draft(exported, command__lockstep=True)
    robot = Robot(stage)
    stage.activate()
    stage.start_simulator(lockstep=True)
    stage.wait(lambda: len(robot.steps) > 60, "steps")
    steps = robot.steps[:60]
    assert all(record.verified for record in steps)
    stood = [all(record.accepted) for record in steps[1:]]  # of the first request nobody knows the link
    assert all(stood) == all_stand
    stage.clear()
