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
import torch
from safetensors.numpy import load_file, save_file

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.vqbet import tokenizer
from adahi_ros.policies.vqbet import vqbet_torch as torch_backend
from adahi_ros.policies.vqbet.vqbet_checkpoint import (
    load_checkpoint,
    load_decoder,
    load_tokenizer,
    save_policy,
    save_tokenizer,
)
from adahi_ros.policies.vqbet.vqbet_torch import load_network
from test.policies.damage import edit


@pytest.fixture
def directory(checkpoints: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))


@pytest.mark.parametrize(("goal_dim", "chunk_length", "codebooks"), [(2, 1, 2), (0, 2, 3)])
def test_a_tokenizer_comes_back_as_it_was_saved(
    make_checkpoints: Callable[..., Path],
    demonstrations: Callable[[int], Trajectories],
    tmp_path: Path,
    goal_dim: int,
    chunk_length: int,
    codebooks: int,
) -> None:
    saved = make_checkpoints(goal_dim, chunk_length, codebooks)
    first = load_tokenizer(saved)
    decoder = save_tokenizer(tmp_path / "new", first, {"seed": 3})
    assert (
        load_decoder(tmp_path / "new").fingerprint == decoder.fingerprint == load_decoder(saved).fingerprint
    )
    np.testing.assert_array_equal(load_decoder(tmp_path / "new").table, decoder.table)
    np.testing.assert_array_equal(load_decoder(tmp_path / "new").action_scale, decoder.action_scale)
    again = load_tokenizer(tmp_path / "new")
    actions = demonstrations(goal_dim).actions
    chunks = torch.from_numpy(actions[: 300 // chunk_length * chunk_length]).reshape(-1, chunk_length, 2)
    assert torch.equal(again.encode(chunks), first.encode(chunks))
    assert not again.training


def test_a_policy_comes_back_as_it_was_saved(directory: Path) -> None:
    first = load_checkpoint(directory / "draft")
    model = load_network(first)
    save_policy(directory, "copy", model, {"steps": 7})
    second = load_checkpoint(directory / "copy.json")
    assert second.training == {"steps": 7}
    assert (second.sizes, second.config) == (first.sizes, first.config)
    assert second.parameters == model.parameters_count
    assert second.digest() == first.digest()
    weights = load_network(second).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(weights[name], value), name


def test_policies_of_one_directory_share_a_tokenizer_and_differ(checkpoints: Path) -> None:
    draft, target = load_checkpoint(checkpoints / "draft"), load_checkpoint(checkpoints / "target")
    assert draft.decoder.fingerprint == target.decoder.fingerprint
    assert draft.parameters < target.parameters
    assert draft.digest() != target.digest()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def drop(path: Path, key: str) -> None:
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))


def without(path: Path, tensor: str) -> None:
    save_file({name: value for name, value in load_file(path).items() if name != tensor}, path)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("tokenizer.safetensors", cut, "not a safetensors file"),
        ("tokenizer.safetensors", Path.unlink, "no such checkpoint"),
        ("tokenizer.safetensors", lambda path: path.write_bytes(b""), "not a safetensors file"),
        ("tokenizer.safetensors", lambda path: without(path, "decode_table"), "decode_table"),
        ("tokenizer.json", Path.unlink, "no such checkpoint"),
        ("tokenizer.json", lambda path: path.write_text("{"), "not JSON"),
        ("tokenizer.json", lambda path: path.write_text("[]"), "must be a mapping"),
        ("tokenizer.json", lambda path: edit(path, format=2), "format: must be 1"),
        ("draft.json", Path.unlink, "no such checkpoint"),
        ("draft.json", lambda path: path.write_bytes(b"\xff\xfe\xfa"), "not JSON"),
        (
            "draft.json",
            lambda path: edit(path, fingerprint="0" * 16),
            "tokenizer fingerprint 0000000000000000",
        ),
        ("draft.json", lambda path: edit(path, kind="diffusion"), "kind: 'diffusion', must be 'vqbet'"),
        ("draft.json", lambda path: edit(path, config={"width": 8}), "not a whole description"),
        ("draft.json", lambda path: edit(path, config=None), "not a whole description"),
        ("draft.json", lambda path: drop(path, "parameters"), "not a whole description"),
        ("draft.safetensors", Path.unlink, "no such checkpoint"),
        ("draft.safetensors", cut, ""),
        ("draft.safetensors", lambda path: without(path, "position"), "position"),
        ("draft.safetensors", lambda path: without(path, "goal_mean"), "goal_mean"),
    ],
)
@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
def test_a_damaged_checkpoint_is_refused_by_the_file_that_is_damaged(
    directory: Path, name: str, damage: Callable[[Path], Any], message: str, backend: str
) -> None:
    damage(directory / name)
    with pytest.raises(CheckpointError, match=re.escape(f"{directory / name}: ") + "(?s:.*)" + message):
        load_policy(directory / "draft", backend)


def test_an_edited_fingerprint_of_the_tokenizer_is_refused(directory: Path) -> None:
    edit(directory / "tokenizer.json", fingerprint="f" * 16)
    with pytest.raises(
        CheckpointError, match=r"tokenizer\.safetensors: fingerprint .* says ffffffffffffffff"
    ):
        load_decoder(directory)


