"""Beside benchmarks/lerobot_target_conformance.py, which compares plans with those of LeRobot itself.

LeRobot is not among the packages of the tests. `make test-lerobot` runs them with 0.6.1, and those with 0.4.4
that need no transformers.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Sampling, TargetUnavailableError
from adahi_ros.policies.remote.lerobot_folder import import_lerobot
from adahi_ros.policies.remote.lerobot_metadata import ADAPTER, CONFIG, PROCESSORS, WEIGHTS
from adahi_ros.policies.remote.lerobot_target import LeRobotTarget
from benchmarks.lerobot_target_conformance import (
    CAMERA,
    ENVIRONMENT,
    FRAME,
    ROBOTS,
    STATE,
    observed,
    write_policy,
)

needs_lerobot = pytest.mark.skipif(
    importlib.util.find_spec("lerobot") is None, reason="LeRobot is not installed"
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
KINDS = ["act", "diffusion", pytest.param("smolvla", marks=needs_transformers)]
DRAWS = np.array([[0.1], [0.5], [0.9]])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where policies of each type are made, once."""
    import_lerobot()
    return tmp_path_factory.mktemp("lerobot")


def made(folders: Path, kind: str, **values: Any) -> LeRobotTarget:
    if not (folders / kind).exists():
        write_policy(folders / kind, kind, folders)
    return LeRobotTarget(folders, folder=kind, device="cpu", **values)


def seen(target: LeRobotTarget) -> Any:
    states = tuple(each.name for each in target.signature.features)
    return observed(states, target.signature.history, target.signature.instruction)


@needs_lerobot
def test_the_signature_is_what_the_config_says(folders: Path) -> None:
    signature = made(folders, "diffusion", rate_hz=10).signature
    assert (signature.history, signature.horizon, signature.action_dim) == (2, 4, 2)
    assert {each.name: each.size for each in signature.features} == {STATE: 4, ENVIRONMENT: 3}
    assert [(each.name, each.rows, each.columns) for each in signature.images] == [(CAMERA, *FRAME)]
    assert signature.rate_hz == 10.0
    assert not signature.instruction
    assert signature.parameters > 10_000


@needs_lerobot
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_depends_on_nothing_but_its_request(folders: Path, kind: str) -> None:
    target = made(folders, kind)
    observations = seen(target)
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    together = target.propose(observations, DRAWS).actions
    assert torch.equal(torch.random.get_rng_state(), before)
    for row in (2, 0, 0):  # interleaved, and one asked again
        one = np.array([row])
        alone = target.propose(observations.rows(one), DRAWS[one]).actions
        np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-5)
    assert together.shape == (ROBOTS, target.signature.horizon, 2)
    assert np.abs(together[0] - together[1]).max() > 1e-3
    drawn = target.propose(observations, DRAWS[::-1]).actions
    assert (np.abs(drawn - together).max() > 1e-3) == (kind != "act")


@needs_lerobot
def test_older_observations_are_read(folders: Path) -> None:
    target = made(folders, "diffusion")
    observations = seen(target)
    planned = target.propose(observations, DRAWS).actions
    observations.features[STATE][:, 0] += 1.0
    assert np.abs(target.propose(observations, DRAWS).actions - planned).max() > 1e-3


