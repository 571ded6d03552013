# SPDX-License-Identifier: Apache-2.0
"""LIBERO-Goal from images, once: demonstrations, an ACT that LeRobot trains, and its plans, also late ones.

    python -m adahi_ros.lab.peers.environments lerobot_grpc      # prints folders
    python -m adahi_ros.lab.peers.environments vla_eval_judge
    export PYTHONPATH=$PWD:FOLDER:FOLDER
    python benchmarks/libero_images.py runs/images

The library draws agent view and hand camera at 128 px, offscreen. The expert's demonstrations start in the
benchmark's regions, and become a LeRobotDataset by LeRobot's own writer. The ACT reads both images, the
robot's joints, and the instruction's vector. Its episodes start in the benchmark's own states. Whatever
exists is kept.

A processor draws and trains slowly. So there are no shadows, reflections or multisampling, which take three
quarters of the time. The backbone has one block a stage, where ResNet18 has two. It normalises groups of
channels, because LeRobot's frozen normalisation is for pretrained weights. Convolutions use bfloat16.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import mujoco
import numpy as np
import torch
import typer
from lerobot_act import train
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from adahi_ros.cli.terminal import say
from adahi_ros.lab.evaluation.metrics import mcnemar
from adahi_ros.lab.reporting.tables import narrow_table
from adahi_ros.lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_ros.lab.tasks.libero.convert import TASKS, library_of, placed
from adahi_ros.lab.tasks.libero.expert import LiberoGoalExpert
from adahi_ros.lab.tasks.libero.goal import LONGEST, SETTLING_STEPS, STILL
from adahi_ros.lab.tasks.libero.skills import Scene
from adahi_ros.lab.tasks.libero.world import PERIOD_S, ROBOT, load_world, state_names
from adahi_ros.policies.remote.lerobot_target import import_lerobot

NAME = "adahi/libero_images"
CHUNK = 32
GROUPS = 8
RATE, WARMUP_STEPS = 4e-4, 100  # of learning
PIXELS = 128
NOISE = 0.1  # of the demonstrations' executed actions; the recorded ones have none
CAMERAS = {"observation.images.front": "agentview", "observation.images.hand": "robot0_eye_in_hand"}
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
NO_INSTRUCTION = np.zeros(INSTRUCTION_DIM, np.float32)


def opened(number: int) -> tuple[Any, Any]:
    """Return the library's environment of a task, which draws what is asked for, and its suite."""
    from libero.libero.envs import OffScreenRenderEnv

    library, suite = library_of(number, OffScreenRenderEnv, use_camera_obs=False)
    library.env.hard_reset = False  # else each reset builds the model again, for seconds
    drawer = library.sim._render_context_offscreen
    quality, size = library.sim.model._model.vis.quality, library.sim.model._model.vis.global_
    quality.offsamples = quality.shadowsize = 0
    size.offwidth = size.offheight = PIXELS
    drawer.con.free()
    drawer._set_mujoco_context_and_buffers()
    drawer.scn.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    drawer.scn.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
    return library, suite


def seen(library: Any, sentence: str) -> dict[str, np.ndarray]:
    """Return the inputs of a policy."""
    pictures = {
        name: np.ascontiguousarray(library.sim.render(PIXELS, PIXELS, camera_name=camera)[::-1])
        for name, camera in CAMERAS.items()
    }
    joints = library.sim.data.qpos[:ROBOT].astype(np.float32)
    return {**pictures, STATE: joints, INSTRUCTION: embedded(sentence).astype(np.float32)}


def demonstrated(library: Any, name: str, sentence: str) -> list[dict[str, np.ndarray]]:
    """Return the steps of the expert from a start in the benchmark's regions; none where it fails."""
    world, expert = load_world(), LiberoGoalExpert()
    names = state_names(world.scene)
    library.reset()
    for _ in range(SETTLING_STEPS):
        library.step(STILL)
    steps = []
    for _ in range(LONGEST):
        world.load(placed(library))
        mujoco.mj_kinematics(world.model, world.data)
        action = expert.action(name, Scene(names, world.data.qpos[:ROBOT], world.look()))
        steps.append({**seen(library, sentence), ACTION: action.astype(np.float32)})
        executed = np.clip(action + NOISE * np.random.standard_normal(action.shape), -1.0, 1.0)
        if library.step(executed)[2]:
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


