"""A robot whose images are for the target sends them, encodes none, and does what the evaluation says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from adahi_lab.evaluation.rollout import rollout
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

SEED, EPISODE = 11, 4
THRESHOLD = 0.8  # the deviation of these drafts is above it in some steps and below it in others
SMALLEST_JPEG = 900  # bytes; the tables alone take some 600


def without_network(folder: Path) -> str:
    """Return the contract of a robot that knows what the verifier's encoder is, and has not what runs it."""
    name = make("ball_seen").encoder_name  # type: ignore[attr-defined]
    for suffix in ("json", "safetensors"):
        shutil.copy(asset(f"checkpoints/encoders/{name}.{suffix}"), folder / f"eye.{suffix}")
    contract = asset("config/contracts/ball_seen.yaml").read_text()
    assert f"encoder: {name}\n" in contract
    path = folder / "robot.yaml"
    path.write_text(contract.replace(f"encoder: {name}\n", f"encoder: {folder / 'eye'}\n"))
    return str(path)


def test_a_robot_without_the_encoders_network_acts_as_the_rollout(tmp_path: Path) -> None:
    draft, target = (asset(f"checkpoints/ball_seen/{name}.json") for name in ("draft", "target"))
    run = run_over_dds(
        "ball_seen",
        {
            "checkpoint": str(draft.with_suffix("")),
            "contract": without_network(tmp_path),
            "gate.threshold": THRESHOLD,
            "deviation.smoothing": 1.0,
            "deadline_s": 20.0,
        },
        {"checkpoint": str(target.with_suffix(""))},
        SEED,
        range(EPISODE, EPISODE + 1),
    )
    policies = [load_policy(path.with_suffix(""), "onnxruntime") for path in (draft, target)]
    config = ControllerConfig(ThresholdedGate("deviation", THRESHOLD), smoothing=1.0)
    world = make("ball_seen")
    log = rollout(world, Controller(policies[0], config), TargetVerifier(policies[1]), SEED, [EPISODE])
    assert [row.reason for row in run.steps] == [Reason.NONE] * len(log.action)
    assert [row.transmitted for row in run.steps] == log.transmitted[:, 0].tolist()
    assert 0 < sum(row.transmitted for row in run.steps) < len(run.steps)
    executed = np.clip(
        log.action[:, 0], *np.array([world.spec.action_low, world.spec.action_high], np.float32)
    )
    np.testing.assert_array_equal(np.array([row.action for row in run.steps], np.float32), executed)
    assert all(row.request_bytes > SMALLEST_JPEG for row in run.steps if row.transmitted)
