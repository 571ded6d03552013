# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of LeRobot's VQ-BeT, read without LeRobot: sizes, weights, and how its numbers are scaled.

A folder holds `config.json` and `model.safetensors`. Since LeRobot 0.4 the scaling is in
`policy_preprocessor.json`, `policy_postprocessor.json` and the safetensors files that they name; before,
it was among the weights, as `normalize_inputs.*` and `unnormalize_outputs.*`.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from adahi_ros.core.checkpoint_files import CheckpointError, Shapes, check_count, check_shapes, read_shapes
from adahi_ros.policies.lerobot.lerobot_files import ACTION, CONFIG, mapping, read_config, read_tensors
from adahi_ros.policies.lerobot.lerobot_scaling import Processor, Scaling, among_weights, shaped
from adahi_ros.policies.vqbet.code_policy import MAX_COMBINATIONS
from adahi_ros.policies.vqbet.vqbet_checkpoint import LONGEST_WINDOW

WEIGHTS = "model.safetensors"
MODEL = "vqbet."
STATE = "observation.state"
VQ = "action_head.vqvae_model"
CODEBOOKS = 2  # LeRobot's residual VQ has always two
MOST_CODES = math.isqrt(MAX_COMBINATIONS)
LARGEST_TABLE = 1 << 26  # numbers of all pairs of codes
LARGEST_IMAGE = 1 << 24  # pixels
HIGHEST_TEMPERATURE = 1e6
SIZES = (
    "n_obs_steps",
    "action_chunk_size",
    "spatial_softmax_num_keypoints",
    "vqvae_n_embed",
    "vqvae_embedding_dim",
    "vqvae_enc_hidden_dim",
    "gpt_block_size",
    "gpt_input_dim",
    "gpt_output_dim",
    "gpt_n_layer",
    "gpt_n_head",
    "gpt_hidden_dim",
)


