# SPDX-License-Identifier: Apache-2.0
"""An ACT that LeRobot trains on demonstrations of ours, evaluated LeRobot's way and as our target.

    export PYTHONPATH=$PWD:$(.venv/bin/python -m adahi_lab.peers.environments lerobot_grpc)
    .venv/bin/adahi data simulate metaworld --episodes 800 --action-noise 0 --out runs/act/demos.safetensors
    .venv/bin/python benchmarks/lerobot_act.py metaworld runs/act

exports the demonstrations as a LeRobotDataset, lets LeRobot's trainer train an ACT, and runs the same
episodes twice: by LeRobot's loop of `select_action`, and by plans that the target of the kind `lerobot` makes
at our verifier, a new one whenever one is over. Prints both success rates; fails where they differ by more
than `WITHIN`. Existing files are kept. The trainer is LeRobot's, but its items are in memory, because
reading each from its file takes longer than the network's computation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
import yaml

from adahi_lab.datasets.dataset_writer import ENVIRONMENT, STATE, save_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.tasks import make
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.remote.lerobot_folder import import_lerobot
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

WITHIN = 0.05
NAME = "adahi/act"
SMALL = {
    "dim_model": 128,
    "n_heads": 4,
    "dim_feedforward": 512,
    "n_encoder_layers": 3,
    "n_decoder_layers": 1,
    "use_vae": False,
    "dropout": 0.0,
    "optimizer_lr": 5e-4,
}


def description(folder: Path, task: str) -> dict[str, Any]:
    """Return the target's YAML content for a policy trained on the data of `save_dataset`."""
    spec = make(task).spec
    joints = len(spec.joint_names)
    parts = {STATE: joints, ENVIRONMENT: spec.observation_dim - joints}
    state: dict[str, Any] = {"observation": {"as": parts if joints else STATE}}
    if spec.goal_dim:
        state["goal"] = {"size": spec.goal_dim, "as": ENVIRONMENT}
    return {"kind": "lerobot", "folder": str(folder), "device": "cpu", "state": state}


def train(
    dataset: Path, out: Path, policy: dict[str, Any], steps: int, batch: int, seed: int, **options: Any
) -> None:
    """Let LeRobot's trainer train an ACT; `out/checkpoints/last` is then its folder.

    Args:
        dataset: folder of a LeRobotDataset with joints, the rest of the state, and pictures or none.
        out: for what the trainer writes.
        policy: settings of the ACT.
        steps: of training.
        batch: items of a step.
        seed: of the trainer.
        options: more settings of the trainer; `accelerator` is its second argument.
    """
    from lerobot.configs.default import DatasetConfig, WandBConfig
    from lerobot.configs.train import TrainPipelineConfig
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.scripts import lerobot_train

    class InMemory(LeRobotDataset):
        """The same items, from tensors that were read once."""

        def load_items(self) -> None:
            rows = self.hf_dataset.with_format("numpy")[:]
            names = (STATE, ENVIRONMENT, "action")
            self.items = {name: torch.from_numpy(np.array(rows[name], np.float32)) for name in names}
            self.pictures = {name: torch.from_numpy(np.array(rows[name])) for name in self.meta.image_keys}
            self.ends = torch.from_numpy(np.array(self.meta.episodes["dataset_to_index"]))
            self.numbers = torch.from_numpy(np.array(rows["episode_index"]))
            self.ahead = torch.arange(policy["chunk_size"])

        def __getitem__(self, index: int) -> dict[str, Any]:
            last = self.ends[self.numbers[index]] - 1
            wanted = index + self.ahead
            item: dict[str, Any] = {name: self.items[name][index] for name in (STATE, ENVIRONMENT)}
            item |= {name: picture[index].permute(2, 0, 1) / 255 for name, picture in self.pictures.items()}
            item |= {"action": self.items["action"][wanted.clamp(max=last)], "action_is_pad": wanted > last}
            return {**item, "task": ""}

    def in_memory(config: Any) -> InMemory:
        made = InMemory(NAME, root=dataset)
        made.load_items()
        return made

    lerobot_train.make_dataset = in_memory
    torch.set_num_threads(1)
    accelerator = options.pop("accelerator", None)
    config = TrainPipelineConfig(
        dataset=DatasetConfig(repo_id=NAME, root=str(dataset)),
        policy=ACTConfig(device="cpu", push_to_hub=False, **policy),
        output_dir=out,
        seed=seed,
        num_workers=0,
        batch_size=batch,
        steps=steps,
        eval_freq=0,
        save_freq=steps,
        log_freq=100,
        wandb=WandBConfig(enable=False),
        **options,
    )
    lerobot_train.train(config, accelerator)


