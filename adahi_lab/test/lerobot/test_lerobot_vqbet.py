"""LeRobot wrote the files in test/data/lerobot and the answers in them: lerobot_fixture.py."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from test.lerobot.lerobot_fixture import BACKBONE, SMALL, VARIANTS, completed, frames

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.encoders.encoder_export import save_encoder
from adahi_lab.encoders.lerobot_encoder import load_encoder
from adahi_lab.lerobot.lerobot_vqbet import LeRobotPolicy, lerobot_tokenizer
from adahi_lab.training.fitting import Run
from adahi_lab.training.vqbet_files import save_policy, save_tokenizer
from adahi_lab.training.vqbet_training import CodeFitConfig, train_policy
from adahi_ros.acceptance.interface import codes_differ
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder
from adahi_ros.vision.encoder import Encoder

DATA = Path(__file__).parents[3] / "test/data/lerobot"
CODES = SMALL["vqvae_n_embed"]
LIMIT = 1e-4  # a difference from LeRobot
THROUGH_RESNET = 10 * LIMIT  # another machine's convolutions round otherwise, and the policy makes more of it
PREPROCESSOR = "policy_preprocessor.json"
SCALING_FILE = "policy_preprocessor_step_3_normalizer_processor.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """From a variant to a policy of LeRobot's with its ResNet."""

    @functools.cache
    def make(variant: str) -> Path:
        return completed(DATA / variant, tmp_path_factory.mktemp("lerobot") / variant)

    return make


def answers(folder: Path) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in load_file(folder / "answers.safetensors").items()}