@needs_lerobot
@needs_transformers
def test_each_robot_is_guided_by_what_it_has_committed_to(folders: Path) -> None:
    target = made(folders, "smolvla")
    observations = seen(target)
    committed = np.random.default_rng(3).normal(size=(ROBOTS, 3, 2)).astype(np.float32)
    committed[1, 1:], committed[2] = np.nan, np.nan
    plans = target.propose(observations, DRAWS, Sampling(committed=committed)).actions
    free = target.propose(observations, DRAWS).actions
    one = np.array([1])
    alone = Sampling(committed=committed[one][:, :1])
    expected = target.propose(observations.rows(one), DRAWS[one], alone).actions[0]
    np.testing.assert_allclose(plans[1], expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(plans[2], free[2], rtol=0, atol=1e-5)
    near, far = (np.abs(each[0, :3] - committed[0]).mean() for each in (plans, free))
    assert near < far


@needs_lerobot
@needs_transformers
def test_the_sentence_is_read(folders: Path) -> None:
    instructed = made(folders, "smolvla")
    observations = seen(instructed)
    assert instructed.signature.instruction
    always = made(folders, "smolvla", instruction={"always": observations.instructions[0]})
    assert not always.signature.instruction
    plans, fixed = (each.propose(observations, DRAWS).actions for each in (instructed, always))
    np.testing.assert_allclose(fixed[0], plans[0], rtol=0, atol=1e-5)
    assert np.abs(fixed[1] - plans[1]).max() > 1e-6


@needs_lerobot
def test_a_plan_may_be_cut_and_computed_in_fewer_bits(folders: Path) -> None:
    whole, cut = made(folders, "act"), made(folders, "act", horizon=3)
    half = made(folders, "act", dtype="bfloat16")
    observations = seen(whole)
    plans = whole.propose(observations, DRAWS).actions
    np.testing.assert_array_equal(cut.propose(observations, DRAWS).actions, plans[:, :3])
    rounded = half.propose(observations, DRAWS).actions
    assert 0 < np.abs(rounded - plans).max() < 0.1
    assert rounded.dtype == np.float32


@needs_lerobot
def test_the_scale_of_the_actions_is_that_of_the_data(folders: Path) -> None:
    target = made(folders, "act")
    unnormalizer = target._after.steps[0]
    np.testing.assert_allclose(target.action_scale, unnormalizer.stats["action"]["std"], rtol=1e-5)


@needs_lerobot
def test_other_weights_have_another_digest(folders: Path) -> None:
    assert made(folders, "act").digest == made(folders, "act").digest != made(folders, "diffusion").digest


@needs_lerobot
def test_weights_that_are_missing_are_reported(folders: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    write_policy(tmp_path / "act", "act", tmp_path)
    weights = load_file(tmp_path / "act" / WEIGHTS)
    weights.pop("model.action_head.bias")
    save_file(weights, tmp_path / "act" / WEIGHTS)
    (tmp_path / "target.yaml").write_text("kind: lerobot\nfolder: act\ndevice: cpu\n")
    with pytest.raises(CheckpointError, match=r"target\.yaml: kind: 'lerobot': .*model\.action_head\.bias"):
        load_policy(tmp_path / "target", "torch")


def changed(folders: Path, beside: Path, **values: Any) -> LeRobotTarget:
    """The ACT, with other values in its config.json."""
    made(folders, "act")
    shutil.copytree(folders / "act", beside / "changed")
    config = json.loads((beside / "changed" / CONFIG).read_text())
    (beside / "changed" / CONFIG).write_text(json.dumps({**config, **values}))
    return LeRobotTarget(beside, folder="changed", device="cpu")


@needs_lerobot
def test_no_weights_of_the_backbone_are_downloaded(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError("there is no internet")

    monkeypatch.setattr("torch.hub.download_url_to_file", offline)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    default = changed(folders, tmp_path, pretrained_backbone_weights="ResNet18_Weights.IMAGENET1K_V1")
    act = made(folders, "act")
    plans, expected = (each.propose(seen(act), DRAWS).actions for each in (default, act))
    np.testing.assert_array_equal(plans, expected)


@needs_lerobot
def test_null_fields_of_a_newer_lerobot_are_ignored(folders: Path, tmp_path: Path) -> None:
    assert changed(folders, tmp_path, field_of_tomorrow=None).signature.horizon == 8


@needs_lerobot
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            {"of_tomorrow": 1},
            r"of_tomorrow: saved by a newer LeRobot than LeRobot \d.*; pip install",
        ),
        ({"type": "act9"}, r"type: 'act9', must be one that LeRobot \S+ has here: .*act"),
        ({"input_features": None}, r"input_features: None, must name what the policy reads"),
        ({"n_action_steps": 9}, r".* Got 9 for `n_action_steps` and 8 for `chunk_size`"),
    ],
)
def test_a_config_that_cannot_be_used_says_why(
    folders: Path, tmp_path: Path, values: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=rf"^config\.json: {reason}"):
        changed(folders, tmp_path, **values)


