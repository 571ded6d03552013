"""From an ACT of LeRobot's to an arm that moves, by its files alone: `make test-lerobot` runs it.

The arm is a plugin of LeRobot's without hardware; its servos stay where they are while no driver runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from adahi_lab.nodes.domain import loopback_environment
from adahi_ros.core.node_parameters import parameters_for
from adahi_ros.core.signals import with_parent
from adahi_ros.nodes.launching.child_processes import NodeProcess
from test.cli.conftest import Run, run
from test.cli.test_lerobot_init import JOINTS, STATE, dataset
from test.system.conftest import UDP_ONLY
from test.system.stage import Stage

__all__ = ["run"]

pytestmark = pytest.mark.skipif(find_spec("lerobot") is None, reason="LeRobot is not installed")
PLUGIN = Path(__file__).parents[1] / "nodes/lerobot_plugin"
CAMERA = "observation.images.front"
LOW, HIGH = [-60.0, -100.0, 20.0, 20.0, -60.0, 20.0], [60.0, -20.0, 95.0, 90.0, 60.0, 98.0]
START = dict(zip(JOINTS, (0.0, -40.0, 30.0, 50.0, 0.0, 50.0), strict=True))
FAR = dict.fromkeys(JOINTS, 80.0)
CAMERAS = "--robot.cameras_seen=[front]"
STILL = 4.0  # degrees, which the stand-in needs 20 ms for


def write_act(folder: Path) -> Path:
    """Let LeRobot write an ACT of drawn weights for an SO-101 with a camera, in degrees."""
    import torch
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.factory import get_policy_class, make_policy_config, make_pre_post_processors

    small = {"dim_model": 32, "n_heads": 2, "dim_feedforward": 64, "n_encoder_layers": 1, "use_vae": False}
    sized = {"pretrained_backbone_weights": None, "chunk_size": 50, "n_action_steps": 50, "device": "cpu"}
    config = make_policy_config("act", push_to_hub=False, **small, **sized)
    config.input_features = {
        STATE: PolicyFeature(FeatureType.STATE, (6,)),
        CAMERA: PolicyFeature(FeatureType.VISUAL, (3, 48, 64)),
    }
    config.output_features = {"action": PolicyFeature(FeatureType.ACTION, (6,))}
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    learnt = {"min": low, "max": high, "mean": (low + high) / 2, "std": (high - low) / 4}
    pixels = {name: torch.full((3, 1, 1), 0.5) for name in ("min", "max", "mean", "std")}
    torch.manual_seed(0)
    stats = {STATE: learnt, "action": learnt, CAMERA: pixels}
    for part in (get_policy_class("act")(config), *make_pre_post_processors(config, dataset_stats=stats)):
        part.save_pretrained(folder)
    return folder


class Arm:
    """The servos, and the process of their driver."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.servos, self.log = folder / "servos.json", folder / "drive.log"
        info = folder / "lerobot_robot_standin-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lerobot_robot_standin\nVersion: 1\n")
        paths = os.pathsep.join([str(folder), str(PLUGIN), os.environ["PYTHONPATH"]])
        self.environment = {
            **os.environ,
            **loopback_environment(stage.domain),
            **UDP_ONLY,
            "PYTHONPATH": paths,
        }
        self.stage, self.processes = stage, list[subprocess.Popen[bytes]]()

    def stand(self, position: dict[str, float], goal: dict[str, float]) -> None:
        now = {"position": position, "goal": goal, "torque": False, "time": time.monotonic()}
        self.servos.write_text(json.dumps(now))

    def drive(self, *arguments: str) -> None:
        own = "--robot.type=standin", "--robot.id=test", f"--robot.servos={self.servos}", *arguments
        command = [sys.executable, "-m", "adahi_ros.start", "adahi_ros.cli.app", "lerobot", "drive", *own]
        with self.log.open("w") as log:
            started = subprocess.Popen(
                [*command, "--namespace", "follower"],
                env=self.environment,
                preexec_fn=partial(with_parent, signal.SIGTERM),
                stderr=log,
            )
        self.processes.append(started)
        self.stage.wait(
            lambda: "commands on /follower/joint_trajectory" in self.log.read_text(), "the driver"
        )

    def end(self, kill: bool = False) -> int:
        process = self.processes.pop()
        (process.kill if kill else process.terminate)()
        return process.wait(30.0)

    @property
    def position(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(self.servos.read_text())["position"]
        return found

    @property
    def read_s(self) -> float:
        """When the driver last read the servos."""
        return float(json.loads(self.servos.read_text())["time"])

    def moved_from(self, start: dict[str, float]) -> float:
        return max(abs(at - start[joint]) for joint, at in self.position.items())


class Nodes:
    """Verifier and robot, with the files that the command wrote."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.stage, self.folder = stage, folder
        self.written = yaml.safe_load((folder / "params.yaml").read_text())
        self.start("target_verifier", checkpoint=str(folder / "target.yaml"))
        self.robot = self.start("draft_policy", autostart=True)
        self.enable = stage.client(SetBool, "/follower/draft_policy/set_enabled")

    def start(self, node: str, **more: Any) -> NodeProcess:
        values = {**parameters_for(self.written, f"/{node}"), **more}
        return self.stage.start(f"{node}_node", namespace="/follower", **values)

    def said(self, text: str) -> None:
        self.stage.wait(lambda: text in self.robot.output, text)

    def restart_robot(self) -> None:
        self.stage.end(self.robot)
        self.robot = self.start("draft_policy", autostart=True)


@pytest.fixture
def arm(stage: Stage, tmp_path: Path) -> Iterator[Arm]:
    arm = Arm(tmp_path / "standin", stage)
    arm.stand(START, START)
    yield arm
    while arm.processes:
        assert arm.end() == 0


@pytest.fixture
def nodes(stage: Stage, tmp_path: Path, run: Run) -> Iterator[Nodes]:
    policy, data = write_act(tmp_path / "act"), dataset(tmp_path / "data", JOINTS)
    run("lerobot", "init", policy, "--out", tmp_path / "arm", "--dataset", data)
    yield Nodes(tmp_path / "arm", stage)
    stage.clear()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--robot.id=x"], "--robot.type: none"),
        (["--robot.type=so101_folower"], "--robot.type: so101_folower"),
        (["--robot.type", "so101_follower", "--teleop.type", "so101"], "--teleop.type: so101"),
    ],
)
def test_a_robot_of_no_known_type_is_refused_in_one_line(given: list[str], said: str) -> None:
    drive = [sys.executable, "-m", "adahi_ros.start", "adahi_ros.cli.app", "lerobot", "drive"]
    ended = subprocess.run([*drive, *given], capture_output=True, text=True, timeout=60.0, check=False)
    assert ended.stderr.startswith(f"error: {said}, must be one of ")
    assert ended.stderr.count("\n") == 1


def test_an_act_moves_an_arm_of_lerobots(stage: Stage, arm: Arm, nodes: Nodes) -> None:
    arm.drive()
    nodes.said("no step: front/image_raw/compressed: no sample for a step has come")
    assert arm.end() == 0
    arm.drive(CAMERAS)
    deadman = stage.node.create_publisher(Bool, "/follower/enable", 10)
    pressed = stage.node.create_timer(0.1, lambda: deadman.publish(Bool(data=True)))
    assert arm.moved_from(START) < STILL
    nodes.said("a fresh press is needed; release, then press")
    assert arm.moved_from(START) < STILL
    stage.wait(lambda: nodes.enable(SetBool.Request(data=True)).success, "a fresh press")
    stage.wait(lambda: arm.moved_from(START) > 5.0, "motion")
    stage.node.destroy_timer(pressed)

    assert arm.end(kill=True) != 0
    stopped = arm.position
    arm.stand(stopped, FAR)  # the last command before the end was elsewhere
    arm.drive(CAMERAS)
    since_s = arm.read_s
    stage.wait(lambda: arm.read_s > since_s + 1.0, "a second of the servos")
    assert arm.moved_from(stopped) < STILL
    assert arm.end() == 0

    arm.stand(*[{joint: float(np.deg2rad(at)) for joint, at in START.items()}] * 2)
    arm.drive(CAMERAS)
    nodes.restart_robot()
    nodes.said("position.wrist_flex is 0.8727; the policy learnt 20 to 90: rad instead of degrees")
