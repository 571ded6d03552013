from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.cli.training import export
from adahi_lab.papers.dyq_vla import quantization
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.networks.onnx_cache import cache_folder
from test.policies.conftest import load_codes


def observed(batch: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(batch, 3, 6)).astype(np.float32), draw.normal(size=(batch, 2)).astype(np.float32)


def test_eight_bits_and_all_of_them_agree_within_a_bound(checkpoints: Path) -> None:
    full, light = (load_codes(checkpoints / "target", backend) for backend in ("onnxruntime", "int8"))
    assert (light.signature, light.digest) == (full.signature, full.digest)
    expected, got = (policy.predict(*observed(20)) for policy in (full, light))
    for name in ("logits", "offsets"):
        wanted, found = getattr(expected, name), getattr(got, name)
        assert found.dtype == np.float32
        error = np.abs(found - wanted).max()
        assert 0.0 < error < 0.1 * np.ptp(wanted), name  # another network, and nearly the same


def test_a_robot_receives_the_same_with_any_robots_beside_it(checkpoints: Path) -> None:
    light = load_codes(checkpoints / "target", "int8")
    windows, goals = observed(5)
    windows[0] *= 100.0  # scaled together, the others would have lost what they say
    together = light.predict(windows, goals)
    for row in range(5):
        alone = light.predict(windows[row : row + 1], goals[row : row + 1])
        np.testing.assert_array_equal(alone.logits[0], together.logits[row])


def test_the_quantised_file_is_made_once_and_again_for_other_weights(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))
    made = []
    real = quantization.quantize

    def quantize(full: Path, path: Path) -> None:
        made.append(full)
        real(full, path)

    monkeypatch.setattr(quantization, "quantize", quantize)
    digest = load_policy(directory / "draft", "int8").digest
    load_policy(directory / "draft", "int8")
    assert len(made) == 1
    assert (cache_folder() / f"{digest}.int8.onnx").is_file()
    for part in (".onnx", ".json"):  # copied beside it, for a robot that cannot make it
        shutil.copy(cache_folder() / f"{digest}.int8{part}", directory / f"draft.int8{part}")
    shutil.rmtree(cache_folder())
    load_policy(directory / "draft", "int8")
    assert len(made) == 1
    for part in (".safetensors", ".json"):
        shutil.copy(directory / f"target{part}", directory / f"draft{part}")
    load_policy(directory / "draft", "int8")
    assert len(made) == 2

    def no_onnx(full: Path, path: Path) -> None:
        raise ImportError("No module named 'onnx'")

    shutil.rmtree(cache_folder())
    monkeypatch.setattr(quantization, "quantize", no_onnx)
    with pytest.raises(CheckpointError, match=r"No module named 'onnx'.*\.int8\.onnx.*'adahi export --int8'"):
        load_policy(directory / "draft", "int8")


def test_what_is_exported_is_taken(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))
    export("ball", directory, int8=True)
    assert {path.name for path in directory.glob("*.int8.*")} == {
        f"{name}.int8.{kind}" for name in ("draft", "target") for kind in ("onnx", "json")
    }
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_policy(directory / "target", "int8")
    assert not cache_folder().exists()


def test_a_torch_dtype_is_not_for_eight_bits(checkpoints: Path) -> None:
    with pytest.raises(ValueError, match="dtype: 'bfloat16', must not be given for the backend int8"):
        load_policy(checkpoints / "draft", "int8", dtype="bfloat16")