@needs_lerobot
def test_relative_actions_are_added_to_the_state_of_their_request(folders: Path, tmp_path: Path) -> None:
    relative = pytest.importorskip("lerobot.processor.relative_action_processor")
    from lerobot.policies.factory import make_pre_post_processors

    act = made(folders, "act")
    shutil.copytree(folders / "act", tmp_path / "act")
    before, after = make_pre_post_processors(act._config, folders / "act")
    first = relative.RelativeActionsProcessorStep(enabled=True)
    before.steps = [first, *before.steps]
    after.steps = [*after.steps, relative.AbsoluteActionsProcessorStep(enabled=True, relative_step=first)]
    for part in (before, after):
        part.save_pretrained(tmp_path / "act")
    observations = seen(act)
    target = LeRobotTarget(tmp_path, folder="act", device="cpu")
    expected = act.propose(observations, DRAWS).actions + observations.features[STATE][:, :, :2]
    np.testing.assert_allclose(target.propose(observations, DRAWS).actions, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(target.action_scale, act.action_scale, rtol=1e-5)


@needs_lerobot
def test_a_plugin_of_lerobot_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "lerobot_policy_of_a_test"
    (tmp_path / f"{name}.py").write_text("")
    (tmp_path / f"{name}-1.dist-info").mkdir()
    (tmp_path / f"{name}-1.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_lerobot()
    assert isinstance(sys.modules.pop(name), ModuleType)


@needs_lerobot
def test_too_little_memory_is_a_target_that_is_not_there_now(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nmore")

    target = made(folders, "act")
    monkeypatch.setattr(target._policy, "predict_action_chunk", fails)
    with pytest.raises(TargetUnavailableError, match=r"^lerobot: CUDA out of memory\.$"):
        target.propose(seen(target), DRAWS)


@needs_lerobot
def test_what_the_config_says_otherwise_is_refused(folders: Path) -> None:
    with pytest.raises(ValueError, match=r"^horizon: 9, must be an integer from 1 to 8"):
        made(folders, "act", horizon=9)
    with pytest.raises(ValueError, match=r"images\.a\.as: 'a', must be one of observation\.images\.top"):
        made(folders, "act", images={"a": {"size": [32, 40]}})


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with one that has a policy's files, all empty."""
    (tmp_path / "policy").mkdir()
    for name in (CONFIG, WEIGHTS, *PROCESSORS):
        (tmp_path / "policy" / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("folder", None, r"folder: None, must be a text"),
        ("folder", "nowhere", r"folder: 'nowhere', has no config\.json, must be a folder of LeRobot's with"),
        ("device", 1, r"device: 1, must be a text"),
        ("device", "tpu9", r"device: 'tpu9', must be auto, or one that torch has here"),
        ("dtype", "int8", r"dtype: 'int8', must be one of float32, bfloat16, float16"),
        ("compile", "yes", r"compile: 'yes', must be true or false"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(beside: Path, field: str, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        LeRobotTarget(beside, **{"folder": "policy", field: value})


def test_a_policy_from_before_the_processors_is_distinguished(beside: Path) -> None:
    (beside / "policy" / PROCESSORS[1]).unlink()
    with pytest.raises(ValueError, match=r"has no policy_postprocessor\.json"):
        LeRobotTarget(beside, folder="policy")


def test_a_folder_that_is_not_a_policys_says_which_one_is(beside: Path) -> None:
    newest = beside / "run" / "checkpoints" / "000200"
    for each in (newest, newest.with_name("000100")):
        shutil.copytree(beside / "policy", each / "pretrained_model")
    for folder in ("run", "run/checkpoints", "run/checkpoints/000200", str(beside / "run")):
        reason = (
            rf"^folder: '{folder}', is a training run, must be .*: .*run/checkpoints/000200/pretrained_model$"
        )
        with pytest.raises(ValueError, match=reason):
            LeRobotTarget(beside, folder=folder)


def test_an_adapter_and_a_name_on_the_hub_say_what_to_do(beside: Path) -> None:
    with pytest.raises(ValueError, match=r"there is none; .*: hf download lerobot/act --local-dir"):
        LeRobotTarget(beside, folder="lerobot/act")
    (beside / "policy" / WEIGHTS).unlink()
    (beside / "policy" / ADAPTER).write_text('{"base_model_name_or_path": "lerobot/smolvla_base"}')
    with pytest.raises(ValueError, match=r"is a PEFT adapter, must be merged into lerobot/smolvla_base"):
        LeRobotTarget(beside, folder="policy")


def test_where_lerobot_is_missing_the_error_says_what_to_install(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torchvision", "lerobot", "lerobot.policies"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install lerobot==0\.6\.1 .*, lerobot==0\.4\.4 "):
        LeRobotTarget(beside, folder="policy")
