# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of LeRobot's VQ-BeT, read without LeRobot: sizes, weights, and scaling.

A folder holds `config.json` and `model.safetensors`. Since LeRobot 0.4 the scaling is in
`policy_preprocessor.json`, `policy_postprocessor.json` and the safetensors files that they name; before,
it was among the weights, as `normalize_inputs.*` and `unnormalize_outputs.*`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field
from safetensors.torch import load_file
from torch import Tensor

from adahi_lab.lerobot.lerobot_files import ACTION, CONFIG, LeRobotSchema, read_config
from adahi_lab.lerobot.lerobot_scaling import Modes, Processor, Scaling, among_weights, shaped
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import Listed, above, one_of, within
from adahi_ros.core.signature import Ranges
from adahi_ros.core.tensor_files import Shapes, check_count, check_shapes, read_shapes, weights_of
from adahi_ros.policies.networks.network_checkpoint import Length, Size
from adahi_ros.policies.vqbet.code_policy import MAX_COMBINATIONS

WEIGHTS = "model.safetensors"
VQBET = "vqbet"
MODEL = "vqbet."
STATE = "observation.state"
VQ = "action_head.vqvae_model"
CODEBOOKS = 2  # LeRobot's residual VQ has always two
MOST_CODES = math.isqrt(MAX_COMBINATIONS)
LARGEST_TABLE = 1 << 26  # numbers of all pairs of codes
LARGEST_IMAGE = 1 << 24  # pixels
HIGHEST_TEMPERATURE = 1e6


@dataclass(frozen=True)
class _Feature(LeRobotSchema):
    type: str
    shape: Listed[Size]


@dataclass(frozen=True)
class LeRobotConfig(LeRobotSchema):
    """The fields of LeRobot's `VQBeTConfig` that are used here."""

    type: Annotated[str, one_of((VQBET,))]
    n_obs_steps: Length
    action_chunk_size: Size
    spatial_softmax_num_keypoints: Size
    vqvae_n_embed: Annotated[int, within(1, MOST_CODES, "an integer")]
    vqvae_embedding_dim: Size
    vqvae_enc_hidden_dim: Size
    gpt_block_size: Size
    gpt_input_dim: Size
    gpt_output_dim: Size
    gpt_n_layer: Size
    gpt_n_head: Size
    gpt_hidden_dim: Size
    bet_softmax_temperature: Annotated[float, above(0.0, HIGHEST_TEMPERATURE)]
    sequentially_select: bool
    use_group_norm: bool
    input_features: dict[str, _Feature]
    output_features: dict[str, _Feature]
    crop_shape: Annotated[Listed[Size], Field(min_length=2, max_length=2)] | None = None
    normalization_mapping: Modes = field(default_factory=dict)
    vision_backbone: str = ""

    def __post_init__(self) -> None:
        """Check conditions on several fields."""
        if self.gpt_hidden_dim % self.gpt_n_head:
            raise ValueError(
                f"gpt_hidden_dim: {self.gpt_hidden_dim}, must be a multiple of gpt_n_head = {self.gpt_n_head}"
            )
        if self.gpt_block_size < 3 * self.n_obs_steps:
            raise ValueError(
                f"gpt_block_size: {self.gpt_block_size}, must be at least 3 for each of "
                f"n_obs_steps = {self.n_obs_steps}"
            )
        _check_features("output_features", self.output_features, {ACTION: ("ACTION", 1)})
        _check_features(
            "input_features", self.input_features, {STATE: ("STATE", 1), self.camera: ("VISUAL", 3)}
        )
        channels, rows, columns = self.input_features[self.camera].shape
        shape = f"input_features: {self.camera}: shape"
        if channels != 3:
            raise ValueError(f"{shape}: {channels} channels, must be 3")
        if rows * columns > LARGEST_IMAGE:
            raise ValueError(f"{shape}: {rows} x {columns} pixels, must be {LARGEST_IMAGE} at most")
        crop = self.crop_shape
        if crop is not None and (crop[0] > rows or crop[1] > columns):
            raise ValueError(f"crop_shape: {list(crop)}, must be null or within {[rows, columns]}")

    @property
    def camera(self) -> str:
        """The name of its one camera.

        Raises:
            ValueError: there is none, or there are more.
        """
        cameras = [name for name, feature in self.input_features.items() if feature.type == "VISUAL"]
        if len(cameras) != 1:
            raise ValueError(f"input_features: cameras: {', '.join(cameras) or 'none'}, must be one")
        return cameras[0]

    @property
    def state_dim(self) -> int:
        """S."""
        return self.input_features[STATE].shape[0]

    @property
    def action_dim(self) -> int:
        """A."""
        return self.output_features[ACTION].shape[0]

    def shapes(self) -> Shapes:
        """Return the shapes of weights in which every size occurs, except the encoder's.

        Raises:
            ValueError: there are too many pairs of codes.
        """
        width, token, out = self.gpt_hidden_dim, self.gpt_input_dim, self.gpt_output_dim
        hidden, latent, codes = self.vqvae_enc_hidden_dim, self.vqvae_embedding_dim, self.vqvae_n_embed
        flat, gpt = self.action_chunk_size * self.action_dim, "policy.transformer"
        table = codes**CODEBOOKS * max(flat, latent)
        if table > LARGEST_TABLE:
            raise ValueError(f"{VQ}: {table} numbers of all pairs of codes, must be {LARGEST_TABLE} at most")
        books = {
            f"{VQ}.vq_layer.layers.{book}._codebook.embed": (1, codes, latent) for book in range(CODEBOOKS)
        }
        return {
            "state_projector.0.weight": (token, self.state_dim),
            "rgb_feature_projector.0.weight": (token, 2 * self.spatial_softmax_num_keypoints),
            f"{gpt}.wte.weight": (width, token),
            f"{gpt}.wpe.weight": (self.gpt_block_size, width),
            **{f"{gpt}.h.{layer}.mlp.0.weight": (4 * width, width) for layer in range(self.gpt_n_layer)},
            "policy.lm_head.weight": (out, width),
            "action_head.map_to_cbet_preds_offset.0.weight": (CODEBOOKS * codes * flat, out),
            f"{VQ}.encoder.0.weight": (hidden, flat),
            f"{VQ}.encoder.2.weight": (hidden, hidden),
            f"{VQ}.encoder.4.weight": (latent, hidden),
            **books,
        }


