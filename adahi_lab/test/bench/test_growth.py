from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.bench.growth import grow, grown_policies
from adahi_lab.training import vqbet_files
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network
from test.policies.conftest import load_codes

PARAMETERS = 20_000


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


def test_nothing_shrinks(trained: VQBeT) -> None:
    before = trained.parameters_count
    with pytest.raises(ValueError, match=f"parameters: {before}, must be above .* {before}"):
        grow(trained, before)


def test_grown_policies_run_in_the_place_of_those_they_came_from(checkpoints: Path, cache: Path) -> None:
    grown = grown_policies(checkpoints, PARAMETERS)
    assert cache in grown.parents
    draft, target = (load_codes(grown / name, "onnxruntime") for name in ("draft", "target"))
    assert draft.digest == load_checkpoint(checkpoints / "draft").digest()
    assert target.decoder.fingerprint == draft.decoder.fingerprint
    assert target.signature.parameters >= PARAMETERS
    expected = load_codes(checkpoints / "target", "onnxruntime").predict(*inputs(9))
    got = target.predict(*inputs(9))
    for name in ("logits", "offsets"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-5)


def test_grown_policies_are_made_once_and_say_how(
    checkpoints: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vqbet_files, "export", lambda checkpoint, path: None)  # takes seconds
    grown = grown_policies(checkpoints, PARAMETERS)
    made_ns = (grown / "target.safetensors").stat().st_mtime_ns
    assert grown_policies(checkpoints, PARAMETERS) == grown
    assert (grown / "target.safetensors").stat().st_mtime_ns == made_ns
    assert grown_policies(checkpoints, PARAMETERS + 5000) != grown
    how = json.loads((grown / "target.json").read_text())["training"]["grown"]
    assert how["from"] == load_checkpoint(checkpoints / "target").digest()
    assert how["head_hidden"][0] < how["head_hidden"][1]
    assert len(list(cache.glob("adahi_ros/grown/*"))) == 2  # and nothing half made
