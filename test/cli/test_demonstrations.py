from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from typer.testing import Result

from adahi_ros.core.trajectories import Trajectories


def test_demos_become_trajectories(tmp_path: Path, run: Callable[..., Result]) -> None:
    out, figures = tmp_path / "new" / "ball.safetensors", tmp_path / "figures" / "demos.json"
    options = ["--episodes", 6, "--seed", 3, "--workers", 1]
    result = run("demos", "ball", "--out", out, "--json", figures, *options)
    assert result.exit_code == 0
    recorded = Trajectories.load(out)
    written = json.loads(figures.read_text())
    assert recorded.task == written["task"] == "ball"
    assert (written["attempted"], written["seed"]) == (6, 3)
    assert (written["kept"], written["steps"]) == (len(recorded), len(recorded.actions))
    assert str(out) in result.output  # however narrow the terminal
    again = tmp_path / "again.safetensors"
    run("demos", "ball", "--out", again, *options)
    np.testing.assert_array_equal(Trajectories.load(again).actions, recorded.actions)
