"""A checkpoint that is damaged, or whose sizes are not its weights', is refused by file and field."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from adahi_lab.training import vqbet_files
from adahi_lab.training.tokenizer import TokenizerConfig
from adahi_lab.training.vqbet_files import load_tokenizer
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import checked
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig, load_corrector
from adahi_ros.policies.flow import flow_torch
from adahi_ros.policies.flow.flow_checkpoint import FlowConfig, load_flow
from adahi_ros.policies.vqbet import vqbet_torch
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig
from test.policies.damage import change, edit, resize


@pytest.fixture
def folder(of_each_kind: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(of_each_kind, tmp_path / "checkpoints"))


def load(path: Path) -> None:
    """Load a checkpoint to run it on torch; a corrector, which has no such policy, to run it at all."""
    if path.stem == "corrector":
        Corrector(load_corrector(path))
    else:
        load_policy(path, "torch")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def drop(path: Path, key: str) -> None:
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))


def edited(**changes: Any) -> Callable[[Path], None]:
    return lambda path: edit(path, **changes)


def changed(tensor: str, value: float | None) -> Callable[[Path], None]:
    return lambda path: change(path, tensor, value)


def flip(path: Path) -> None:
    """Flip a bit of the decode table."""
    tensors = load_file(path)
    tensors["decode_table"].view(np.uint32)[1, 2, 0, 1] ^= 1
    save_file(tensors, path)


NOT_WHOLE = "not a whole description of a "


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("tokenizer.safetensors", cut, "not a safetensors file"),
        ("tokenizer.safetensors", Path.unlink, "no such checkpoint"),
        ("tokenizer.safetensors", changed("decode_table", None), "decode_table"),
        ("tokenizer.safetensors", flip, "fingerprint"),
        ("tokenizer.json", Path.unlink, "no such checkpoint"),
        ("draft.json", Path.unlink, "no such checkpoint"),
        ("draft.json", lambda path: path.write_text("{"), "not JSON"),
        ("draft.json", lambda path: path.write_text("[]"), "must be a mapping"),
        ("draft.json", lambda path: path.write_bytes(b"\xff\xfe\xfa"), "not JSON"),
        ("draft.json", edited(format=2), "format: must be 1"),
        ("draft.json", edited(kind="diffusion"), "kind: 'diffusion', must be one of "),
        ("draft.json", edited(fingerprint="0" * 16), "tokenizer fingerprint 0000000000000000"),
        ("draft.json", edited(config={"width": 8}), NOT_WHOLE + "vqbet .*missing"),
        ("draft.json", edited(config=None), NOT_WHOLE + "vqbet"),
        ("draft.json", lambda path: drop(path, "parameters"), "parameters: None, must be an integer"),
        ("draft.json", edited(parameters=-1), "parameters: -1, must be an integer of at least 0"),
        ("draft.safetensors", Path.unlink, "no such checkpoint"),
        ("draft.safetensors", cut, "not a safetensors file"),
        ("draft.safetensors", changed("position", None), "position"),
        ("draft.safetensors", changed("goal_mean", None), "goal_mean"),
        ("draft.safetensors", changed("code_head.0.bias", None), "code_head.0.bias"),
        ("flow.json", edited(config={"width": 8}), NOT_WHOLE + "flow .*missing"),
        ("flow.safetensors", changed("condition_in.bias", None), "condition_in.bias"),
        ("flow.safetensors", changed("action_low", None), "action_low"),
        ("flow.safetensors", changed("action_scale", np.nan), "action_scale"),
        ("flow.safetensors", changed("action_scale", 0.0), "action_scale"),
        ("flow.safetensors", changed("action_high", np.inf), "action_high"),
        ("flow.safetensors", changed("action_high", -99.0), "action_high"),
        ("corrector.json", edited(kind="flow"), "kind: 'flow', must be"),
        ("corrector.json", edited(config={"hidden": 8}), NOT_WHOLE + "corrector .*missing"),
        ("corrector.safetensors", changed("mean", None), "mean: of shape None"),
        ("corrector.safetensors", changed("std", None), "std: of shape None"),
        ("corrector.safetensors", changed("layers.2.weight", None), "layers.2.weight: of shape None"),
        ("corrector.safetensors", changed("layers.4.bias", None), "layers.4.bias"),
        ("corrector.safetensors", changed("goal_scale", None), "goal_scale: of shape None"),
        ("corrector.safetensors", changed("change_scale", np.nan), "change_scale: must be finite"),
        ("corrector.safetensors", changed("action_scale", 0.0), "action_scale: must be .* positive"),
        ("corrector.safetensors", changed("observation_mean", np.inf), "observation_mean: must be"),
        ("corrector.safetensors", changed("action_low", np.nan), "action_low: must be finite"),
        ("corrector.safetensors", changed("action_high", np.nan), "action_high: must be finite"),
    ],
)
def test_a_damaged_file_is_refused_by_its_name_and_field(
    folder: Path, name: str, damage: Callable[[Path], Any], message: str
) -> None:
    damage(folder / name)
    stem = "draft" if name.startswith("tokenizer") else name.partition(".")[0]
    with pytest.raises(CheckpointError, match=re.escape(f"{folder / name}: ") + "(?s:.*)" + message):
        load(folder / stem)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("draft", {"layers": 8000}, "layers: 8000, must be 1, as many as there are"),
        ("draft", {"width": 100_000, "heads": 1}, r"observation_in.weight: of shape .* \(100000, 6\)"),
        ("draft", {"head_hidden": 2**30}, "code_head.0.weight: of shape"),
        ("draft", {"observation_dim": 2**30}, "observation_in.weight: of shape"),
        ("draft", {"window_length": 4000}, "position: of shape"),
        ("draft", {"codebook_size": 2**30}, "code_head.2.weight: of shape"),
        ("draft", {"codebooks": 4, "codebook_size": 4}, "codebooks: 4, must be 2, the tokenizer's"),
        ("draft", {"depth": 3}, "depth: unknown"),
        ("flow", {"layers": 8000}, "layers: 8000, must be 1, as many as there are"),
        ("flow", {"head_layers": 7}, "head_layers: 7, must be 1, as many as there are"),
        ("flow", {"head_width": 2**30}, "velocity_blocks.0.film.weight: of shape"),
        ("flow", {"goal_dim": 0}, "goal_mean: of shape"),
        ("flow", {"action_dim": 3}, "action_mean: of shape"),
        ("flow", {"horizon": 4000}, "plan_in.weight: of shape"),
        ("corrector", {"observation_dim": 7}, "mean: of shape"),
        ("corrector", {"goal_dim": 0}, "mean: of shape"),
        ("corrector", {"action_dim": 3}, "mean: of shape"),
        ("corrector", {"hidden": 4096}, "layers.0.weight: of shape"),
    ],
)
def test_sizes_are_compared_with_the_weights_before_anything_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(vqbet_torch, "VQBeT", None)
    monkeypatch.setattr(flow_torch, "FlowNetwork", None)
    resize(folder / f"{name}.json", **changes)
    with pytest.raises(CheckpointError, match=re.escape(f"{folder / name}.") + "(?s:.*)" + message):
        load(folder / name)


VQBET = {
    "observation_dim": 6,
    "goal_dim": 2,
    "action_dim": 2,
    "window_length": 3,
    "chunk_length": 1,
    "codebooks": 2,
    "codebook_size": 8,
}
FLOW = {"observation_dim": 6, "goal_dim": 2, "action_dim": 2, "window_length": 3}
CORRECTOR = {"observation_dim": 6, "goal_dim": 2, "action_dim": 2, "horizon": 5}


@pytest.mark.parametrize(
    ("kind", "whole", "name", "value", "message"),
    [
        (VQBeTConfig, VQBET, "width", 10, "10, must be a multiple of heads = 6"),
        (VQBeTConfig, VQBET, "layers", 0, "0, must be an integer of at least 1"),
        (VQBeTConfig, VQBET, "layers", 1.0, "1.0, must be an integer of at least 1"),
        (VQBeTConfig, VQBET, "goal_dim", -1, "-1, must be an integer of at least 0"),
        (VQBeTConfig, VQBET, "window_length", 0, "0, must be an integer from 1 to 4096"),
        (VQBeTConfig, VQBET, "window_length", 100_000, "100000, must be an integer from 1 to 4096"),
        (VQBeTConfig, VQBET, "image_dim", 7, "7, must be at most 6"),
        (FlowConfig, FLOW, "depth", 2, "unknown"),
        (FlowConfig, FLOW, "noise", -0.1, "-0.1, must be a number from 0 to 10"),
        (FlowConfig, FLOW, "noise", 11.0, "11.0, must be a number from 0 to 10"),
        (FlowConfig, FLOW, "noise", np.nan, "nan, must be a number from 0 to 10"),
        (FlowConfig, FLOW, "noise", True, "True, must be a number from 0 to 10"),
        (FlowConfig, FLOW, "noise", "1", "'1', must be a number from 0 to 10"),
        (FlowConfig, FLOW, "width", 8.0, "8.0, must be an integer of at least 1"),
        (FlowConfig, FLOW, "width", 6, "6, must be a multiple of heads = 4"),
        (FlowConfig, FLOW, "steps", 0, "0, must be an integer from 1 to 1000"),
        (FlowConfig, FLOW, "steps", 1001, "1001, must be an integer from 1 to 1000"),
        (FlowConfig, FLOW, "horizon", 0, "0, must be an integer from 1 to 4096"),
        (FlowConfig, FLOW, "horizon", 4097, "4097, must be an integer from 1 to 4096"),
        (CorrectorConfig, CORRECTOR, "observation_dim", 0, "0, must be an integer from 1 to 4096"),
        (CorrectorConfig, CORRECTOR, "action_dim", 2.0, "2.0, must be an integer from 1 to 4096"),
        (CorrectorConfig, CORRECTOR, "horizon", 0, "0, must be an integer from 1 to 4096"),
        (CorrectorConfig, CORRECTOR, "hidden", 2**30, "1073741824, must be an integer from 1 to 4096"),
        (CorrectorConfig, CORRECTOR, "goal_dim", -1, "-1, must be an integer from 0 to 4096"),
        (TokenizerConfig, {}, "action_dim", 0, "0, must be an integer of at least 1"),
        (TokenizerConfig, {"action_dim": 2}, "chunk_length", -1, "-1, must be an integer of at least 1"),
        (TokenizerConfig, {"action_dim": 2}, "codebooks", 0, "0, must be an integer of at least 1"),
    ],
)
def test_a_size_out_of_range_is_refused_by_its_name(
    kind: type, whole: dict[str, Any], name: str, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{name}: {message}')}"):
        checked(kind, {**whole, name: value})


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"action_dim": 2, "depth": 1},
        {"action_dim": 3},
        {"hidden": 2**30},
        {"latent_dim": 2**30},
        {"chunk_length": 2**30},
        {"chunk_length": [1]},
        {"codebooks": 2**30, "codebook_size": 1},
        {"codebooks": 2**31},
        {"codebook_size": 10**9},
    ],
)
def test_a_tokenizer_that_does_not_fit_its_config_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(vqbet_files, "ActionTokenizer", None)
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text())["config"] if config and "action_dim" not in config else {}
    edit(path, config=config and whole | config)
    with pytest.raises(CheckpointError, match=r"tokenizer\.safetensors: does not fit the config"):
        load_tokenizer(folder)


def test_an_edited_fingerprint_of_the_tokenizer_is_refused(folder: Path) -> None:
    edit(folder / "tokenizer.json", fingerprint="f" * 16)
    with pytest.raises(
        CheckpointError, match=r"tokenizer\.safetensors: fingerprint .* says ffffffffffffffff"
    ):
        load_decoder(folder)


def test_a_checkpoint_of_another_kind_is_named(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=re.escape("draft.json: kind: 'vqbet', must be 'flow'")):
        load_flow(folder / "draft")


def crafted(shape: list[int], dtype: str = "F32", size: int = 4) -> bytes:
    """Return a safetensors file of one tensor, of any shape and type."""
    header = {"decode_table": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


@pytest.mark.parametrize("name", ["tokenizer.safetensors", "draft.safetensors"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        crafted([1] * 100),
        crafted([2], "BF16"),
        crafted([4], "F8_E4M3"),
        crafted([0, 2**62, 4], size=0),
        crafted([-1]),
    ],
    ids=[
        "empty",
        "endless header",
        "long header",
        "deep",
        "rank",
        "bfloat16",
        "float8",
        "overflow",
        "negative",
    ],
)
def test_a_crafted_safetensors_file_is_refused_by_name(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=re.escape(str(folder / name))):
        load_policy(folder / "draft", "torch")


@pytest.mark.parametrize("name", ["tokenizer.safetensors", "draft.safetensors", "draft.json"])
def test_a_folder_or_an_oversized_file_is_refused_by_name(folder: Path, name: str) -> None:
    path = folder / name
    with path.open("r+b") as file:
        file.truncate(2**31 + 1)  # of holes: it takes no room
    with pytest.raises(CheckpointError, match=re.escape(str(path)) + r".*2147483649 bytes, must be at most"):
        load_policy(folder / "draft", "torch")
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=re.escape(str(path))):
        load_policy(folder / "draft", "torch")
