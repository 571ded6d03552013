from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks import computing, onnx_export
from adahi_ros.policies.networks.onnx_cache import cache_folder
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash
from adahi_ros.policies.registry import DTYPES, POLICIES
from adahi_ros.policies.vqbet.code_policy import CodePolicy
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint, load_checkpoint
from test.policies.conftest import load_codes

ROOT = Path(__file__).parents[2]

# (goal_dim, chunk_length, codebooks)
WITH_GOAL = (2, 1, 2)
WITHOUT_GOAL = (0, 2, 3)


def inputs(batch: int, goal_dim: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(batch)
    windows = draw.normal(size=(batch, 3, 6)).astype(np.float32)
    return windows, draw.normal(size=(batch, goal_dim)).astype(np.float32)


@pytest.mark.parametrize("sizes", [WITH_GOAL, WITHOUT_GOAL])
def test_backends_agree(make_checkpoints: Callable[..., Path], sizes: tuple[int, int, int]) -> None:
    goal_dim, chunk_length, codebooks = sizes
    path = make_checkpoints(*sizes) / "draft"
    torch_policy, onnx_policy = load_codes(path, "torch"), load_codes(path, "onnxruntime")
    assert torch_policy.signature == onnx_policy.signature
    assert torch_policy.decoder.fingerprint == onnx_policy.decoder.fingerprint
    for batch in (1, 7):
        windows, goals = inputs(batch, goal_dim)
        expected, got = torch_policy.predict(windows, goals), onnx_policy.predict(windows, goals)
        assert got.logits.shape == (batch, codebooks, 8)
        assert got.offsets.shape == (batch, codebooks, 8, chunk_length, 2)
        assert np.ptp(expected.logits) > 1e-2
        for name in ("logits", "offsets"):
            assert getattr(got, name).dtype == np.float32
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-4)


def test_the_exported_file_is_used_only_while_it_is_of_these_weights(
    checkpoints: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))
    draft, target = load_checkpoint(directory / "draft"), load_checkpoint(directory / "target")
    windows, goals = inputs(2, 2)
    of_draft = load_codes(directory / "draft", "onnxruntime").predict(windows, goals).logits
    beside = directory / "draft.onnx"

    onnx_export.export(target, beside)  # the weights have changed since
    stale = load_codes(directory / "draft", "onnxruntime").predict(windows, goals).logits
    np.testing.assert_array_equal(stale, of_draft)

    model = onnx.load(beside)
    onnx.helper.set_model_props(model, {DIGEST: draft.digest()})
    onnx.save(model, beside)  # made to look as if it was of the draft's weights
    with pytest.raises(CheckpointError, match=r"draft\.onnx: not the file that draft\.json tells of"):
        load_policy(directory / "draft", "onnxruntime")
    note_hash(beside)
    of_target = load_codes(directory / "target", "torch").predict(windows, goals).logits
    taken = load_codes(directory / "draft", "onnxruntime").predict(windows, goals).logits
    np.testing.assert_allclose(taken, of_target, rtol=0, atol=1e-4)

    beside.write_bytes(beside.read_bytes()[:200])
    note_hash(beside)
    with pytest.raises(CheckpointError, match=r"draft\.onnx: not an ONNX file"):
        load_policy(directory / "draft", "onnxruntime")


def test_an_exported_file_whose_hash_is_nowhere_is_not_run(checkpoints: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))
    windows, goals = inputs(2, 2)
    of_draft = load_codes(directory / "draft", "onnxruntime").predict(windows, goals).logits
    (directory / "draft.onnx").write_bytes(b"of who knows what")
    found = load_codes(directory / "draft", "onnxruntime").predict(windows, goals).logits
    np.testing.assert_array_equal(found, of_draft)


