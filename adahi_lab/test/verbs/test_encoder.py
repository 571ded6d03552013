from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from adahi_ros.vision.encoder import Encoder
from test.cli.conftest import Fails, Measured


def test_an_encoder_is_trained_by_a_recipe_and_runs(tmp_path: Path, measured: Measured, fails: Fails) -> None:
    recipe = {
        "architecture": "keypoints",
        "size": {"channels": 4, "layers": 1, "keypoints": 3},
        "frames": {"episodes": 2, "seed": 0, "action_noise": 0.1},
        "seed": 0,
        "fit": {"steps": 3, "batch_size": 8},
    }
    path, out = tmp_path / "eye.yaml", tmp_path / "eye"
    path.write_text(yaml.safe_dump(recipe))
    requested = ("train", "encoder", "ball", "--recipe", path, "--out", out, "--workers", 1)
    result, written = measured(*requested)
    assert "ball_x_m: error" in result.stdout
    encoder = Encoder.load(out)
    assert encoder.encode(np.zeros((2, 64, 64, 3), np.uint8)).shape == (2, 6)
    assert written["fingerprint"] == encoder.fingerprint
    assert written["steps"] == 3
    assert not list(tmp_path.glob("*.training.*"))
    path.write_text(yaml.safe_dump({**recipe, "architecture": "vit"}))
    assert fails(*requested) == "adahi: architecture: 'vit', must be one of keypoints, pixels, resnet18\n"
    assert "task: 'swarm', must be one that a camera looks at" in fails("train", "encoder", "swarm")
