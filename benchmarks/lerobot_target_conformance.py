# SPDX-License-Identifier: Apache-2.0
"""Compares plans of the target of kind `lerobot` with LeRobot's, for the same policy and observations.

    export PYTHONPATH=$PWD:$(.venv/bin/python -m adahi_lab.peers.environments lerobot_grpc)
    .venv/bin/python benchmarks/lerobot_target_conformance.py [--only act] [--only diffusion]

LeRobot writes small policies of drawn weights, and runs them: each robot by itself, from its first
observation, by `select_action` where the policy remembers observations, else by `predict_action_chunk`.
Prints the largest difference of our plans, for robots side by side, in units of the action; fails where one
is not below `LIMIT`.

SmolVLA needs more packages, as `lerobot[smolvla]` has them; no server is needed, because its language
model and tokenizer are made here, from drawn weights and a few words:

    pip install --no-deps --target PACKAGES transformers==4.57.1 tokenizers==0.22.1 regex num2words docopt
    export PYTHONPATH=$PYTHONPATH:PACKAGES
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Sampling
from adahi_ros.policies.remote.lerobot_folder import import_lerobot
from adahi_ros.policies.remote.lerobot_target import SEEDS

LIMIT = 1e-4
ROBOTS = 3
ACTIONS = 2
STATE, ENVIRONMENT, CAMERA = "observation.state", "observation.environment_state", "observation.images.top"
SIZES = {STATE: 4, ENVIRONMENT: 3}
FRAME = (32, 40)  # rows, columns
WORDS = ("pick", "up", "the", "red", "cube", "open", "door", "\n")
SENTENCES = ("pick up the red cube", "open the door", "pick up the door")
SMALL: dict[str, dict[str, Any]] = {
    "act": {
        "chunk_size": 8,
        "n_action_steps": 8,
        "dim_model": 32,
        "n_heads": 2,
        "dim_feedforward": 64,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
        "use_vae": False,
        "pretrained_backbone_weights": None,
    },
    "diffusion": {
        "horizon": 8,
        "n_action_steps": 4,
        "pretrained_backbone_weights": None,
        "down_dims": (16, 32),
        "diffusion_step_embed_dim": 16,
        "n_groups": 4,
        "num_train_timesteps": 10,
        "crop_shape": (28, 36),
        "spatial_softmax_num_keypoints": 4,
    },
    "smolvla": {
        "chunk_size": 6,
        "n_action_steps": 6,
        "max_state_dim": 8,
        "max_action_dim": 4,
        "resize_imgs_with_padding": (32, 32),
        "num_vlm_layers": 2,
        "num_steps": 4,
        "tokenizer_max_length": 8,
        "pad_language_to": "max_length",
    },
}


def write_vision_language_model(folder: Path) -> None:
    """Write the configuration, the tokenizer and the processor of a SmolVLM of a few weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        PreTrainedTokenizerFast,
        SmolVLMConfig,
        SmolVLMImageProcessor,
        SmolVLMProcessor,
        SmolVLMVideoProcessor,
    )

    special = ("<pad>", "<unk>", "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    vocabulary = {word: index for index, word in enumerate((*special, *WORDS))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        unk_token="<unk>",
        extra_special_tokens={
            "image_token": "<image>",
            "fake_image_token": "<fake_token_around_image>",
            "global_image_token": "<global-img>",
            "end_of_utterance_token": "<end_of_utterance>",
        },
    )
    config = SmolVLMConfig(
        text_config={
            "model_type": "llama",
            "vocab_size": len(vocabulary),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "pad_token_id": 0,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 8,
        },
        scale_factor=2,
        image_token_id=vocabulary["<image>"],
        pad_token_id=0,
    )
    config.save_pretrained(folder)
    SmolVLMProcessor(
        SmolVLMImageProcessor(), tokenizer, SmolVLMVideoProcessor(), image_seq_len=4
    ).save_pretrained(folder)


def write_policy(folder: Path, kind: str, made: Path) -> None:
    """Let LeRobot write a policy of drawn weights and its processors."""
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.factory import get_policy_class, make_policy_config, make_pre_post_processors

    torch.manual_seed(0)
    options = dict(SMALL[kind])
    if kind == "smolvla":
        write_vision_language_model(made / "vlm")
        options["vlm_model_name"] = str(made / "vlm")
    states = (STATE,) if kind == "smolvla" else (STATE, ENVIRONMENT)
    types = {STATE: FeatureType.STATE, ENVIRONMENT: FeatureType.ENV}
    inputs = {name: PolicyFeature(types[name], (SIZES[name],)) for name in states}
    inputs[CAMERA] = PolicyFeature(FeatureType.VISUAL, (3, *FRAME))
    outputs = {"action": PolicyFeature(FeatureType.ACTION, (ACTIONS,))}
    config = make_policy_config(
        kind, input_features=inputs, output_features=outputs, device="cpu", push_to_hub=False, **options
    )
    stats = {
        name: {
            "mean": torch.randn(n),
            "std": torch.rand(n) + 0.5,
            "min": -1 - torch.rand(n),
            "max": 1 + torch.rand(n),
        }
        for name, n in {**SIZES, "action": ACTIONS}.items()
    }
    of_pixels = {"mean": 0.5, "std": 0.25, "min": 0.0, "max": 1.0}
    stats[CAMERA] = {name: torch.full((3, 1, 1), value) for name, value in of_pixels.items()}
    policy = get_policy_class(kind)(config)
    for part in (policy, *make_pre_post_processors(config, dataset_stats=stats)):
        part.save_pretrained(folder)