def success_of_lerobot(folder: Path, task: str, seed: int, episodes: Sequence[int]) -> np.ndarray:
    """Run episodes by LeRobot's own loop (`lerobot_eval.rollout`); return which succeed, (E,) bool."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.envs.utils import preprocess_observation
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    config = PreTrainedConfig.from_pretrained(folder)
    before, after = make_pre_post_processors(config, folder)
    policy = get_policy_class(config.type).from_pretrained(folder)
    policy.reset()
    world = make(task)
    world.reset(seed, episodes)
    while not world.done.all():
        seen = {"agent_pos": world.observation, "environment_state": world.goal.astype(np.float32)}
        batch = before(preprocess_observation(seen))
        with torch.inference_mode():
            action = policy.select_action(batch)
        world.step(after(action).numpy())
    return np.asarray(world.success).copy()


def success_of_ours(
    target: Path, task: str, steps: int, seed: int, episodes: Sequence[int]
) -> tuple[np.ndarray, float]:
    """Run episodes by plans of our target, a new one every so many steps.

    Returns:
        Which succeed, (E,) bool; how many requests an episode took.
    """
    world = make(task)
    spec = world.spec
    robot = AbsentPolicy(spec.observation_dim, 0, spec.action_dim)
    controller = Controller(robot, ControllerConfig(ThresholdedGate("age", steps - 1.0)), "plan")
    verifier = TargetVerifier(load_policy(target, "torch"), "replace")
    log = rollout(world, controller, verifier, seed, episodes)
    requested = float((log.transmitted & log.active).sum()) / len(episodes)
    return np.asarray(world.success).copy(), requested


def main(
    task: Annotated[str, typer.Argument(help="A task such as metaworld.")],
    work: Annotated[Path, typer.Argument(help="Folder with demos.safetensors, for all that is made.")],
    chunk: Annotated[int, typer.Option(help="Actions of a plan.")] = 16,
    steps: Annotated[int, typer.Option(help="Of training.")] = 4000,
    batch: Annotated[int, typer.Option(help="Of training.")] = 64,
    episodes: Annotated[int, typer.Option(help="To evaluate.")] = 60,
    seed: Annotated[int, typer.Option(help="Of the episodes that are evaluated.")] = 11,
) -> None:
    """Train an ACT by LeRobot on our demonstrations; compare LeRobot's evaluation with ours."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no access to LeRobot's server
    import_lerobot()
    dataset, trained = work / "dataset", work / "training"
    data = Trajectories.load(work / "demos.safetensors")
    if not dataset.exists():
        spec = make(task).spec
        save_dataset(dataset, data, spec.control_rate_hz, len(spec.joint_names), task)
    if not trained.exists():
        train(dataset, trained, {"chunk_size": chunk, "n_action_steps": chunk, **SMALL}, steps, batch, seed=0)
    folder = trained / "checkpoints/last/pretrained_model"
    target = work / "target.yaml"
    target.write_text(yaml.safe_dump(description(folder.relative_to(work), task), sort_keys=False))
    numbers = evaluation_episodes(episodes)
    theirs = success_of_lerobot(folder, task, seed, numbers)
    ours, requested = success_of_ours(target, task, chunk, seed, numbers)
    found = {
        "demonstrations": len(data),
        "success, LeRobot's loop": float(theirs.mean()),
        "success, our target": float(ours.mean()),
        "episodes that end alike": float((theirs == ours).mean()),
        "requests an episode": requested,
    }
    print(json.dumps(found, indent=1))
    (work / "figures.json").write_text(json.dumps(found, indent=1) + "\n")
    if abs(theirs.mean() - ours.mean()) > WITHIN:
        raise SystemExit(f"error: success differs by more than {WITHIN}")


if __name__ == "__main__":
    typer.run(main)