def _check_features(
    name: str, features: Mapping[str, _Feature], wanted: Mapping[str, tuple[str, int]]
) -> None:
    """Check that features have the given names, type and rank."""
    for key in features:
        if key not in wanted:
            raise ValueError(f"{name}: {key}: a VQ-BeT takes none such, only {', '.join(wanted)}")
    for key, (kind, rank) in wanted.items():
        if key not in features or features[key].type != kind:
            raise ValueError(f"{name}: {key}: {features.get(key)}, must be a feature of type {kind}")
        shape = features[key].shape
        if len(shape) != rank:
            raise ValueError(f"{name}: {key}: shape: {list(shape)}, must be of {rank} sizes from 1")


@dataclass(frozen=True)
class LeRobotCheckpoint:
    """A LeRobot VQ-BeT on disk, read but not yet running.

    Attributes:
        folder: written by `save_pretrained`, or by training as `pretrained_model`.
        config: its sizes.
        tensors: the weights, by their names in LeRobot's `VQBeTModel`.
        state_scaling, image_scaling, action_scaling: of (S,), (3, 1, 1) and (A,).
        digest: 16 hexadecimal digits of the SHA-256 of all of its files.
        state_ranges, action_ranges: of the data in its training, as far as they are known.
    """

    folder: Path
    config: LeRobotConfig
    tensors: dict[str, Tensor]
    state_scaling: Scaling
    image_scaling: Scaling
    action_scaling: Scaling
    digest: str
    state_ranges: Ranges
    action_ranges: Ranges

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the weights of a part of the model, by their names in that part."""
        prefix = f"{name}."
        return {
            key.removeprefix(prefix): value for key, value in self.tensors.items() if key.startswith(prefix)
        }

    def tensor(self, name: str) -> Tensor:
        """Return one weight.

        Raises:
            CheckpointError: there is no such weight.
        """
        if name not in self.tensors:
            raise CheckpointError(f"{self.folder / WEIGHTS}: {MODEL}{name}: missing")
        return self.tensors[name]


def read_checkpoint(folder: Path) -> LeRobotCheckpoint:
    """Read the folder of a LeRobot VQ-BeT.

    Raises:
        CheckpointError: a file is missing or damaged, or the policy is not supported; the message names
            file, field, value and what was expected.
    """
    where, weights = folder / CONFIG, folder / WEIGHTS
    config = read_config(LeRobotConfig, where)
    found = {name.removeprefix(MODEL): shape for name, shape in read_shapes(weights).items()}
    try:  # before anything is made
        check_count("gpt_n_layer", config.gpt_n_layer, found, "policy.transformer.h.", ".mlp.0.weight")
        check_shapes(found, config.shapes())
    except ValueError as error:
        raise CheckpointError(f"{weights}: {MODEL}{error}") from None
    with weights_of(weights):
        tensors = load_file(weights)
    model = {name.removeprefix(MODEL): value for name, value in tensors.items() if name.startswith(MODEL)}
    discretized = model.get(f"{VQ}.discretized")
    if discretized is None or discretized.numel() != 1 or not bool(discretized):
        raise CheckpointError(
            f"{weights}: {MODEL}{VQ}.discretized: must be true; its training stopped before the residual VQ "
            "was done"
        )
    files, image, action = [where, weights], config.camera, config.output_features[ACTION]
    ranges = Ranges(), Ranges()
    if (folder / "policy_preprocessor.json").is_file():
        before = Processor(folder / "policy_preprocessor.json", "normalizer_processor")
        after = Processor(folder / "policy_postprocessor.json", "unnormalizer_processor")
        files += before.files + after.files
        scalings = (before.scaling(STATE), before.scaling(image), after.scaling(ACTION))
        ranges = before.ranges(STATE, config.state_dim), after.ranges(ACTION, config.action_dim)
    else:
        modes = config.normalization_mapping
        scalings = (
            among_weights(modes.get("STATE", "IDENTITY"), "normalize_inputs", STATE, tensors, weights),
            among_weights(modes.get("VISUAL", "IDENTITY"), "normalize_inputs", image, tensors, weights),
            among_weights(modes.get("ACTION", "IDENTITY"), "unnormalize_outputs", ACTION, tensors, weights),
        )
    shapes = ((config.state_dim,), (3, 1, 1), action.shape)
    state, frame, of_action = (
        shaped(scaling, shape, folder) for scaling, shape in zip(scalings, shapes, strict=True)
    )
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    read = folder, config, model, state, frame, of_action, digest.hexdigest()[:16]
    return LeRobotCheckpoint(*read, *ranges)