def test_a_flipped_bit_in_the_decode_table_is_found(directory: Path) -> None:
    path = directory / "tokenizer.safetensors"
    tensors = load_file(path)
    tensors["decode_table"].view(np.uint32)[1, 2, 0, 1] ^= 1
    save_file(tensors, path)
    with pytest.raises(CheckpointError, match=re.escape(str(path)) + ": fingerprint"):
        load_checkpoint(directory / "draft")


def test_a_policy_of_another_tokenizer_is_refused(
    directory: Path, make_checkpoints: Callable[..., Path]
) -> None:
    other = make_checkpoints(seed=1)
    for suffix in ("json", "safetensors"):
        shutil.copy(other / f"draft.{suffix}", directory / f"draft.{suffix}")
    fingerprints = [load_decoder(place).fingerprint for place in (other, directory)]
    with pytest.raises(CheckpointError, match="{}, the one beside it is {}".format(*fingerprints)):
        load_checkpoint(directory / "draft")


@pytest.mark.parametrize("changes", [{"width": 6}, {"width": 5}, {"window_length": 4}, {"depth": 3}])
def test_a_config_that_does_not_fit_the_weights_is_refused(directory: Path, changes: dict[str, int]) -> None:
    path = directory / "draft.json"
    edit(path, config=json.loads(path.read_text())["config"] | changes)
    with pytest.raises(CheckpointError, match=re.escape(str(directory / "draft.safetensors"))):
        load_policy(directory / "draft", "torch")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 8000}, "layers: 8000, must be 1, as many as there are"),
        ({"layers": 2**40}, "layers: .*, must be an integer from 0"),
        ({"layers": 1.0}, "layers: 1.0, must be an integer from 0"),
        ({"width": 100_000, "heads": 1}, "observation_in.weight: of shape .*, must be \\(100000, 6\\)"),
        ({"head_hidden": 2**30}, "code_head.0.weight: of shape"),
        ({"observation_dim": 2**30}, "observation_in.weight: of shape"),
        ({"window_length": 4000}, "position: of shape"),
        ({"window_length": 100_000}, "window_length: 100000, must be an integer from 0 to 4096"),
        ({"goal_dim": -1}, "goal_dim: -1, must be an integer from 0"),
        ({"codebook_size": 2**30}, "codebook_size: 1073741824, must be 8, the tokenizer's"),
    ],
)
@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
def test_sizes_are_compared_with_the_weights_before_anything_is_made(
    directory: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str, backend: str
) -> None:
    monkeypatch.setattr(torch_backend, "VQBeT", None)
    path = directory / "draft.json"
    edit(path, config=json.loads(path.read_text())["config"] | changes)
    with pytest.raises(CheckpointError, match=re.escape(str(directory / "draft.")) + "(?s:.*)" + message):
        load_policy(directory / "draft", backend)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": 2**30},
        {"latent_dim": 2**30},
        {"chunk_length": 2**30},
        {"chunk_length": [1]},
        {"codebooks": 2**30, "codebook_size": 1},
        {"codebooks": 2**31},
        {"codebook_size": 10**9},
    ],
)
def test_sizes_of_a_tokenizer_are_compared_before_anything_is_made(
    directory: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(tokenizer, "ActionTokenizer", None)
    path = directory / "tokenizer.json"
    edit(path, config=json.loads(path.read_text())["config"] | changes)
    with pytest.raises(
        CheckpointError, match=f"does not fit the config .*({'|'.join(changes)}|weight|embed)"
    ):
        load_tokenizer(directory)


def crafted(shape: list[int], dtype: str = "F32", size: int = 4) -> bytes:
    """Return a safetensors file of one tensor, of any shape and type."""
    header = {"decode_table": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


@pytest.mark.parametrize("name", ["tokenizer.safetensors", "draft.safetensors"])
@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        crafted([1] * 100),
        crafted([2], "BF16"),
        crafted([4], "F8_E4M3"),
        crafted([0, 2**62, 4], size=0),
        crafted([-1]),
    ],
    ids=["endless header", "long header", "deep", "rank", "bfloat16", "float8", "overflow", "negative"],
)
def test_a_crafted_safetensors_file_is_refused_by_name(directory: Path, name: str, content: bytes) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=re.escape(str(directory / name))):
        load_policy(directory / "draft", "torch")


@pytest.mark.parametrize("name", ["tokenizer.safetensors", "draft.safetensors", "draft.json"])
def test_a_folder_or_an_oversized_file_is_refused_by_name(directory: Path, name: str) -> None:
    path = directory / name
    with path.open("r+b") as file:
        file.truncate(2**31 + 1)  # of holes: it takes no room
    with pytest.raises(CheckpointError, match=re.escape(str(path)) + r".*2147483649 bytes, must be at most"):
        load_policy(directory / "draft", "torch")
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=re.escape(str(path))):
        load_policy(directory / "draft", "torch")


@pytest.mark.parametrize("config", [None, {}, {"action_dim": 2, "depth": 1}, {"action_dim": 3}])
def test_a_tokenizer_whose_config_does_not_fit_is_refused(
    directory: Path, config: dict[str, int] | None
) -> None:
    edit(directory / "tokenizer.json", config=config)
    with pytest.raises(CheckpointError, match=r"tokenizer\.safetensors: does not fit the config"):
        load_tokenizer(directory)
