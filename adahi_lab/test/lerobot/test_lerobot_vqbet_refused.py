"""What is no checkpoint of LeRobot's that can be read is refused, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from adahi_lab.encoders.lerobot_encoder import load_encoder
from adahi_lab.lerobot import lerobot_checkpoint
from adahi_lab.lerobot.lerobot_checkpoint import read_checkpoint
from adahi_lab.lerobot.lerobot_vqbet import LeRobotPolicy
from adahi_ros.core.checkpoint_files import CheckpointError
from test.policies.damage import edit_in

PREPROCESSOR = "policy_preprocessor.json"
SCALING_FILE = "policy_preprocessor_step_3_normalizer_processor.safetensors"


def _more_features(config: dict[str, Any]) -> None:
    config["input_features"]["observation.environment_state"] = {"type": "ENV", "shape": [2]}


def _more_cameras(config: dict[str, Any]) -> None:
    config["input_features"]["observation.images.side"] = {"type": "VISUAL", "shape": [3, 70, 53]}


def _no_camera(config: dict[str, Any]) -> None:
    del config["input_features"]["observation.images.top"]


def _setting(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config.update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_setting("type", "act"), "type: 'act', must be one of vqbet"),
        (_setting("n_obs_steps", 0), "n_obs_steps: 0, must be an integer from 1"),
        (_setting("n_obs_steps", None), "n_obs_steps: None, must be an integer from 1"),
        (_setting("n_obs_steps", 5), "gpt_block_size: 12, must be at least 3 for each of n_obs_steps = 5"),
        (_setting("gpt_n_head", 5), "gpt_hidden_dim: 12, must be a multiple of gpt_n_head = 5"),
        (_setting("bet_softmax_temperature", 0), "bet_softmax_temperature: 0, must be a number above 0"),
        (_setting("sequentially_select", "no"), "sequentially_select: 'no', must be true or false"),
        (_setting("crop_shape", [71, 48]), r"crop_shape: \[71, 48\], must be null or within \[70, 53\]"),
        (_setting("output_features", {}), "output_features: action: None, must be a feature of type ACTION"),
        (_setting("input_features", None), "input_features: None, must be a mapping"),
        (_more_features, "observation.environment_state: a VQ-BeT takes none such, only observation.state, "),
        (_more_cameras, "cameras: observation.images.top, observation.images.side, must be one"),
        (_no_camera, "input_features: cameras: none, must be one"),
    ],
)
def test_a_config_that_it_cannot_be_is_refused(
    parallel: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edit_in(parallel / "config.json", change)
    with pytest.raises(CheckpointError, match=rf"config\.json: .*{message}"):
        LeRobotPolicy(parallel)


def _feature(part: str, name: str, shape: list[int]) -> Callable[[dict[str, Any]], None]:
    return lambda config: config[part][name].update(shape=shape)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_setting("gpt_n_layer", 8000), "gpt_n_layer: 8000, must be 2, as many as there are"),
        (_setting("gpt_hidden_dim", 4_000_000), r"wte.weight: of shape \(12, 10\), must be \(4000000, 10\)"),
        (_setting("gpt_block_size", 2**40), "wpe.weight: of shape"),
        (_setting("gpt_output_dim", 2**40), "lm_head.weight: of shape"),
        (_setting("spatial_softmax_num_keypoints", 2**40), "rgb_feature_projector.0.weight: of shape"),
        (_setting("vqvae_n_embed", 10**6), "vqvae_n_embed: 1000000, must be an integer from 1 to 256"),
        (_setting("vqvae_embedding_dim", 10**9), "numbers of all pairs of codes, must be"),
        (_setting("vqvae_enc_hidden_dim", 10**9), "encoder.0.weight: of shape"),
        (_setting("action_chunk_size", 10**9), "numbers of all pairs of codes, must be"),
        (_setting("bet_softmax_temperature", 10**400), "must be a number above 0 and at most 1e\\+06"),
        (_feature("input_features", "observation.state", [10**12]), "state_projector.0.weight: of shape"),
        (_feature("output_features", "action", [10**12]), "numbers of all pairs of codes, must be"),
        (_feature("input_features", "observation.images.top", [3, 10**6, 10**6]), "pixels, must be"),
    ],
)
def test_sizes_are_compared_with_the_weights_before_any_is_read(
    parallel: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], None],
    message: str,
) -> None:
    monkeypatch.setattr(lerobot_checkpoint, "load_file", None)
    edit_in(parallel / "config.json", change)
    with pytest.raises(CheckpointError, match=rf"(config\.json|model\.safetensors): .*{message}"):
        read_checkpoint(parallel)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action_head.vqvae_model.discretized", torch.tensor([True, True]), "must be true"),
        ("action_head.vqvae_model.discretized", torch.tensor(False), "its training stopped before"),
        ("action_head.map_to_cbet_preds_bin.0.bias", None, "vqbet.action_head.map_.*bias: missing"),
        ("action_head.map_to_cbet_preds_bin.0.bias", torch.zeros(3), "size mismatch for action_head"),
        ("action_head.vqvae_model.encoder.4.bias", None, r"vqvae_model\.encoder\.4\.bias: missing"),
        ("action_head.vqvae_model.decoder.4.bias", torch.zeros(5), "vqbet.action_head.vqvae_model: "),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    parallel: Path, name: str, value: torch.Tensor | None, message: str
) -> None:
    tensors = load_file(parallel / "model.safetensors")
    del tensors[f"vqbet.{name}"]
    save_file(tensors | ({} if value is None else {f"vqbet.{name}": value}), parallel / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"model\.safetensors: .*{message}"):
        LeRobotPolicy(parallel)


def _unknown_step(pipeline: dict[str, Any]) -> None:
    pipeline["steps"].insert(0, {"registry_name": "delta_action_processor"})


def _unknown_mode(pipeline: dict[str, Any]) -> None:
    pipeline["steps"][3]["config"]["norm_map"]["STATE"] = "LOGARITHM"


def _no_scaling(pipeline: dict[str, Any]) -> None:
    del pipeline["steps"][3]


def _no_state_file(pipeline: dict[str, Any]) -> None:
    del pipeline["steps"][3]["state_file"]


def _normalizer(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda pipeline: pipeline["steps"][3]["config"].update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_normalizer("eps", "small"), "eps: 'small', must be a number from 0 to 1"),
        (_normalizer("normalize_observation_keys", 3), "normalize_observation_keys: 3, must be a list"),
        (_normalizer("norm_map", {"STATE": ["MIN_MAX"]}), r"norm_map.STATE: \['MIN_MAX'\], must be one of"),
        (_unknown_step, "steps: delta_action_processor: not known here, must be of normalizer_processor, "),
        (_unknown_mode, "norm_map.STATE: 'LOGARITHM', must be one of IDENTITY, MEAN_STD, MIN_MAX"),
        (_no_scaling, "steps: normalizer_processor: 0 times, must be once"),
        (_no_state_file, "observation.state.min: missing, but its normalization is MIN_MAX"),
    ],
)
def test_scaling_that_is_not_known_is_refused(
    parallel: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edit_in(parallel / PREPROCESSOR, change)
    with pytest.raises(CheckpointError, match=rf"policy_preprocessor\.json: {message}"):
        LeRobotPolicy(parallel)


def test_scaling_that_is_not_finite_or_not_of_the_shape_is_refused(parallel: Path) -> None:
    tensors = load_file(parallel / SCALING_FILE)
    name = "observation.state.min"
    for value, message in (
        (torch.full((4,), torch.inf), "not finite"),
        (torch.zeros(3), r"\(3,\), must be \(4,\)"),
    ):
        both = {name: value, "observation.state.max": torch.ones(len(value))}
        save_file(tensors | both, parallel / SCALING_FILE)
        with pytest.raises(CheckpointError, match=message):
            LeRobotPolicy(parallel)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "policy_postprocessor.json", SCALING_FILE]
)
def test_files_that_are_missing_or_damaged_are_named(parallel: Path, name: str) -> None:
    (parallel / name).write_bytes(b"\xff{")
    with pytest.raises(CheckpointError, match=rf"{name}: not "):
        LeRobotPolicy(parallel)
    (parallel / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}: no such (file|checkpoint)"):
        LeRobotPolicy(parallel)


def test_an_encoder_that_it_cannot_be_is_refused(parallel: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors: rgb_encoder: .*backbone\.0\.weight"):
        load_encoder(parallel)  # its ResNet is not there
    edit_in(parallel / "config.json", _setting("crop_shape", [70, 30]))
    with pytest.raises(CheckpointError, match=r"rgb_encoder: .*pool\.pos_grid"):
        load_encoder(parallel)
    edit_in(parallel / "config.json", _setting("vision_backbone", "resnet50"))
    with pytest.raises(CheckpointError, match="vision_backbone: 'resnet50', must be of resnet18, resnet34"):
        load_encoder(parallel)
