"""`adahi data simulate --method`: what is recorded, by which policies, with noise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import make
from test.bags.conftest import run

TASK, EPISODES = "ball_instructed", 2
SHIPPED = Path(__file__).resolve().parents[3] / "checkpoints" / TASK


def recorded(out: Path, method: str, *how: object) -> Trajectories:
    run(
        "data",
        "simulate",
        TASK,
        "--method",
        method,
        "--episodes",
        EPISODES,
        "--workers",
        1,
        "--out",
        out,
        *how,
    )
    return Trajectories.load(out)


def test_the_policies_of_a_folder_act(tmp_path: Path, fails: Callable[..., str]) -> None:
    """With the network of another intent, the robot acts by that."""
    mine = tmp_path / "mine"
    shutil.copytree(SHIPPED, mine)
    shipped = recorded(tmp_path / "shipped.safetensors", "intent")
    same = recorded(tmp_path / "same.safetensors", "intent", "--checkpoints", mine)
    np.testing.assert_array_equal(same.actions, shipped.actions)
    for path in (mine / "plans").glob("intent_of_plan*"):
        path.rename(path.with_name(path.name.replace("intent_of_plan", "intent")))
    other = recorded(tmp_path / "other.safetensors", "intent", "--checkpoints", mine)
    assert other.actions.shape != shipped.actions.shape or (other.actions != shipped.actions).any()
    without = "data", "simulate", TASK, "--out", tmp_path / "demos.safetensors"
    assert "checkpoints: " in (said := fails(*without, "--checkpoints", mine))
    assert "must be left out where --method is not given" in said


def test_noise_is_executed_and_not_recorded(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    noisy = recorded(tmp_path / "a.safetensors", "plan_8", "--action-noise", 0.3, "--json", figures)
    assert json.loads(figures.read_text())["action_noise"] == 0.3
    exact = recorded(tmp_path / "b.safetensors", "plan_8")
    np.testing.assert_array_equal(noisy.actions[0], exact.actions[0])
    np.testing.assert_array_equal(noisy.observations[0], exact.observations[0])
    for data, follows in ((exact, True), (noisy, False)):
        assert follows_its_actions(data) == follows


def follows_its_actions(data: Trajectories) -> bool:
    """Whether the recorded actions, executed exactly, give the recorded observations of the first episode."""
    from adahi_lab.evaluation.episodes import lesson_episodes
    from adahi_lab.training.recorded_rollouts import FIRST_EPISODE

    world = make(TASK)
    world.reset(0, lesson_episodes(1, FIRST_EPISODE))
    for step in range(int(data.ends[0])):
        if not np.array_equal(world.observation[0], data.observations[step]):
            return False
        world.step(data.actions[step : step + 1])
    return True
