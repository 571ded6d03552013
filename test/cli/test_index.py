"""`adahi index`: from demonstrations, or a robot's own bags, to an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adahi_ros.cli.lab.dataset import index
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.evaluation.loaded_policies import RETRIEVAL
from adahi_ros.policies.retrieval import load_retrieval


def test_an_index_is_made_of_demonstrations(
    tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2)
    Trajectories("ball", data.observations, data.actions, data.goals, data.ends).save(tmp_path / "demos")
    made = {"demonstrations": tmp_path / "demos", "dataset": None, "json_file": tmp_path / "figures.json"}
    index("ball", 1, out=tmp_path / "out", horizon=5, neighbours=3, most_mib=1.0, seed=0, **made)
    policy = load_retrieval(tmp_path / "out" / RETRIEVAL)
    assert (policy.signature.horizon, policy.signature.goal_dim) == (5, 2)
    assert (tmp_path / "figures.json").is_file()


def test_of_a_task_whose_goal_the_target_alone_is_told_the_goal_is_left_out(
    tmp_path: Path, demonstrations: Callable[[int], Trajectories]
) -> None:
    data = demonstrations(2)
    named = Trajectories("ball_instructed", data.observations, data.actions, data.goals, data.ends)
    named.save(tmp_path / "demos")
    made = {"demonstrations": tmp_path / "demos", "dataset": None, "json_file": None}
    index("ball_instructed", 1, out=tmp_path, horizon=5, neighbours=3, most_mib=1.0, seed=0, **made)
    assert load_retrieval(tmp_path / RETRIEVAL).signature.goal_dim == 0


def test_demonstrations_of_another_task_are_refused(
    tmp_path: Path, fails: Callable[..., str], demonstrations: Callable[[int], Trajectories]
) -> None:
    demonstrations(2).save(tmp_path / "demos")
    said = fails("index", "ball", "--demos", tmp_path / "demos", "--out", tmp_path)
    assert "demos: of task 'toy', must be of 'ball'" in said