def test_a_cached_file_that_has_changed_is_made_again(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, goals = inputs(2, 2)
    of_draft = load_codes(checkpoints / "draft", "onnxruntime").predict(windows, goals).logits
    digest = load_checkpoint(checkpoints / "draft").digest()
    made = (cache_folder() / f"{digest}.onnx").read_bytes()
    exported = []

    def written_again(checkpoint: Checkpoint, path: Path) -> None:  # an export takes seconds
        exported.append(checkpoint.digest())
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(made)
        note_hash(path)

    monkeypatch.setattr(onnx_export, "export", written_again)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_policy(checkpoints / "draft", "onnxruntime")
    (cached,) = tmp_path.rglob("*.onnx")
    for damage in (made[:200], made + b"\0"):
        cached.write_bytes(damage)
        found = load_codes(checkpoints / "draft", "onnxruntime").predict(windows, goals).logits
        np.testing.assert_array_equal(found, of_draft)
        assert cached.read_bytes() == made
    assert exported == [digest] * 3
    load_policy(checkpoints / "draft", "onnxruntime")
    assert len(exported) == 3  # what is whole is not made again


def test_a_robot_runs_an_exported_policy_without_torch(checkpoints: Path) -> None:
    windows, goals = inputs(3, 2)
    expected = load_codes(checkpoints / "draft", "onnxruntime").predict(windows, goals).logits
    script = f"""
import sys
sys.modules["torch"] = None  # as on a machine without it
from pathlib import Path
import numpy as np
from adahi_ros.policies.backends import load_policy
from adahi_ros.robot import controller
from adahi_ros.robot import target_view
from adahi_ros.server import engine
draw = np.random.default_rng(3)
windows = draw.normal(size=(3, 3, 6)).astype(np.float32)
goals = draw.normal(size=(3, 2)).astype(np.float32)
policy = load_policy(Path({str(checkpoints / "draft")!r}), "onnxruntime")
assert not any(name.startswith(("torch.", "vector_quantize", "onnxscript")) for name in sys.modules)
print(policy.predict(windows, goals).logits.tobytes().hex())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), *sys.path)))}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    got = np.frombuffer(bytes.fromhex(done.stdout), np.float32).reshape(expected.shape)
    np.testing.assert_array_equal(got, expected)


def test_where_it_cannot_be_exported_the_message_says_what_to_do(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "adahi_ros.policies.networks.onnx_export", None)
    with pytest.raises(
        CheckpointError, match=r"draft\.safetensors: not exported .* choose the torch backend"
    ):
        load_policy(checkpoints / "draft", "onnxruntime")


@pytest.mark.parametrize("name", ["arm.yaml", "arm.yml"])
def test_a_file_that_is_named_in_full_is_the_one_that_is_looked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"{name}: there is no such file$"):
        load_policy(tmp_path / name, "torch")
    (tmp_path / name).write_text("kind: magic")
    with pytest.raises(CheckpointError, match=f"{name}: kind: 'magic', must be one of"):
        load_policy(tmp_path / name, "torch")


def proposed(policy: Policy) -> np.ndarray:
    """What decides about a proposal to nothing, with the draws of a third."""
    proposal = policy.propose(policy.signature.nothing(), np.full((1, policy.draws), 1 / 3))
    return policy.predict(*inputs(1, 2)).logits if isinstance(policy, CodePolicy) else proposal.actions


@pytest.mark.parametrize("kind", ["target", "flow"])
def test_half_precision_is_near_and_the_default_changes_no_bit(of_each_kind: Path, kind: str) -> None:
    path = of_each_kind / kind
    whole = proposed(load_policy(path, "torch"))
    assert tuple(computing.DTYPES) == DTYPES
    same = proposed(load_policy(path, "torch", device="cpu", dtype="float32"))
    np.testing.assert_array_equal(same, whole)
    half = proposed(load_policy(path, "torch", dtype="bfloat16"))
    assert half.dtype == np.float32
    assert 0 < np.abs(half - whole).max() < 0.1 * np.abs(whole).max()


@pytest.mark.parametrize("kind", ["target", "flow"])
def test_the_network_is_compiled_where_that_is_requested(
    of_each_kind: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[torch.nn.Module] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda network: compiled.append(network))
    assert load_policy(of_each_kind / kind, "torch", device="auto").device in ("cpu", "cuda")
    assert not compiled
    load_policy(of_each_kind / kind, "torch", compile=True)
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("backend", "given", "message"),
    [
        ("torch", {"device": "abacus"}, r"device: 'abacus', must be auto, or one that torch has here \("),
        ("torch", {"device": "meta"}, r"device: 'meta', must be auto, or one that torch has here"),
        ("torch", {"dtype": "int8"}, "dtype: 'int8', must be one of float32, bfloat16, float16"),
        ("onnxruntime", {"device": "cuda"}, "device: 'cuda', must not be given for the backend onnxruntime"),
        ("onnxruntime", {"compile": True}, "compile: True, must not be given for the backend onnxruntime"),
    ],
)
def test_an_unknown_device_or_a_backend_without_choice_is_refused(
    checkpoints: Path, backend: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        load_policy(checkpoints / "target", backend, **given)


def test_what_is_given_goes_before_the_file_of_a_kind_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Large:
        def __init__(self, folder: Path, /, device: str, dtype: str) -> None:
            self.values = {"device": device, "dtype": dtype}

    monkeypatch.setitem(POLICIES.shipped, "large", Large)
    (tmp_path / "large.yaml").write_text("{kind: large, device: cuda, dtype: float16}")
    policy = load_policy(tmp_path / "large", "onnxruntime", device="cpu")
    assert vars(policy) == {"values": {"device": "cpu", "dtype": "float16"}}
    with pytest.raises(ValueError, match=r"^compile: True, .* kind large, which takes device and dtype$"):
        load_policy(tmp_path / "large", "torch", compile=True)
    (tmp_path / "away.yaml").write_text("{kind: openpi, url: 'ws://there:8000'}")
    with pytest.raises(ValueError, match=r"^device: 'cuda', .* the kind openpi, which takes none such$"):
        load_policy(tmp_path / "away", "torch", device="cuda")


def test_an_unknown_backend_is_refused(checkpoints: Path) -> None:
    with pytest.raises(ValueError, match="backend: 'tensorrt', must be one of int8, onnxruntime, torch"):
        load_policy(checkpoints / "draft", "tensorrt")
