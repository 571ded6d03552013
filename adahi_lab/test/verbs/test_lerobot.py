"""LeRobot's files, made ours through the command."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test.lerobot.lerobot_fixture import completed

from adahi_lab.datasets.bag_dataset import TRAJECTORIES
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.vision.encoder import Encoder
from test.cli.conftest import Fails, Run

ROOT = Path(__file__).parents[3]
DATA = ROOT / "test" / "data" / "lerobot"


def test_a_policy_becomes_target_tokenizer_and_encoder(tmp_path: Path, run: Run, fails: Fails) -> None:
    folder, out = completed(DATA / "parallel", tmp_path / "trained"), tmp_path / "arm"
    result = run("import", "vqbet", folder, "--out", out)
    policy = load_policy(out / "target", "torch")
    encoder = Encoder.load(out / "encoder")
    assert encoder.fingerprint
    assert policy.signature.observation_dim > encoder.features
    assert policy.signature.codes is not None
    assert policy.signature.codes.fingerprint in result.output
    assert "is there already" in fails("import", "vqbet", folder, "--out", out)


def test_an_act_is_not_imported_but_run_by_lerobot(tmp_path: Path, fails: Fails) -> None:
    (tmp_path / "config.json").write_text('{"type": "act", "chunk_size": 100}')
    output = fails("import", "vqbet", tmp_path, "--out", tmp_path / "arm")
    assert output == (
        f"adahi: {tmp_path / 'config.json'}: type: 'act', must be 'vqbet'; other policies run without an "
        "import, by a target file with 'kind: lerobot': see docs/how_to/run_lerobot.md\n"
    )
    assert (ROOT / "docs/how_to/run_lerobot.md").is_file()
    assert not (tmp_path / "arm").exists()


def test_a_dataset_becomes_training_data(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = tmp_path / "arm"
    result = run("data", "from-lerobot", DATA / "dataset", "--task", "arm", "--out", out)
    assert "left out of the observations: observation.images.top" in " ".join(result.output.split())
    data = Trajectories.load(out / TRAJECTORIES)
    assert data.task == "arm"
    assert len(data) > 1
    assert np.isfinite(data.actions).all()


def test_demonstrations_become_a_dataset(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    demos = tmp_path / "demos.safetensors"
    run("data", "simulate", "ball", "--episodes", "2", "--workers", "1", "--out", demos)
    run("data", "to-lerobot", demos, "--out", tmp_path / "dataset")
    recorded = Trajectories.load(demos)
    info = json.loads((tmp_path / "dataset/meta/info.json").read_text())
    spec = make("ball").spec
    assert info["fps"] == spec.control_rate_hz
    assert info["total_frames"] == len(recorded.observations)
    sizes = {
        name: info["features"][f"observation.{name}"]["shape"] for name in ("state", "environment_state")
    }
    joints = len(spec.joint_names)
    assert sizes == {"state": [joints], "environment_state": [spec.observation_dim - joints + spec.goal_dim]}


def test_of_a_robot_that_nothing_is_known_of_the_rate_must_be_given(
    tmp_path: Path, run: Run, fails: Fails
) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    ones = np.ones((4, 3), dtype=np.float32)
    Trajectories("arm", ones, ones, ones[:1, :0], np.array([4])).save(tmp_path / TRAJECTORIES)
    requested = ("data", "to-lerobot", tmp_path, "--out", tmp_path / "dataset")
    assert "--fps: none, must be given for arm" in fails(*requested)
    run(*requested, "--fps", "10", "--joints", "1")


def test_bags_become_a_dataset_by_lerobot_alone(
    bag: Path, contract_file: Path, tmp_path: Path, fails: Fails
) -> None:
    requested = ("data", "to-lerobot", bag, "--out", tmp_path / "dataset")
    assert "--contract: none, must say what a step of the bags is" in fails(*requested)
    assert "fps: 10.0, must be left out where data" in fails(*requested, "--fps", "10")
    if find_spec("lerobot") is None:
        assert "LeRobot: lerobot: not installed; pip" in fails(*requested, "--contract", contract_file)
    cut = shutil.copytree(bag, tmp_path / "cut")
    (cut / "metadata.yaml").unlink()
    of_cut = ("data", "to-lerobot", cut, "--out", tmp_path / "rest", "--contract", contract_file)
    assert "no metadata.yaml" in fails(*of_cut)
    if find_spec("lerobot") is None:  # the bag is read
        assert "LeRobot: lerobot: not installed; pip" in fails(*of_cut, "--incomplete")


def test_what_is_no_policy_is_reported(tmp_path: Path, fails: Fails) -> None:
    assert "config.json" in fails("import", "vqbet", tmp_path / "none", "--out", tmp_path / "arm")
    assert not (tmp_path / "arm").exists()
