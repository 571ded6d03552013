from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from adahi_lab.encoders.encoder_export import ARCHITECTURES, make_network, save_encoder
from adahi_lab.encoders.resnet import load_weights
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash
from adahi_ros.vision.encoder import Encoder, load_files
from test.policies.damage import edit

SIZE = [24, 32]
NAMES = ("ball.json", "ball.onnx", "ball.safetensors")


def config(architecture: str) -> dict[str, object]:
    return {"architecture": architecture, "image_size": SIZE}


def frames(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SIZE, 3), dtype=np.uint8)


@pytest.fixture(scope="module", params=sorted(ARCHITECTURES))
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("encoder") / "eye"
    torch.manual_seed(0)
    save_encoder(path, make_network(config(request.param)).eval(), config(request.param), {"seed": 0})
    return path


def copied(path: Path) -> Path:
    for name in NAMES:
        shutil.copy(asset(f"checkpoints/encoders/{name}"), path / name)
    return path / "ball"


def test_what_runs_is_what_torch_made(saved: Path) -> None:
    encoder = Encoder.load(saved)
    network = make_network(json.loads(saved.with_suffix(".json").read_text())["config"])
    load_weights(network, str(saved.with_suffix(".safetensors")))
    images = frames(3)
    with torch.no_grad():
        expected = network.eval()(torch.from_numpy(images)).numpy()
    found = encoder.encode(images)
    assert found.shape == (3, encoder.features)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


def test_a_frame_has_the_same_features_in_every_batch(saved: Path) -> None:
    encoder, images = Encoder.load(saved), frames(5)
    together = encoder.encode(images)
    for row in range(len(images)):
        np.testing.assert_array_equal(encoder.encode(images[row : row + 1])[0], together[row])
    assert encoder.encode(images[:0]).shape == (0, encoder.features)


@pytest.mark.parametrize("suffix", ["", ".json", ".onnx", ".safetensors"])
def test_an_encoder_is_loaded_by_any_of_its_files(tmp_path: Path, suffix: str) -> None:
    path = copied(tmp_path)
    encoder = Encoder.load(path.with_name(f"ball{suffix}"))
    assert encoder.image_size == (64, 64)
    assert len(encoder.fingerprint) == 16


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((1, 32, 24, 3), np.uint8),
        np.zeros((24, 32, 3), np.uint8),
        np.zeros((1, 24, 32, 3), np.float32),
    ],
)
def test_frames_of_another_shape_or_type_are_refused(saved: Path, images: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"images: .*must be uint8 \(B, 24, 32, 3\)"):
        Encoder.load(saved).encode(images)


@pytest.mark.parametrize("missing", NAMES)
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = copied(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(CheckpointError, match=rf"{missing}: no such checkpoint"):
        Encoder.load(path)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("ball.json", b"{", "not the description of an encoder"),
        ("ball.json", b"[]", "not the description of an encoder"),
        ("ball.json", b'{"format": 2, "kind": "encoder"}', "format, kind: 2, encoder, must be 1, encoder"),
        ("ball.safetensors", b"other weights", "fingerprint"),
        ("ball.onnx", b"no network", r"ball\.onnx: not the file that ball\.json tells of: its SHA-256 is"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    path = copied(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=text):
        Encoder.load(path)


def test_what_is_no_network_is_refused_though_its_hash_is_right(tmp_path: Path) -> None:
    path = copied(tmp_path)
    path.with_suffix(".onnx").write_bytes(b"no network")
    note_hash(path.with_suffix(".onnx"))
    with pytest.raises(CheckpointError, match=r"ball\.onnx: not an ONNX file"):
        Encoder.load(path)


def test_a_network_of_other_weights_is_refused(tmp_path: Path, saved: Path) -> None:
    path = copied(tmp_path)
    shutil.copy(saved.with_suffix(".onnx"), path.with_suffix(".onnx"))
    note_hash(path.with_suffix(".onnx"))
    with pytest.raises(CheckpointError, match="made of weights"):
        Encoder.load(path)


def test_a_network_that_only_says_that_it_is_of_these_weights_is_refused(tmp_path: Path, saved: Path) -> None:
    path = copied(tmp_path)
    other = onnx.load(saved.with_suffix(".onnx"))
    onnx.helper.set_model_props(other, {DIGEST: load_files(path).digest()})
    onnx.save(other, path.with_suffix(".onnx"))
    with pytest.raises(CheckpointError, match=r"ball\.onnx: not the file that ball\.json tells of"):
        Encoder.load(path)
    note_hash(path.with_suffix(".onnx"))
    with pytest.raises(CheckpointError, match=r"ball\.onnx: of shapes .*\[1, 24, 32, 3\].*, must be"):
        Encoder.load(path)


@pytest.mark.parametrize("size", [None, 64, [64], [64, 0], [64, "64"], [10**6, 10**6], [64.0, 64]])
def test_an_image_size_that_is_none_is_named(tmp_path: Path, size: object) -> None:
    path = copied(tmp_path)
    text = json.loads(path.with_suffix(".json").read_text())
    edit(path.with_suffix(".json"), config=text["config"] | {"image_size": size})
    with pytest.raises(CheckpointError, match=r"ball\.json: .*image_size: .*, must be rows and columns"):
        Encoder.load(path)


def test_the_robot_encodes_without_torch() -> None:
    program = (
        "import sys, adahi_ros.vision.encoder, adahi_ros.vision.images;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert {"torch", "onnx", "scipy", "matplotlib"}.isdisjoint(loaded.split())
