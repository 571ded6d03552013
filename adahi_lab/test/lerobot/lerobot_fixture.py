"""Writes the fixture of the tests of our readers of LeRobot's files.

    export PYTHONPATH=$(.venv/bin/python -m adahi_lab.peers.environments lerobot_grpc)
    .venv/bin/python adahi_lab/test/lerobot/lerobot_fixture.py test/data/lerobot

LeRobot itself writes a small dataset and two VQ-BeTs with drawn weights, and runs them. The tests compare
our readers with its files and answers, and need no LeRobot. The weights of the ResNet are left out: they are
large, and drawn again from their names.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from safetensors.torch import load_file, save_file

CAMERA = "observation.images.top"
FRAME = (70, 53)  # rows, columns; the crop leaves an odd rest
WINDOWS = 4
STEPS = 3  # H
LENGTHS = (7, 5, 8)  # steps of the dataset's episodes
BACKBONE = "vqbet.rgb_encoder.backbone."
SHAPES = "backbone.json"
SMALL = {
    "n_obs_steps": STEPS,
    "n_action_pred_token": 2,
    "action_chunk_size": 2,
    "spatial_softmax_num_keypoints": 3,
    "vqvae_n_embed": 4,
    "vqvae_embedding_dim": 6,
    "vqvae_enc_hidden_dim": 8,
    "gpt_block_size": 12,
    "gpt_input_dim": 10,
    "gpt_output_dim": 9,
    "gpt_n_layer": 2,
    "gpt_n_head": 2,
    "gpt_hidden_dim": 12,
}
ALL_MEAN_STD = dict.fromkeys(("VISUAL", "STATE", "ACTION"), "MEAN_STD")
VARIANTS: dict[str, dict[str, Any]] = {
    "parallel": {"crop_shape": (64, 48)},  # LeRobot's defaults except the sizes
    "sequential": {
        "sequentially_select": True,
        "bet_softmax_temperature": 0.5,
        "use_group_norm": False,
        "crop_shape": None,
        "normalization_mapping": ALL_MEAN_STD,
    },
}


def draws(name: str) -> np.random.RandomState:
    """Return the generator of what has a name; its numbers are the same in every version of numpy."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Draw a weight so that a network of such weights says something."""
    values = draws(name).standard_normal(shape)
    if name.endswith("running_var"):
        values = np.exp(0.1 * values)
    elif len(shape) <= 1:
        shown = name.endswith(("weight", "rgb_encoder.out.bias"))  # of a norm; positive, for the ReLU
        values = float(shown) + 0.1 * values
    elif "embed" not in name and "action_token" not in name:
        values *= 1.5 / np.sqrt(np.prod(shape[1:]))
    return torch.from_numpy(np.asarray(values, dtype=np.float32))


def frames(count: int) -> np.ndarray:
    """Draw images (count, H, W, 3) uint8."""
    return draws("frames").randint(0, 256, (count, *FRAME, 3)).astype(np.uint8)


def completed(fixture: Path, folder: Path) -> Path:
    """Copy a policy of the fixture, and give it back the weights that were left out."""
    shutil.copytree(fixture, folder)
    tensors = load_file(folder / "model.safetensors")
    for name, shape in json.loads((folder / SHAPES).read_text()).items():
        tensors[name] = (
            weight(name, tuple(shape)) if shape else torch.tensor(1)
        )  # batches that a norm has seen
    save_file(tensors, folder / "model.safetensors")
    return folder


