"""What LeRobot's JSON and statistics say of a policy, without LeRobot."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from adahi_ros.policies.remote.lerobot_metadata import described_by_files, metadata_of

STATE, FRONT = "observation.state", "observation.images.front"
CONFIG = {
    "type": "act",
    "n_obs_steps": 1,
    "chunk_size": 100,
    "n_action_steps": 50,
    "input_features": {
        STATE: {"type": "STATE", "shape": [3]},
        FRONT: {"type": "VISUAL", "shape": [3, 480, 640]},
        "observation.images.empty_camera_0": {"type": "VISUAL", "shape": [3, 224, 224]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [2]}},
}


def pretrained(folder: Path, stats: dict[str, Any], tokenizer: bool = False, **changes: Any) -> Path:
    """Write the files of LeRobot's that are read, with these statistics."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    state = "policy_preprocessor_step_3_normalizer_processor.safetensors"
    steps = [{"registry_name": "normalizer_processor", "state_file": state}]
    steps += [{"registry_name": "tokenizer_processor"}] * tokenizer
    (folder / "policy_preprocessor.json").write_text(json.dumps({"steps": steps}))
    (folder / "policy_postprocessor.json").write_text(json.dumps({"steps": []}))
    save_file({name: np.array(each, np.float32) for name, each in stats.items()}, folder / state)
    return folder


def test_the_config_says_what_a_policy_reads_and_plans(tmp_path: Path) -> None:
    found = metadata_of(pretrained(tmp_path / "act", {}))
    assert (found.history, found.horizon, found.action_dim, found.instruction) == (1, 100, 2, False)
    assert (found.state, found.images) == ({STATE: 3}, {FRONT: (480, 640)})
    assert metadata_of(pretrained(tmp_path / "vla", {}, tokenizer=True)).instruction


def test_a_config_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json: must have a type that predicts chunks"):
        metadata_of(pretrained(tmp_path, {}, chunk_size=None, n_action_steps=None))
    flat = {FRONT: {"type": "VISUAL", "shape": [480, 640]}}
    with pytest.raises(ValueError, match=r"front: VISUAL of shape \(480, 640\), must be a state"):
        metadata_of(pretrained(tmp_path, {}, input_features=flat))
    with pytest.raises(ValueError, match=r"elsewhere: has no config\.json, must be a folder of LeRobot's"):
        metadata_of(tmp_path / "elsewhere")
    pretrained(tmp_path / "run/checkpoints/last/pretrained_model", {})
    with pytest.raises(ValueError, match=r"is a training run, .*: .*run/checkpoints/last/pretrained_model$"):
        metadata_of(tmp_path / "run")
    with pytest.raises(ValueError, match="hf download me/act --local-dir pretrained_model"):
        metadata_of(Path("me/act"))


def test_ranges_follow_the_parts_of_the_target_file(tmp_path: Path) -> None:
    stats = {
        f"{STATE}.min": [-1.0, -2.0, -3.0],
        f"{STATE}.max": [1.0, 2.0, 3.0],
        f"{STATE}.q01": [-0.9, -1.9, -2.9],
        "action.min": [-5.0, -6.0],
    }
    pretrained(tmp_path / "act", stats)
    parts = {"arm": {"size": 2, "as": STATE}, "hand": {"size": 1, "as": STATE}}
    values = {"kind": "lerobot", "folder": "act", "device": "cpu", "state": parts, "rate_hz": 30}
    signature, features, actions = described_by_files(tmp_path, values)
    assert [each.name for each in signature.features] == ["arm", "hand"]
    assert (features.minimum, features.maximum) == ((-1.0, -2.0, -3.0), (1.0, 2.0, 3.0))
    np.testing.assert_allclose(features.q01, (-0.9, -1.9, -2.9))
    assert (actions.minimum, actions.maximum) == ((-5.0, -6.0), ())


def test_a_mean_and_a_deviation_make_a_range(tmp_path: Path) -> None:
    pretrained(tmp_path / "act", {"action.mean": [1.0, math.nan], "action.std": [2.0, 1.0]})
    _, features, actions = described_by_files(tmp_path, {"folder": "act"})
    assert (features.minimum, actions.maximum[0], actions.minimum[0]) == ((), 6.0, -4.0)


def test_damaged_statistics_are_unknown(tmp_path: Path) -> None:
    folder = pretrained(tmp_path / "act", {"action.min": [-5.0, -6.0]})
    next(folder.glob("*.safetensors")).write_bytes(b"version https://git-lfs")
    assert described_by_files(tmp_path, {"folder": "act"})[2].minimum == ()
