"""What docs/how_to/train_a_corrector.md does: from bags and a third-party policy to a robot with plans.

With the two nodes in the place of their launches, which give them these parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from adahi_lab.calibration.robot_file import RobotFile
from adahi_ros.cli.app import app
from test.system.policy_server import PolicyServer, camera_contract, served, target_file
from test.system.recorder import RELIABLE, Recorder
from test.system.stage import Robot, Stage

HORIZON = 4  # actions of a plan
SIDE = 16  # pixels
INSTRUCTION = "balance the ball"
SMALL = {"seed": 1, "size": {"hidden": 4}, "fit": {"steps": 20, "batch_size": 16}}
pytestmark = pytest.mark.timeout(120)


def plan_of(observation: dict[str, Any]) -> np.ndarray:
    """Return a plan (HORIZON, 2) float32: from where the joints are, by picture and words."""
    seen = observation["observation/image"].mean(axis=(0, 1))[:2] / 2550 + len(observation["prompt"]) / 1000
    ahead = np.arange(HORIZON, dtype=np.float32)[:, None] / 100
    return np.float32(observation["observation/state"] + seen + ahead)


@pytest.fixture
def policy() -> Iterator[PolicyServer]:
    with served(plan_of) as policy:
        yield policy


@pytest.fixture
def folder(policy: PolicyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that a user writes, in the folder that the commands are given in."""
    files = {
        "arm.yaml": camera_contract(2 * SIDE, 2 * SIDE),
        "target.yaml": target_file(policy.port, HORIZON, SIDE, SIDE),
        "recipe.yaml": {"corrector": SMALL, "distilled": SMALL},
    }
    for name, values in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(values))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adahi_lab.evaluation.step_latency.REPETITIONS", 3)
    return tmp_path


def adahi(*words: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_six_commands_lead_from_bags_to_a_robot_with_a_remote_policy(
    stage: Stage, recorders: Callable[..., Recorder], folder: Path, policy: PolicyServer
) -> None:
    simulated = {"task": "ball_seen", "demonstrate": True, "speed": 20.0, "wait_for_subscribers": 1}
    for seed, (out, episodes) in enumerate({"train": 2, "held": 1}.items()):
        recorder = recorders(folder, "--contract", "arm.yaml", "--out", out, "--use-sim-time")
        varied = {"seed": seed, "episodes": episodes}
        stage.await_end(stage.start_simulator(**simulated, **varied, qos_overrides=RELIABLE))
        assert "Traceback" not in recorder.end()

    adahi("contract", "check", "arm.yaml", "--bag", "train")
    made = ["--contract", "arm.yaml", "--target", "target.yaml", "--recipe", "recipe.yaml", "--out", "arm"]
    how = ["--draft", "--params", "params.yaml", "--instruction", INSTRUCTION, "--jpeg-quality", 60]
    assert "2 episodes" in adahi("train", "corrector", "train", *made, *how)
    adahi("thresholds", "--bag", "held", "--params", "params.yaml", "--out", "robot.yaml")
    requested = len(policy.received)
    assert "Best" in adahi("bag", "evaluate", "held", "--params", "robot.yaml", "--picture", "replay.png")
    assert len(policy.received) - requested < 20  # for what it costs: the answers are known
    assert {received["prompt"] for received in policy.received} <= {INSTRUCTION, ""}

    written = RobotFile.read(folder / "robot.yaml")
    stage.start("target_verifier_node", **written.verifier)
    settings = {name: value for name, value in written.robot.items() if not name.startswith("calibration.")}
    node = stage.start(
        "draft_policy_node",
        **{**settings, "safety.limits": "ball", "safety.require_limits": True},
        deadline_s=20.0,
        verifier_wait_s=60.0,
        safety__hold_after_s=60.0,
        safety__require_enable=False,
        command__lockstep=True,
        qos_overrides=RELIABLE,
    )
    stage.activate()
    robot = Robot(stage)
    stage.start_simulator(task="ball_seen", lockstep=True, wait_for_subscribers=1)
    stage.wait(lambda: sum(step.verified for step in robot.steps) > 2 * HORIZON, "steps that are verified")
    assert {step.proposer for step in robot.steps} == {"corrector"}
    assert {step.gate for step in robot.steps} == {"expected_error"}
    assert any(step.correction for step in robot.steps)
    assert policy.received[-1]["prompt"] == INSTRUCTION
    assert "Traceback" not in node.output