def train_act(dataset: Path, out: Path, steps: int, batch: int) -> None:
    """Let LeRobot's trainer train an ACT without pretrained weights; none can be downloaded here."""
    from accelerate import Accelerator
    from lerobot.configs.types import NormalizationMode
    from lerobot.optim.optimizers import AdamWConfig
    from lerobot.optim.schedulers import CosineDecayWithWarmupSchedulerConfig

    policy = {
        "chunk_size": CHUNK,
        "n_action_steps": CHUNK,
        "vision_backbone": "resnet10",
        "pretrained_backbone_weights": None,
        "normalization_mapping": {
            "VISUAL": NormalizationMode.IDENTITY,  # 0 to 1; the front view hardly changes: its spread is tiny
            **dict.fromkeys(("STATE", "ENV", "ACTION"), NormalizationMode.MEAN_STD),
        },
        "dim_model": 128,
        "n_heads": 4,
        "dim_feedforward": 512,
        "n_encoder_layers": 3,
        "n_decoder_layers": 1,
        "use_vae": False,
        "dropout": 0.0,
    }
    train(
        dataset,
        out,
        policy,
        steps,
        batch,
        seed=0,
        use_policy_training_preset=False,
        optimizer=AdamWConfig(lr=RATE, weight_decay=1e-4),
        scheduler=CosineDecayWithWarmupSchedulerConfig(WARMUP_STEPS, steps, RATE, RATE / 30),
        accelerator=Accelerator(cpu=True, mixed_precision="bf16", step_scheduler_with_optimizer=False),
    )


def lighten_backbones() -> None:
    """Let LeRobot's ACT have a backbone `resnet10`, and normalise groups of channels in any."""
    import torchvision
    from lerobot.policies.act import modeling_act
    from torchvision.models.resnet import BasicBlock, ResNet

    def resnet10(weights: None, replace_stride_with_dilation: list[bool], norm_layer: Any) -> ResNet:
        return ResNet(BasicBlock, [1, 1, 1, 1], norm_layer=norm_layer)

    torchvision.models.resnet10 = resnet10
    modeling_act.FrozenBatchNorm2d = partial(torch.nn.GroupNorm, GROUPS)


Planner = Callable[[dict[str, np.ndarray]], np.ndarray]
Results = dict[str, dict[str, bool]]