def predict(policy: Any, states: np.ndarray, features: np.ndarray) -> Any:
    return policy.predict(np.concatenate([states, features], axis=-1), np.zeros((len(states), 0), np.float32))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_policy_says_what_lerobot_says(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lerobot", "torchvision"):
        monkeypatch.setitem(sys.modules, name, None)  # as on a machine without them
    theirs = answers(DATA / variant)
    policy = LeRobotPolicy(DATA / variant)
    predicted = predict(policy, theirs["states"], theirs["features"])
    assert predicted.logits.dtype == predicted.offsets.dtype == np.float32
    assert np.ptp(theirs["logits"]) > 1.0
    np.testing.assert_allclose(predicted.logits, theirs["logits"], rtol=0, atol=LIMIT)
    codes = theirs["codes"]
    if policy.decoder.codebooks == 1:
        codes = codes[:, :1] * CODES + codes[:, 1:]
    actions = policy.decoder.decode(codes) + predicted.offset_at(codes)
    np.testing.assert_allclose(actions, theirs["actions"], rtol=0, atol=LIMIT)
    policy.decoder.range.check(policy.decoder.decode(codes))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_encoder_sees_what_lerobot_sees(variant: str, whole: Callable[[str], Path]) -> None:
    folder = whole(variant)
    theirs = answers(folder)
    batch, steps = theirs["features"].shape[:2]
    with torch.inference_mode():
        features = load_encoder(folder)(torch.from_numpy(frames(batch * steps))).numpy()
    features = features.reshape(theirs["features"].shape)
    assert np.ptp(theirs["features"]) > 0.1
    np.testing.assert_allclose(features, theirs["features"], rtol=0, atol=LIMIT)
    logits = predict(LeRobotPolicy(folder), theirs["states"], features).logits
    np.testing.assert_allclose(logits, theirs["logits"], rtol=0, atol=THROUGH_RESNET)


def test_the_encoder_is_written_and_runs_as_every_other(whole: Callable[[str], Path], tmp_path: Path) -> None:
    folder = whole("parallel")
    theirs = answers(folder)
    network = load_encoder(folder)
    save_encoder(tmp_path / "eye", network, network.config, {"from": folder.name})
    encoder = Encoder.load(tmp_path / "eye")
    images = frames(len(theirs["features"]))
    assert encoder.image_size == images.shape[1:3]
    first = theirs["features"].reshape(-1, encoder.features)[: len(images)]
    np.testing.assert_allclose(encoder.encode(images), first, rtol=1e-3, atol=LIMIT)  # float16


def test_where_one_code_is_drawn_after_the_other_a_pair_is_one_code() -> None:
    theirs = answers(DATA / "sequential")
    logits = predict(LeRobotPolicy(DATA / "sequential"), theirs["states"], theirs["features"]).logits
    together = np.exp(logits.astype(np.float64)).reshape(-1, CODES, CODES)
    np.testing.assert_allclose(together.sum(axis=(1, 2)), 1.0, rtol=1e-5)
    after = together / together.sum(axis=2, keepdims=True)
    assert np.abs(after - after[:, :1]).max() > 0.1  # what no two independent codes could say


def test_the_tokenizer_encodes_as_lerobot_does() -> None:
    theirs = answers(DATA / "parallel")
    chunks = torch.from_numpy(theirs["chunks"])
    codes = lerobot_tokenizer(DATA / "parallel").encode(chunks).numpy()
    assert len(np.unique(codes, axis=0)) > 3
    np.testing.assert_array_equal(codes, theirs["chunk_codes"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_action_that_never_moved_stays_where_it_was(variant: str) -> None:
    theirs = answers(DATA / variant)
    policy = LeRobotPolicy(DATA / variant)
    assert (policy.decoder.table[..., 2] == -1.5).all()
    assert policy.decoder.action_scale[2] == 1.0  # so that rounding is no deviation
    assert not predict(policy, theirs["states"], theirs["features"]).offsets[..., 2].any()
    moved = theirs["chunks"] + np.array([0, 0, 0.1], np.float32)
    tokenizer = lerobot_tokenizer(DATA / variant)
    codes = [tokenizer.encode(torch.from_numpy(chunks)).numpy() for chunks in (theirs["chunks"], moved)]
    np.testing.assert_array_equal(codes[0], codes[1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_scaling_among_the_weights_as_lerobot_wrote_it_before_0_4(variant: str, tmp_path: Path) -> None:
    theirs = answers(DATA / variant)
    expected = predict(LeRobotPolicy(DATA / variant), theirs["states"], theirs["features"])
    old = Path(shutil.copytree(DATA / variant, tmp_path / variant))
    tensors = load_file(old / "model.safetensors")
    for name, value in load_file(old / SCALING_FILE).items():
        key, statistic = name.rsplit(".", 1)
        layer = "unnormalize_outputs" if key == "action" else "normalize_inputs"
        tensors[f"{layer}.buffer_{key.replace('.', '_')}.{statistic}"] = value
    save_file(tensors, old / "model.safetensors")
    for path in old.glob("policy_*"):
        path.unlink()
    policy = LeRobotPolicy(old)
    predicted = predict(policy, theirs["states"], theirs["features"])
    np.testing.assert_array_equal(predicted.logits, expected.logits)
    assert policy.decoder.fingerprint == LeRobotPolicy(DATA / variant).decoder.fingerprint
    assert policy.digest != LeRobotPolicy(DATA / variant).digest


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_draft_is_trained_on_the_tokenizer_of_a_lerobot_target(variant: str, tmp_path: Path) -> None:
    shutil.copytree(DATA / variant, tmp_path / "target")
    (tmp_path / "target.yaml").write_text("kind: lerobot_vqbet\nfolder: target\n")
    tokenizer = lerobot_tokenizer(tmp_path / "target")
    save_tokenizer(tmp_path, tokenizer, {})
    draw = np.random.default_rng(5)
    observations = draw.normal(size=(60, 10)).astype(np.float32)
    actions = np.concatenate([np.abs(observations[:, :2]), np.full((60, 1), -1.5)], axis=1)
    data = Trajectories(
        "toy", observations, actions.astype(np.float32), np.zeros((2, 0), np.float32), np.array([30, 60])
    )
    size = {"width": 4, "layers": 1, "heads": 2, "head_hidden": 8}
    model, losses = train_policy(data, tokenizer, 3, size, CodeFitConfig(5, 16, warmup=0), Run(0))
    save_policy(tmp_path, "draft", model, {})
    assert np.isfinite(losses).all()
    assert max(losses) < 100  # what never moves does not weigh
    draft, target = (load_policy(tmp_path / name, "torch") for name in ("draft", "target"))
    assert isinstance(target, LeRobotPolicy)
    assert codes_differ(draft.signature, target.signature) is None
    assert replace(draft.signature, parameters=0) == replace(target.signature, parameters=0)


def test_a_policy_speaks_the_tokenizer_beside_it_to_the_bit(parallel: Path) -> None:
    tokenizer = lerobot_tokenizer(parallel)
    tokenizer.decoder[0].get_parameter("weight").add_(1e-7)  # as if made by another machine's arithmetic
    save_tokenizer(parallel.parent, tokenizer, {})
    beside = load_decoder(parallel.parent).fingerprint
    assert beside != LeRobotPolicy(DATA / "parallel").decoder.fingerprint
    assert LeRobotPolicy(parallel).decoder.fingerprint == beside


def test_a_tokenizer_of_another_policy_beside_it_is_refused(parallel: Path) -> None:
    for other in (lerobot_tokenizer(DATA / "sequential"), lerobot_tokenizer(parallel)):
        other.decoder[4].get_parameter("bias").add_(0.01)
        save_tokenizer(parallel.parent, other, {})
        with pytest.raises(
            CheckpointError, match=r"tokenizer\.safetensors: fingerprint .*: not the tokenizer"
        ):
            LeRobotPolicy(parallel)


def test_the_fixture_is_small_and_names_no_machine() -> None:
    files = [path for path in DATA.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    assert not any(BACKBONE in name for name in load_file(DATA / "parallel/model.safetensors"))
    for path in files:
        assert b"/tmp/" not in path.read_bytes(), path