def observed(states: tuple[str, ...], history: int, instructed: bool) -> Observations:
    """Draw what some robots observe."""
    draw = np.random.default_rng(1)
    features = {name: draw.normal(size=(ROBOTS, history, SIZES[name])).astype(np.float32) for name in states}
    frames = draw.integers(0, 256, (ROBOTS, history, *FRAME, 3), dtype=np.uint8)
    return Observations(features, {}, SENTENCES if instructed else (), {CAMERA: frames})


def answer(
    folder: Path, kind: str, seen: Observations, row: int, draw: float, committed: np.ndarray | None = None
) -> np.ndarray:
    """Ask LeRobot about one robot, (T, A): by the loop of its evaluation, a new policy for each robot."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.envs.utils import preprocess_observation
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors
    from lerobot.policies.rtc.configuration_rtc import RTCConfig

    config = PreTrainedConfig.from_pretrained(folder)
    if committed is not None:
        config.rtc_config = RTCConfig(enabled=True)
    before, after = make_pre_post_processors(config, folder)
    policy = get_policy_class(kind).from_pretrained(folder, config=config)
    policy.reset()
    steps = next(iter(seen.features.values())).shape[1]
    for step in range(steps):
        names = {STATE: "agent_pos", ENVIRONMENT: "environment_state"}
        now = {names[name]: each[row : row + 1, step] for name, each in seen.features.items()}
        batch = preprocess_observation({**now, "pixels": {"top": seen.images[CAMERA][row : row + 1, step]}})
        batch["task"] = [seen.instructions[row] if seen.instructions else ""]
        if committed is not None:
            batch["action"] = torch.from_numpy(committed[None])
        batch = before(batch)
        if kind == "diffusion" and step < steps - 1:  # it plans at its first step, which is not compared
            policy.select_action(batch)
            policy._queues["action"].clear()
    known = batch.pop("action")
    torch.manual_seed(int(draw * SEEDS))
    if kind == "diffusion":
        first = policy.select_action(batch)
        plan = torch.stack([first, *policy._queues["action"]], dim=1)
    elif kind == "smolvla":
        noise = torch.randn(1, config.chunk_size, config.max_action_dim)
        guided = (
            {} if committed is None else {"prev_chunk_left_over": known, "inference_delay": len(committed)}
        )
        plan = policy.predict_action_chunk(batch, noise=noise, **guided)
    else:
        plan = policy.predict_action_chunk(batch)
    return np.asarray(after(plan)[0])


def distances(folder: Path, kind: str) -> dict[str, float]:
    """Return the largest difference of our plans from LeRobot's."""
    (folder.parent / f"{kind}.yaml").write_text(f"kind: lerobot\nfolder: {folder.name}\ndevice: cpu\n")
    target = load_policy(folder.parent / f"{kind}.yaml", "torch")
    signature = target.signature
    states = tuple(each.name for each in signature.features)
    seen = observed(states, signature.history, signature.instruction)
    draws = np.random.default_rng(2).random((ROBOTS, 1))
    ours = target.propose(seen, draws).actions
    theirs = np.stack([answer(folder, kind, seen, row, draws[row, 0]) for row in range(ROBOTS)])
    found = {"plans": float(np.abs(ours - theirs).max())}
    if kind == "smolvla":
        committed = np.random.default_rng(3).normal(size=(ROBOTS, 3, ACTIONS)).astype(np.float32)
        guided = target.propose(seen, draws, Sampling(committed=committed)).actions
        theirs = np.stack(
            [answer(folder, kind, seen, row, draws[row, 0], committed[row]) for row in range(ROBOTS)]
        )
        found["plans from what is committed"] = float(np.abs(guided - theirs).max())
        assert np.abs(guided - ours).max() > 100 * LIMIT  # otherwise the comparison is meaningless
    return found


def main(
    only: Annotated[list[str] | None, typer.Option(help="Types. Default: all that can be run here.")] = None,
) -> None:
    """Compare our target's plans with LeRobot's."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no access to LeRobot's server
    torch.set_num_threads(1)
    import_lerobot()
    kinds = only or [*SMALL][: None if importlib.util.find_spec("transformers") else -1]
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            write_policy(Path(scratch) / kind, kind, Path(scratch))
            for name, distance in distances(Path(scratch) / kind, kind).items():
                found[f"{kind}: {name}"] = distance
    for name, distance in found.items():
        print(f"{name}: {distance:.2g}")
    if max(found.values()) >= LIMIT:
        raise SystemExit(f"error: {max(found.values()):.2g} from LeRobot, must be below {LIMIT:g}")


if __name__ == "__main__":
    typer.run(main)