def import_torchvision() -> None:
    """Import what LeRobot needs, also where that was built for another torch than this one."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:  # built for CUDA, with a CPU torch: it lacks these two unused operators
        for operator in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )


def write_dataset(folder: Path) -> Any:
    """Let LeRobot record a dataset; return it. One entry of state and action never moves."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    features = {
        "observation.state": {"dtype": "float32", "shape": (4,), "names": None},
        "observation.environment_state": {"dtype": "float32", "shape": (2,), "names": None},
        CAMERA: {"dtype": "image", "shape": (*FRAME, 3), "names": ["height", "width", "channels"]},
        "action": {"dtype": "float32", "shape": (3,), "names": None},
    }
    dataset = LeRobotDataset.create(
        "adahi/conformance", fps=10, features=features, root=folder, use_videos=False
    )
    dataset.meta.info["data_files_size_in_mb"] = 0.005  # so that there is more than one file
    draw = draws("dataset")
    for length in LENGTHS:
        for _ in range(length):
            state, action = draw.uniform(-2, 3, 4), draw.uniform(0, 5, 3)
            state[3], action[2] = 0.25, -1.5
            shade = draw.randint(0, 256, 3).astype(np.uint8)
            dataset.add_frame(
                {
                    "task": "draw",
                    "observation.state": state.astype(np.float32),
                    "observation.environment_state": draw.uniform(0, 1, 2).astype(np.float32),
                    CAMERA: np.broadcast_to(shade, (*FRAME, 3)).copy(),
                    "action": action.astype(np.float32),
                }
            )
        dataset.save_episode()
    dataset.finalize()
    return LeRobotDataset("adahi/conformance", root=folder)


def write_policy(folder: Path, variant: str, stats: Any, chunks: np.ndarray) -> None:
    """Let LeRobot write a policy with drawn weights; its codes are some of the chunks, as if learned."""
    from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
    from lerobot.policies.vqbet.configuration_vqbet import VQBeTConfig
    from lerobot.policies.vqbet.modeling_vqbet import VQBeTPolicy
    from lerobot.policies.vqbet.processor_vqbet import make_vqbet_pre_post_processors

    options = dict(VARIANTS[variant])
    if "normalization_mapping" in options:
        options["normalization_mapping"] = {
            kind: NormalizationMode(mode) for kind, mode in options["normalization_mapping"].items()
        }
    config = VQBeTConfig(
        input_features={
            "observation.state": PolicyFeature(FeatureType.STATE, (4,)),
            CAMERA: PolicyFeature(FeatureType.VISUAL, (3, *FRAME)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (3,))},
        device="cpu",
        push_to_hub=False,
        **SMALL,
        **options,
    )
    policy = VQBeTPolicy(config)
    tensors = policy.state_dict()
    for name, value in tensors.items():
        fixed = ("pos_grid", "attn.bias", "initted", "cluster_size")
        if value.is_floating_point() and not name.endswith(fixed):
            tensors[name] = weight(name, tuple(value.shape))
        elif name.endswith("num_batches_tracked"):
            tensors[name] = torch.tensor(1)
    tensors["vqbet.action_head.vqvae_model.discretized"] = torch.tensor(True)
    policy.load_state_dict(tensors)
    pipelines = make_vqbet_pre_post_processors(config, stats)
    vq, count = policy.vqbet.action_head.vqvae_model, config.vqvae_n_embed
    with torch.no_grad():
        latents = vq.encoder(normalized(pipelines[0], chunks).flatten(1))
        vq.vq_layer.layers[0].codebook = latents[:count]
        vq.vq_layer.layers[1].codebook = (latents[count : 2 * count] - latents[:count]) / 2
    policy.save_pretrained(folder)
    for pipeline in pipelines:
        pipeline.save_pretrained(folder)


def normalized(before: Any, chunks: np.ndarray) -> torch.Tensor:
    """Return chunks (C, W, A) of actions as LeRobot scales them."""
    observation = torch.zeros(1, 4)  # it scales actions only with an observation
    scaled: torch.Tensor = before({"observation.state": observation, "action": torch.from_numpy(chunks)})[
        "action"
    ]
    return scaled


