# SPDX-License-Identifier: Apache-2.0
"""LIBERO-Goal from images, once: demonstrations, an ACT that LeRobot trains, and its episodes.

    python -m adahi_ros.lab.peers.environments lerobot_grpc      # prints folders
    python -m adahi_ros.lab.peers.environments vla_eval_judge
    export PYTHONPATH=$PWD:FOLDER:FOLDER
    python benchmarks/libero_images.py runs/images --demonstrations 100 --steps 20000 --episodes 50

The library draws agent view and hand camera at 128 px, offscreen. The expert's demonstrations start in the
benchmark's regions, and become a LeRobotDataset by LeRobot's own writer. The ACT reads both images, the
robot's joints, and the instruction's vector. Its episodes start in the benchmark's own states. Whatever
exists is kept.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import mujoco
import numpy as np
import torch
import typer

from adahi_ros.lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_ros.lab.tasks.libero.convert import TASKS, library_of, placed
from adahi_ros.lab.tasks.libero.expert import LiberoGoalExpert
from adahi_ros.lab.tasks.libero.goal import LONGEST, SETTLING_STEPS, STILL
from adahi_ros.lab.tasks.libero.skills import Scene
from adahi_ros.lab.tasks.libero.world import PERIOD_S, ROBOT, load_world, state_names
from adahi_ros.policies.remote.lerobot_target import import_lerobot

NAME = "adahi/libero_images"
PIXELS = 128
CAMERAS = {
    "observation.images.front": "agentview_image",
    "observation.images.hand": "robot0_eye_in_hand_image",
}
STATE, INSTRUCTION, ACTION = "observation.state", "observation.environment_state", "action"
FEATURES = {
    **{
        name: {"dtype": "image", "shape": (PIXELS, PIXELS, 3), "names": ["height", "width", "channels"]}
        for name in CAMERAS
    },
    STATE: {"dtype": "float32", "shape": (ROBOT,), "names": None},
    INSTRUCTION: {"dtype": "float32", "shape": (INSTRUCTION_DIM,), "names": None},
    ACTION: {"dtype": "float32", "shape": (len(STILL),), "names": None},
}


def opened(number: int) -> tuple[Any, Any]:
    """Return the library's environment of a task with both cameras, and its suite."""
    from libero.libero.envs import OffScreenRenderEnv

    return library_of(number, OffScreenRenderEnv, camera_heights=PIXELS, camera_widths=PIXELS)


def seen(drawn: dict[str, np.ndarray], library: Any, sentence: str) -> dict[str, np.ndarray]:
    """Return the inputs of a policy for what the library has drawn."""
    pictures = {name: np.ascontiguousarray(drawn[key][::-1]) for name, key in CAMERAS.items()}
    joints = library.sim.data.qpos[:ROBOT].astype(np.float32)
    return {**pictures, STATE: joints, INSTRUCTION: embedded(sentence).astype(np.float32)}


def demonstrated(library: Any, name: str, sentence: str) -> list[dict[str, np.ndarray]]:
    """Return the steps of the expert from a start in the benchmark's regions; none where it fails."""
    world, expert = load_world(), LiberoGoalExpert()
    names = state_names(world.scene)
    library.reset()
    for _ in range(SETTLING_STEPS):
        drawn = library.step(STILL)[0]
    steps = []
    for _ in range(LONGEST):
        world.load(placed(library))
        mujoco.mj_kinematics(world.model, world.data)
        action = expert.action(name, Scene(names, world.data.qpos[:ROBOT], world.look()))
        steps.append({**seen(drawn, library, sentence), ACTION: action.astype(np.float32)})
        drawn, _, done, _ = library.step(action)
        if done:
            return steps
    return []


