"""Bags with cameras become what LeRobot loads and trains on: `make test-lerobot` runs it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_lab.cli.lerobot import export
from adahi_lab.datasets.bag_dataset import observations_of, read_dataset
from adahi_lab.datasets.lerobot_dataset import INTERVENTION
from adahi_ros.contract.parsing import load_contract
from adahi_ros.protocol.records import Reason, StepRecord
from test.bags.conftest import LATE_NS, Line, contract_values, status, write_bag
from test.bags.seeing import FRONT, WRIST, messages, seeing_values

__all__ = ["contract_values"]

pytestmark = pytest.mark.skipif(find_spec("lerobot") is None, reason="LeRobot is not installed")
STATE = "observation.state"


@pytest.fixture
def contract(contract_values: dict[str, Any], tmp_path: Path) -> Path:
    """Joints as the state, and two cameras."""
    values = seeing_values(contract_values)
    values["observations"] = {
        key.replace("observation.joints", STATE): value for key, value in values["observations"].items()
    }
    for camera in (FRONT.name, WRIST.name):
        values["observations"][camera]["apply"] = [{"resize": [64, 96]}]  # the least that LeRobot films
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize("images", [False, True])
def test_lerobot_reads_and_trains_on_what_a_bag_showed(
    images: bool, contract: Path, tmp_path: Path, step_record: Callable[..., StepRecord]
) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    lines = messages(4)  # of a run of a policy; a person drives in steps 2 and 5
    commands = [each for each in lines if each.topic == "command"]
    for number in (2, 5):
        at = commands[number].received_ns
        driven = step_record(stamp_ns=at - LATE_NS - 5, reason=Reason.PERSON, action=(0.1, 0.2))
        lines.insert(lines.index(commands[number]) + 1, Line("draft_status", status(driven), at))
    bags = [write_bag(tmp_path / "bag3", messages(3)), write_bag(tmp_path / "bag4", lines)]
    out = tmp_path / "dataset"
    export(bags, out, contract=str(contract), instruction="wait", images=images, robot_type="so_follower")
    read = load_contract(str(contract))
    made = read_dataset(bags, read, instruction="wait")
    loaded = LeRobotDataset("dataset", root=out)
    assert loaded.meta.robot_type == "so_follower"
    assert (len(loaded), loaded.num_episodes) == (len(made.stamps_ns), len(made.trajectories))
    seen = [list(observations_of(bag, read, "", instructed=True)) for bag in bags]
    off = []
    for step in range(len(loaded)):
        item, observation = loaded[step], seen[made.places[step, 0]][made.places[step, 1]]
        assert item["task"] == made.instructions[step]
        assert bool(item[INTERVENTION]) is (tuple(made.places[step]) in {(1, 2), (1, 5)})
        np.testing.assert_array_equal(item["action"], made.trajectories.actions[step])
        np.testing.assert_array_equal(item[STATE], np.float32(observation.named[STATE]))
        for camera in (FRONT.name, WRIST.name):
            shown = np.asarray(item[camera]).transpose(1, 2, 0) * 255
            off.append(np.abs(shown - observation.images[camera]).mean())
    assert max(off) < (1e-3 if images else 30.0)  # drawn pixels are the worst case of a video
    assert train(out, tmp_path / "run").is_dir()


def train(dataset: Path, out: Path) -> Path:
    """Let LeRobot's trainer train an ACT for two steps; return its folder."""
    from lerobot.configs.default import DatasetConfig, WandBConfig
    from lerobot.configs.train import TrainPipelineConfig
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.scripts import lerobot_train

    small = {"chunk_size": 4, "n_action_steps": 4, "dim_model": 16, "n_heads": 2, "dim_feedforward": 16}
    config = TrainPipelineConfig(
        dataset=DatasetConfig(repo_id="dataset", root=str(dataset)),
        policy=ACTConfig(device="cpu", push_to_hub=False, pretrained_backbone_weights=None, **small),
        output_dir=out,
        num_workers=0,
        batch_size=2,
        steps=2,
        save_freq=2,
        wandb=WandBConfig(enable=False),
    )
    lerobot_train.train(config)
    return out / "checkpoints/last/pretrained_model"