@torch.no_grad()
def answers(
    folder: Path, states: np.ndarray, images: np.ndarray, chunks: np.ndarray
) -> dict[str, torch.Tensor]:
    """Ask LeRobot.

    Args:
        folder: of the policy.
        states: (B, H, S).
        images: (B, H, rows, columns, 3) uint8.
        chunks: (C, W, A) of actions.

    Returns:
        `features` (B, H, F); `logits` (B, N, K) of the distributions that it draws from, N being 1 where one
        code is drawn after the other; `codes` (B, 2) that it drew and the `actions` (B, W, A) that they mean;
        `chunk_codes` (C, 2), as it encodes the chunks.
    """
    from lerobot.policies.vqbet.modeling_vqbet import VQBeTPolicy
    from lerobot.processor import PolicyProcessorPipeline
    from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

    policy = VQBeTPolicy.from_pretrained(folder)
    before = PolicyProcessorPipeline.from_pretrained(folder, config_filename="policy_preprocessor.json")
    after = PolicyProcessorPipeline.from_pretrained(
        folder,
        config_filename="policy_postprocessor.json",
        to_transition=policy_action_to_transition,
        to_output=transition_to_policy_action,
    )
    config, model = policy.config, policy.vqbet
    pixels = torch.from_numpy(images).permute(0, 1, 4, 2, 3).float() / 255
    batch = before({"observation.state": torch.from_numpy(states), CAMERA: pixels})
    batch["observation.images"] = torch.stack([batch[key] for key in config.image_features], dim=-4)
    seen: dict[str, Any] = {}
    model.action_head.register_forward_hook(
        lambda head, given, output: seen.update(given=given[0], output=output)
    )
    torch.manual_seed(0)
    actions = model({key: batch[key] for key in ("observation.state", "observation.images")}, rollout=True)
    rows = states.shape[0]
    newest = seen["given"][:, STEPS - 1]
    head = model.action_head
    if config.sequentially_select:
        first = head.map_to_cbet_preds_primary_bin(newest) / config.bet_softmax_temperature
        pairs = []
        for code in range(config.vqvae_n_embed):
            chosen = torch.nn.functional.one_hot(torch.full((rows,), code), config.vqvae_n_embed)
            second = head.map_to_cbet_preds_secondary_bin(torch.cat((newest, chosen), dim=1))
            second = (second / config.bet_softmax_temperature).log_softmax(-1)
            pairs.append(first.log_softmax(-1)[:, [code]] + second)
        logits = torch.cat(pairs, dim=1)[:, None]
    else:
        output = seen["output"]["cbet_logits"].unflatten(0, (rows, -1))
        logits = output[:, STEPS - 1] / config.bet_softmax_temperature
    return {
        "features": model.rgb_encoder(batch["observation.images"].flatten(0, 2)).unflatten(0, (rows, STEPS)),
        "logits": logits,
        "codes": seen["output"]["sampled_centers"].unflatten(0, (rows, -1))[:, STEPS - 1],
        "actions": after(actions),
        "chunk_codes": head.vqvae_model.get_code(normalized(before, chunks))[1],
    }


def given(dataset: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states (B, H, 4), images (B, H, rows, columns, 3) and chunks of actions (C, 2, 3)."""
    rows = [dataset[row] for row in range(WINDOWS + STEPS - 1)]
    states = np.stack([row["observation.state"].numpy() for row in rows])
    windows = np.stack([states[start : start + STEPS] for start in range(WINDOWS)])
    actions = np.stack([dataset[row]["action"].numpy() for row in range(len(dataset))])
    chunks = np.stack([actions[:-1], actions[1:]], axis=1)
    return windows, frames(WINDOWS * STEPS).reshape(WINDOWS, STEPS, *FRAME, 3), chunks


def without_backbone(folder: Path) -> None:
    """Take the ResNet's weights out of a policy, and note their shapes."""
    tensors = load_file(folder / "model.safetensors")
    shapes = {name: list(value.shape) for name, value in tensors.items() if name.startswith(BACKBONE)}
    save_file(
        {name: value for name, value in tensors.items() if name not in shapes}, folder / "model.safetensors"
    )
    (folder / SHAPES).write_text(json.dumps(shapes) + "\n")


def main(out: Annotated[Path, typer.Argument(help="Folder of the fixture.")]) -> None:
    """Write LeRobot's files and answers."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no access to LeRobot's server
    torch.set_num_threads(1)
    import_torchvision()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        dataset = write_dataset(made / "dataset")
        states, images, chunks = given(dataset)
        for variant in VARIANTS:
            folder = made / variant
            write_policy(folder, variant, dataset.meta.stats, chunks)
            asked = answers(folder, states, images, chunks)
            without_backbone(folder)
            kept = {name: value.contiguous() for name, value in asked.items()}
            kept |= {"states": torch.from_numpy(states), "chunks": torch.from_numpy(chunks)}
            save_file(kept, folder / "answers.safetensors")
        shutil.copytree(made, out, dirs_exist_ok=True)


if __name__ == "__main__":
    typer.run(main)
