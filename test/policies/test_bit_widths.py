from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.cli.lab.training import export
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.policies.networks import quantization
from adahi_ros.policies.networks.onnx_cache import cache_folder
from adahi_ros.policies.switched import SwitchedPolicy
from test.policies.conftest import load_codes

ROOT = Path(__file__).parents[2]


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


def test_a_flow_has_eight_bits_too() -> None:
    path = ROOT / "checkpoints" / "ball" / "plans" / "target"
    full, light = (load_policy(path, backend) for backend in ("onnxruntime", "int8"))
    seen = full.signature.nothing(3)
    draws = np.random.default_rng(0).random((3, full.draws))
    wanted, found = (policy.propose(seen, draws).actions for policy in (full, light))
    assert 0.0 < np.abs((found - wanted) / full.action_scale).max() < 0.2


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


@pytest.fixture
def pair(checkpoints: Path) -> tuple[Policy, Policy]:
    """One checkpoint, of 32 bits and of eight."""
    path = checkpoints / "draft"
    return load_policy(path, "onnxruntime"), load_policy(path, "int8")


def windows_of(speeds: list[float]) -> np.ndarray:
    """Return a window (1, H, 6) whose observations change by these, of scale 1."""
    places = np.concatenate([[0.0], np.cumsum(speeds)])
    return np.repeat(places[None, :, None], 6, axis=2).astype(np.float32)


@pytest.mark.parametrize(
    ("speeds", "coarse"),
    [
        ([0.0, 0.0], False),
        ([0.0, 0.4], True),
        ([0.4, 0.2], True),  # in between, it stays what it was
        ([0.2, 0.2], False),  # and at first it is fine
        ([0.4, 0.05], False),
        ([0.4, np.nan], False),
        ([0.4, np.inf], True),
    ],
)
def test_what_is_coarse_stays_so_until_it_is_clearly_fine(
    pair: tuple[Policy, Policy], speeds: list[float], coarse: bool
) -> None:
    policy = SwitchedPolicy(*pair, np.ones(6, np.float32), 0.3, 0.1)
    seen = policy.signature.observations(windows_of(speeds), np.zeros((1, 2), np.float32))
    assert policy.coarse(seen).tolist() == [coarse]


def test_each_robot_learns_what_its_precision_says(pair: tuple[Policy, Policy]) -> None:
    full, light = pair
    windows, goals = observed(6)
    windows[::2] = windows[::2, :1]  # these rest
    policy = SwitchedPolicy(full, light, np.ones(6, np.float32), 0.3, 0.1)
    seen = policy.signature.observations(windows, goals)
    draws, sampling = np.random.default_rng(1).random((6, policy.draws)), Sampling(0.7, sendable=True)
    assert policy.coarse(seen).tolist() == [False, True] * 3
    got = policy.propose(seen, draws, sampling)
    singly = [each.propose(seen, draws, sampling) for each in (full, light)]
    for row in range(6):
        assert_same(got, singly[row % 2], row)
        alone = policy.propose(seen.rows(np.array([row])), draws[row : row + 1], sampling)
        np.testing.assert_array_equal(alone.actions[0], got.actions[row])
    assert np.abs(drawn(singly[0]).probabilities - drawn(singly[1]).probabilities).max() > 0.0


def drawn(proposal: Proposal) -> CodeDistribution:
    assert proposal.distribution is not None
    return proposal.distribution


def assert_same(got: Proposal, wanted: Proposal, row: int) -> None:
    for name in ("probabilities", "codes", "counts"):
        found, expected = (getattr(drawn(each), name)[row] for each in (got, wanted))
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(got.actions[row], wanted.actions[row], atol=1e-5)
    codes = np.ones_like(drawn(got).codes)
    found, expected = (drawn(each).actions_of(codes)[row] for each in (got, wanted))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_two_that_do_not_propose_the_same_are_no_pair(pair: tuple[Policy, Policy]) -> None:
    full, light = pair
    light.signature = replace(light.signature, history=1)
    with pytest.raises(ValueError, match="light: "):
        SwitchedPolicy(full, light, np.ones(6), 0.3, 0.1)
    with pytest.raises(ValueError, match=r"fine_below: 0\.5, must be from 0 to coarse_above, 0\.3"):
        SwitchedPolicy(full, full, np.ones(6), 0.3, 0.5)


def test_a_file_says_which_checkpoint_and_what_is_coarse(checkpoints: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoints, tmp_path / "made")
    (tmp_path / "draft.yaml").write_text(
        "kind: switched\ncheckpoint: made/draft\ncoarse_above: 0.3\nfine_below: 0.1\n"
    )
    policy = load_policy(tmp_path / "draft", "onnxruntime")
    assert isinstance(policy, SwitchedPolicy)
    assert policy.digest == load_policy(checkpoints / "draft", "onnxruntime").digest


@pytest.mark.parametrize("task", ["ball", "kitchen", "metaworld"])
@pytest.mark.parametrize("name", ["draft", "target"])
def test_what_is_shipped_can_be_loaded(task: str, name: str) -> None:
    folder = ROOT / "config" / "switched" / task
    policy = load_policy(folder / name, "onnxruntime")
    assert policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws))).actions.shape[0] == 1
