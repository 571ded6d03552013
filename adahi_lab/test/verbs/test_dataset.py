"""`adahi data simulate`, and `adahi lab index`, which makes an index of these or of a robot's own bags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.heisd.retrieval import KIND, load_retrieval
from adahi_lab.papers.heisd.verb import index
from test.cli.conftest import Fails, Measured, Run


def test_demos_become_trajectories(tmp_path: Path, run: Run, measured: Measured) -> None:
    out = tmp_path / "new" / "ball.safetensors"
    options = ["--episodes", 6, "--seed", 3, "--workers", 1]
    result, written = measured("data", "simulate", "ball", "--out", out, *options)
    recorded = Trajectories.load(out)
    assert recorded.task == written["task"] == "ball"
    assert (written["attempted"], written["seed"]) == (6, 3)
    assert (written["kept"], written["steps"]) == (len(recorded), len(recorded.actions))
    assert str(out) in result.output  # however narrow the terminal
    again = tmp_path / "again.safetensors"
    run("data", "simulate", "ball", "--out", again, *options)
    np.testing.assert_array_equal(Trajectories.load(again).actions, recorded.actions)


@pytest.mark.parametrize(("task", "goal_dim"), [("ball", 2), ("ball_instructed", 0)])
def test_an_index_has_the_goal_of_demonstrations_that_the_robot_is_given(
    task: str, goal_dim: int, tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2)
    Trajectories(task, data.observations, data.actions, data.goals, data.ends).save(tmp_path / "demos")
    demos, figures = tmp_path / "demos", tmp_path / "figures.json"
    index(task, 1, tmp_path / "out", demos, most_mib=1.0, json_file=figures)
    policy = load_retrieval(tmp_path / "out" / KIND)
    assert policy.signature.goal_dim == goal_dim
    assert figures.is_file()


def test_demonstrations_of_another_task_are_refused(
    tmp_path: Path, fails: Fails, demonstrations: Callable[[int], Trajectories]
) -> None:
    demonstrations(2).save(tmp_path / "demos")
    output = fails("lab", "index", "ball", "--demos", tmp_path / "demos", "--out", tmp_path)
    assert "demos: of task 'toy', must be of 'ball'" in output


def test_a_methods_episodes_train_without_dds(
    tmp_path: Path, run: Run, measured: Measured, fails: Fails
) -> None:
    out = tmp_path / "runs.safetensors"
    options = ["--method", "plan_16", "--episodes", 4, "--workers", 1]
    written = measured("data", "simulate", "ball_instructed", "--out", out, *options)[1]
    recorded = Trajectories.load(out)
    assert (
        (written["kept"], written["steps"])
        == (4, len(recorded.actions))
        == (len(recorded), recorded.ends[-1])
    )
    assert 0 <= written["succeeded"] <= 4
    assert recorded.goals.shape == (4, 2)  # as the verifier gets them in a bag
    again = tmp_path / "again.safetensors"
    run("data", "simulate", "ball_instructed", "--out", again, *options)
    np.testing.assert_array_equal(Trajectories.load(again).actions, recorded.actions)
    assert "method: " in fails(
        "data", "simulate", "ball_seen", "--out", out, "--method", "plan_8", "--workers", 1
    )
    assert "method: 'plan_8,plan_4', must be one" in fails(
        "data", "simulate", "ball", "--out", out, "--method", "plan_8,plan_4", "--workers", 1
    )
