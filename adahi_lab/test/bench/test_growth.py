from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.bench.growth import grow, grown_policies
from adahi_lab.training import vqbet_export
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network
from test.policies.conftest import load_codes

PARAMETERS = 20_000
OUTGOING = ("code_head.2.weight", "offset_head.2.weight")


@pytest.fixture
def trained(checkpoints: Path) -> VQBeT:
    return load_network(load_checkpoint(checkpoints / "target"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def inputs(batch: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(batch)
    return draw.normal(size=(batch, 3, 6)).astype(np.float32), draw.normal(size=(batch, 2)).astype(np.float32)


def test_it_has_the_weights_that_were_requested_and_not_a_unit_more(trained: VQBeT) -> None:
    before = trained.parameters_count
    one_unit = grow(trained, before + 1).parameters_count - before
    grown = grow(trained, PARAMETERS).parameters_count
    assert PARAMETERS <= grown < PARAMETERS + one_unit
    assert trained.parameters_count == before


def test_it_predicts_what_it_was_grown_from_predicts(trained: VQBeT) -> None:
    windows, goals = (torch.from_numpy(each) for each in inputs(50))
    expected, got = trained(windows, goals), grow(trained, PARAMETERS)(windows, goals)
    assert torch.equal(expected[0].argmax(-1), got[0].argmax(-1))
    for before, after in zip(expected, got, strict=True):
        assert np.ptp(before.numpy()) > 1e-2
        torch.testing.assert_close(after, before, rtol=0, atol=1e-5)


def test_what_was_added_is_multiplied_but_not_received(trained: VQBeT) -> None:
    hidden = trained.config.head_hidden
    weights = grow(trained, PARAMETERS).state_dict()
    for name in OUTGOING:
        assert not weights[name][:, hidden:].any()
        incoming = weights[name.replace(".2.", ".0.")][hidden:]
        assert incoming.abs().min() > 0


def test_the_seed_alone_decides_the_new_weights(trained: VQBeT) -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.rand(1)  # what else was drawn does not matter
        return grow(trained, PARAMETERS, seed).state_dict()["code_head.0.weight"]

    assert torch.equal(weights(3), weights(3))
    assert not torch.equal(weights(3), weights(4))


def test_nothing_shrinks(trained: VQBeT) -> None:
    before = trained.parameters_count
    with pytest.raises(ValueError, match=f"parameters: {before}, must be above .* {before}"):
        grow(trained, before)


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    """No export, which takes seconds: to be had where nothing runs what was exported."""
    monkeypatch.setattr(vqbet_export, "export", lambda checkpoint, path: None)


@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
def test_grown_policies_run_in_the_place_of_those_they_came_from(
    checkpoints: Path, cache: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "torch":
        request.getfixturevalue("unexported")
    grown = grown_policies(checkpoints, PARAMETERS)
    assert cache in grown.parents
    draft, target = load_codes(grown / "draft", backend), load_codes(grown / "target", backend)
    assert draft.digest == load_checkpoint(checkpoints / "draft").digest()
    assert target.decoder.fingerprint == draft.decoder.fingerprint
    assert target.signature.parameters >= PARAMETERS
    expected = load_codes(checkpoints / "target", backend).predict(*inputs(9))
    got = target.predict(*inputs(9))
    for name in ("logits", "offsets"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-5)


@pytest.mark.usefixtures("unexported")
def test_grown_policies_are_made_once_and_say_how(checkpoints: Path, cache: Path) -> None:
    grown = grown_policies(checkpoints, PARAMETERS)
    made_ns = (grown / "target.safetensors").stat().st_mtime_ns
    assert grown_policies(checkpoints, PARAMETERS) == grown
    assert (grown / "target.safetensors").stat().st_mtime_ns == made_ns
    assert grown_policies(checkpoints, PARAMETERS + 5000) != grown
    how = json.loads((grown / "target.json").read_text())["training"]["grown"]
    assert how["from"] == load_checkpoint(checkpoints / "target").digest()
    assert how["head_hidden"][0] < how["head_hidden"][1]
    assert len(list(cache.glob("adahi_ros/grown/*"))) == 2  # and nothing half made