def record(folder: Path, demonstrations: int) -> dict[str, float]:
    """Write a LeRobotDataset; return how many steps it has, and were drawn a second."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset.create(NAME, round(1.0 / PERIOD_S), FEATURES, root=folder, use_videos=False)
    before, drawing_s, steps = time.process_time(), 0.0, 0
    for number in range(min(TASKS, demonstrations)):
        library, suite = opened(number)
        task = suite.tasks[number]
        before = time.process_time()
        for _ in range(number, demonstrations, TASKS):
            while not (frames := demonstrated(library, task.name, task.language)):
                pass
            for frame in frames:
                dataset.add_frame({**frame, "task": task.language})
            dataset.save_episode()
            steps += len(frames)
        drawing_s += time.process_time() - before
        library.close()
    dataset.finalize()
    return {
        "demonstrations": demonstrations,
        "steps": steps,
        "steps a second of processor": steps / drawing_s,
    }


def train(dataset: Path, out: Path, steps: int, batch: int) -> None:
    """Let LeRobot's trainer train an ACT without pretrained weights; none can be downloaded here."""
    from lerobot.configs.default import DatasetConfig, WandBConfig
    from lerobot.configs.train import TrainPipelineConfig
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.scripts import lerobot_train

    torch.set_num_threads(1)
    policy = ACTConfig(
        chunk_size=16,
        n_action_steps=16,
        device="cpu",
        push_to_hub=False,
        pretrained_backbone_weights=None,
        dim_model=128,
        n_heads=4,
        dim_feedforward=512,
        n_encoder_layers=3,
        n_decoder_layers=1,
        use_vae=False,
        optimizer_lr=1e-4,
    )
    lerobot_train.train(
        TrainPipelineConfig(
            dataset=DatasetConfig(repo_id=NAME, root=str(dataset)),
            policy=policy,
            output_dir=out,
            num_workers=0,
            batch_size=batch,
            steps=steps,
            eval_freq=0,
            save_freq=steps,
            log_freq=10,
            wandb=WandBConfig(enable=False),
        )
    )


def success(folder: Path, episodes: int) -> float:
    """Return the success of LeRobot's loop of `select_action` from the benchmark's states."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    config = PreTrainedConfig.from_pretrained(folder)
    before, after = make_pre_post_processors(config, folder)
    policy = get_policy_class(config.type).from_pretrained(folder)
    met = 0
    for number in range(min(TASKS, episodes)):
        library, suite = opened(number)
        for state in suite.get_task_init_states(number)[: len(range(number, episodes, TASKS))]:
            library.reset()
            library.set_init_state(state)
            policy.reset()
            for _ in range(SETTLING_STEPS):
                drawn = library.step(STILL)[0]
            for _ in range(LONGEST):
                inputs = seen(drawn, library, suite.tasks[number].language)
                tensors = {
                    name: torch.from_numpy(each).permute(2, 0, 1) / 255
                    if name in CAMERAS
                    else torch.from_numpy(each)
                    for name, each in inputs.items()
                }
                with torch.inference_mode():
                    action = after(policy.select_action(before(tensors)))
                drawn, _, done, _ = library.step(action[0].numpy())
                if done:
                    break
            met += bool(done)
        library.close()
    return met / episodes


def main(
    work: Annotated[Path, typer.Argument(help="Folder for all that is made.")],
    demonstrations: Annotated[int, typer.Option(min=1, help="Of all tasks together.")] = 100,
    steps: Annotated[int, typer.Option(min=1, help="Of training.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, help="Of training.")] = 8,
    episodes: Annotated[int, typer.Option(min=1, help="To evaluate.")] = 50,
) -> None:
    """Record, train and evaluate; print the figures."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no access to LeRobot's server
    import_lerobot()
    np.random.seed(0)
    dataset, trained, figures = work / "dataset", work / "training", work / "figures.json"
    found: dict[str, float] = json.loads(figures.read_text()) if figures.exists() else {}
    if not dataset.exists():
        work.mkdir(parents=True, exist_ok=True)
        found |= record(dataset, demonstrations)
        figures.write_text(json.dumps(found, indent=1) + "\n")
    if not trained.exists():
        began_s = time.process_time()
        train(dataset, trained, steps, batch)
        found |= {
            "training steps": steps,
            "processor seconds a training step": (time.process_time() - began_s) / steps,
        }
        figures.write_text(json.dumps(found, indent=1) + "\n")
    found |= {
        "episodes": episodes,
        "success": success(trained / "checkpoints/last/pretrained_model", episodes),
    }
    figures.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    typer.run(main)