@dataclass(frozen=True)
class LeRobotCheckpoint:
    """A LeRobot VQ-BeT on disk, read but not yet running.

    Attributes:
        folder: what `save_pretrained` wrote, or training as `pretrained_model`.
        config: LeRobot's `VQBeTConfig`, checked as far as it matters here.
        tensors: the weights, by the names that they have in LeRobot's `VQBeTModel`.
        image_size: rows and columns of the one camera's frames.
        state_scaling, image_scaling, action_scaling: of (S,), (3, 1, 1) and (A,).
        digest: 16 hexadecimal digits of the SHA-256 of all of its files.
    """

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    image_size: tuple[int, int]
    state_scaling: Scaling
    image_scaling: Scaling
    action_scaling: Scaling
    digest: str

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the weights of a part of the model, by their names in it."""
        prefix = f"{name}."
        return {
            key.removeprefix(prefix): value for key, value in self.tensors.items() if key.startswith(prefix)
        }

    def tensor(self, name: str) -> Tensor:
        """Return one weight.

        Raises:
            CheckpointError: there is none of that name.
        """
        if name not in self.tensors:
            raise CheckpointError(f"{self.folder / WEIGHTS}: {MODEL}{name}: missing")
        return self.tensors[name]


def read_checkpoint(folder: Path) -> LeRobotCheckpoint:
    """Read the folder of a LeRobot VQ-BeT.

    Raises:
        CheckpointError: a file is missing or damaged, or of a policy that this cannot be; the message names
            file, field, value and what was expected.
    """
    where = folder / CONFIG
    config = read_config(where)
    image = _check_config(config, where)
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise CheckpointError(f"{weights}: no such file")
    try:
        of_model = {name.removeprefix(MODEL): shape for name, shape in read_shapes(weights).items()}
        _check_sizes(config, of_model)  # before anything is made
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{weights}: {MODEL}{error}") from None
    tensors = read_tensors(weights)
    model = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
    discretized = model.get("action_head.vqvae_model.discretized")
    if discretized is None or discretized.numel() != 1 or not bool(discretized):
        raise CheckpointError(
            f"{weights}: {MODEL}action_head.vqvae_model.discretized: must be true; its training stopped "
            f"before the residual VQ was done"
        )
    inputs = config["input_features"]
    files = [where, weights]
    if (folder / "policy_preprocessor.json").is_file():
        before = Processor(folder / "policy_preprocessor.json", "normalizer_processor")
        after = Processor(folder / "policy_postprocessor.json", "unnormalizer_processor")
        files += before.files + after.files
        scalings = (before.scaling(STATE), before.scaling(image), after.scaling(ACTION))
    else:
        scalings = (
            among_weights(config, "normalize_inputs", STATE, "STATE", tensors, weights),
            among_weights(config, "normalize_inputs", image, "VISUAL", tensors, weights),
            among_weights(config, "unnormalize_outputs", ACTION, "ACTION", tensors, weights),
        )
    shapes = (inputs[STATE]["shape"], [3, 1, 1], config["output_features"][ACTION]["shape"])
    state, frame, action = (
        shaped(scaling, shape, folder) for scaling, shape in zip(scalings, shapes, strict=True)
    )
    _, rows, columns = inputs[image]["shape"]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return LeRobotCheckpoint(
        folder, config, model, (rows, columns), state, frame, action, digest.hexdigest()[:16]
    )


def _check_config(config: dict[str, Any], where: Path) -> str:
    """Check what the rest relies on; return the name of the camera."""
    if config.get("type") != "vqbet":
        raise CheckpointError(f"{where}: type: {config.get('type')!r}, must be 'vqbet'")
    for name in SIZES:
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise CheckpointError(f"{where}: {name}: {value!r}, must be an integer from 1")
    if config["gpt_hidden_dim"] % config["gpt_n_head"]:
        raise CheckpointError(
            f"{where}: gpt_hidden_dim: {config['gpt_hidden_dim']}, must be a multiple of "
            f"gpt_n_head = {config['gpt_n_head']}"
        )
    if config["gpt_block_size"] < 3 * config["n_obs_steps"]:
        raise CheckpointError(
            f"{where}: gpt_block_size: {config['gpt_block_size']}, must be at least 3 for each of "
            f"n_obs_steps = {config['n_obs_steps']}"
        )
    temperature = config.get("bet_softmax_temperature")
    if not isinstance(temperature, (int, float)) or not 0 < temperature <= HIGHEST_TEMPERATURE:
        raise CheckpointError(
            f"{where}: bet_softmax_temperature: {temperature!r}, must be above 0, and "
            f"{HIGHEST_TEMPERATURE:g} at most"
        )
    for name, most in (("n_obs_steps", LONGEST_WINDOW), ("vqvae_n_embed", MOST_CODES)):
        if config[name] > most:
            raise CheckpointError(f"{where}: {name}: {config[name]}, must be {most} at most")
    for name in ("sequentially_select", "use_group_norm"):
        if not isinstance(config.get(name), bool):
            raise CheckpointError(f"{where}: {name}: {config.get(name)!r}, must be true or false")
    _features(config, "output_features", {ACTION: ("ACTION", 1)}, where)
    inputs = mapping(config, "input_features", where)
    cameras = [name for name, feature in inputs.items() if _type(feature) == "VISUAL"]
    if len(cameras) != 1:
        there = ", ".join(cameras) or "none"
        raise CheckpointError(f"{where}: input_features: cameras: {there}, must be one")
    image = cameras[0]
    _features(config, "input_features", {STATE: ("STATE", 1), image: ("VISUAL", 3)}, where)
    channels, rows, columns = inputs[image]["shape"]
    if channels != 3:
        raise CheckpointError(f"{where}: input_features: {image}: shape: {channels} channels, must be 3")
    if rows * columns > LARGEST_IMAGE:
        raise CheckpointError(
            f"{where}: input_features: {image}: shape: {rows} x {columns} pixels, must be "
            f"{LARGEST_IMAGE} at most"
        )
    crop = config.get("crop_shape")
    if crop is not None and not (_sizes(crop, 2) and crop[0] <= rows and crop[1] <= columns):
        raise CheckpointError(f"{where}: crop_shape: {crop!r}, must be null or within {[rows, columns]}")
    return image


def _check_sizes(config: dict[str, Any], shapes: Shapes) -> None:
    """Compare the sizes of a policy, but for its encoder's, with its weights.

    Raises:
        ValueError: names the tensor, or what there is another number of.
    """
    width, token, out = (config[size] for size in ("gpt_hidden_dim", "gpt_input_dim", "gpt_output_dim"))
    hidden, latent, codes = (
        config[size] for size in ("vqvae_enc_hidden_dim", "vqvae_embedding_dim", "vqvae_n_embed")
    )
    (state,) = config["input_features"][STATE]["shape"]
    (action,) = config["output_features"][ACTION]["shape"]
    flat, gpt = config["action_chunk_size"] * action, "policy.transformer"
    table = codes**CODEBOOKS * max(flat, latent)
    if table > LARGEST_TABLE:
        raise ValueError(f"{VQ}: {table} numbers of all pairs of codes, must be {LARGEST_TABLE} at most")
    check_count("gpt_n_layer", config["gpt_n_layer"], shapes, f"{gpt}.h.", ".mlp.0.weight")
    wanted = {
        "state_projector.0.weight": (token, state),
        "rgb_feature_projector.0.weight": (token, 2 * config["spatial_softmax_num_keypoints"]),
        f"{gpt}.wte.weight": (width, token),
        f"{gpt}.wpe.weight": (config["gpt_block_size"], width),
        **{f"{gpt}.h.{layer}.mlp.0.weight": (4 * width, width) for layer in range(config["gpt_n_layer"])},
        "policy.lm_head.weight": (out, width),
        "action_head.map_to_cbet_preds_offset.0.weight": (CODEBOOKS * codes * flat, out),
        f"{VQ}.encoder.0.weight": (hidden, flat),
        f"{VQ}.encoder.2.weight": (hidden, hidden),
        f"{VQ}.encoder.4.weight": (latent, hidden),
        **{f"{VQ}.vq_layer.layers.{book}._codebook.embed": (1, codes, latent) for book in range(CODEBOOKS)},
    }
    check_shapes(shapes, wanted)


def _sizes(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(isinstance(side, int) and side >= 1 for side in value)
    )


def _type(feature: Any) -> Any:
    return feature.get("type") if isinstance(feature, dict) else None


def _features(config: dict[str, Any], name: str, wanted: dict[str, tuple[str, int]], where: Path) -> None:
    """Check that a mapping of features has those wanted, of a type and a rank, and no others."""
    features = mapping(config, name, where)
    for key in features:
        if key not in wanted:
            raise CheckpointError(
                f"{where}: {name}: {key}: a VQ-BeT takes none such, only {', '.join(wanted)}"
            )
    for key, (kind, rank) in wanted.items():
        feature = features.get(key)
        if _type(feature) != kind:
            raise CheckpointError(f"{where}: {name}: {key}: {feature!r}, must be a feature of type {kind}")
        shape = features[key].get("shape")
        if not _sizes(shape, rank):
            raise CheckpointError(f"{where}: {name}: {key}: shape: {shape!r}, must be of {rank} sizes from 1")