def planner_of(folder: Path) -> Planner:
    """Return what makes a plan (T, A) of inputs as `seen` returns them."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    config = PreTrainedConfig.from_pretrained(folder)
    before, after = make_pre_post_processors(config, folder)
    policy = get_policy_class(config.type).from_pretrained(folder)
    policy.eval()

    def plan(inputs: dict[str, np.ndarray]) -> np.ndarray:
        tensors = {name: torch.from_numpy(each) for name, each in inputs.items()}
        tensors |= {name: tensors[name].permute(2, 0, 1) / 255 for name in CAMERAS}
        with torch.inference_mode():
            actions = after(policy.predict_action_chunk(before(tensors)))
        return np.clip(actions[0].numpy(), -1.0, 1.0)

    return plan


@dataclass(frozen=True)
class Way:
    """How a robot executes plans.

    Attributes:
        every: steps between requests.
        late: steps from a request to its reply.
        instructed: whether the target receives the instruction.
    """

    every: int
    late: int = 0
    instructed: bool = True


WAYS = {
    "plan_1": Way(1),
    "plan_8": Way(8),
    "plan_16": Way(16),
    "plan_8, 10 steps late": Way(8, late=10),
    "plan_16, 10 steps late": Way(16, late=10),
    "plan_1, no instruction": Way(1, instructed=False),
}


def succeeds(library: Any, sentence: str, plan: Planner, way: Way, longest: int) -> bool:
    """Run an episode from where the library is; without a plan the hand stays, as before the first."""
    requested: deque[tuple[int, np.ndarray]] = deque()
    made, newest, gripper = 0, np.zeros((0, len(STILL))), STILL[-1:]
    for step in range(longest):
        if step % way.every == 0:
            inputs = seen(library, sentence)
            requested.append(
                (step, plan(inputs if way.instructed else {**inputs, INSTRUCTION: NO_INSTRUCTION}))
            )
        while requested and requested[0][0] + way.late <= step:
            made, newest = requested.popleft()
        age = step - made
        action = newest[age] if age < len(newest) else np.concatenate([STILL[:-1], gripper])
        gripper = action[-1:]
        if library.step(action)[2]:
            return True
    return False


def play(
    task: int, states: int, plan: Planner, longest: int, done: Results, on_state: Callable[[Results], None]
) -> None:
    """Run each way from the first of a task's own states, except those that are done.

    Args:
        task: number.
        states: how many.
        plan: of the ACT.
        longest: steps of an episode.
        done: success by way and episode; gets more.
        on_state: called with it after each state.
    """
    library, suite = opened(task)
    for index, state in enumerate(suite.get_task_init_states(task)[:states]):
        episode = str(task + TASKS * index)
        for name, way in WAYS.items():
            if episode in done.setdefault(name, {}):
                continue
            np.random.seed(int(episode))  # the library draws its furniture by it
            library.reset()
            library.set_init_state(state)
            for _ in range(SETTLING_STEPS):
                library.step(STILL)
            done[name][episode] = succeeds(library, suite.tasks[task].language, plan, way, longest)
        on_state(done)
    library.close()


def table(found: dict[str, Any]) -> Table:
    """Return the figures of success, with exact binomial intervals, and tests against the first row."""
    title = f"libero_goal from images, an ACT after {found['training steps']} steps of training"
    caption = (
        f"{found['demonstrations']} demonstrations of {found['steps']} steps together; batches of "
        f"{found['batch']}; episodes of at most {found['longest']} steps; p: as good as the first, McNemar"
    )
    made = narrow_table(title, ["method"], ["episodes", "success", "95 %", "p"], caption)
    first, *_ = (np.array(list(ended.values())) for ended in found["success"].values())
    for name, ended in found["success"].items():
        met, episodes, which = sum(ended.values()), len(ended), np.array(list(ended.values()))
        low, high = binomtest(met, episodes).proportion_ci(method="exact")
        paired = f"{mcnemar(which, first).p:.3f}"
        made.add_row(name, str(episodes), f"{met / episodes:.2f}", f"{low:.2f}-{high:.2f}", paired)
    return made


def main(
    work: Annotated[Path, typer.Argument(help="Folder for all that is made.")],
    demonstrations: Annotated[int, typer.Option(min=1, help="Of all tasks together.")] = 100,
    steps: Annotated[int, typer.Option(min=1, help="Of training.")] = 4_000,
    batch: Annotated[int, typer.Option(min=1, help="Of training.")] = 8,
    episodes: Annotated[int, typer.Option(min=1, help="To evaluate, for each method.")] = 20,
    longest: Annotated[int, typer.Option(min=1, help="Steps of an episode.")] = LONGEST,
) -> None:
    """Record, train and evaluate; print the figures."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no access to LeRobot's server
    import_lerobot()
    lighten_backbones()
    np.random.seed(0)
    dataset, trained, figures = work / "dataset", work / "training", work / "figures.json"
    found: dict[str, Any] = json.loads(figures.read_text()) if figures.exists() else {}

    def keep(**more: Any) -> None:
        found.update(more)
        figures.write_text(json.dumps(found, indent=1) + "\n")

    if not dataset.exists():
        work.mkdir(parents=True, exist_ok=True)
        keep(**record(dataset, demonstrations))
    if not trained.exists():
        began_s = time.process_time()
        train_act(dataset, trained, steps, batch)
        took_s = (time.process_time() - began_s) / steps
        keep(**{"training steps": steps, "batch": batch, "processor seconds a training step": took_s})
    plan = planner_of(trained / "checkpoints/last/pretrained_model")
    keep(longest=longest)
    for task in range(min(TASKS, episodes)):
        states = len(range(task, episodes, TASKS))
        play(task, states, plan, longest, found.get("success", {}), lambda done: keep(success=done))
        say(f"{task + 1} of {min(TASKS, episodes)} tasks")
    Console().print(table(found))
    print(json.dumps({name: each for name, each in found.items() if name != "success"}, indent=1))


if __name__ == "__main__":
    typer.run(main)
