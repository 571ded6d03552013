"""OGBench's puzzle as a task, and the target that searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip(
    "ogbench", reason="OGBench is optional: pip install --no-deps -r requirements/ogbench.txt"
)

from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.history import History
from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.tasks.episodes import seen_by_target
from adahi_lab.tasks.lights_out import board, hand_of
from adahi_lab.tasks.ogbench import OGBenchPuzzle
from adahi_lab.training.searched_flow import as_read
from adahi_ros.core.signature import GOAL
from adahi_ros.policies.backends import load_policy


def begun(episodes: range) -> OGBenchPuzzle:
    task = make("ogbench_puzzle")
    assert isinstance(task, OGBenchPuzzle)
    task.reset(0, episodes)
    return task


def test_an_episode_is_the_same_alone_and_among_others() -> None:
    draws = np.random.default_rng(0).uniform(-1, 1, (5, 3, 5))
    together, alone = begun(range(5, 8)), begun(range(6, 7))
    np.testing.assert_array_equal(alone.observation[0], together.observation[1])
    np.testing.assert_array_equal(alone.goal[0], together.goal[1])
    for action in draws:
        together.step(action)
    alone = begun(range(6, 7))
    for action in draws:
        alone.step(action[1:2])
    np.testing.assert_array_equal(alone.observation[0], together.observation[1])


def test_its_observation_is_the_librarys_and_the_hand_is_found_in_it() -> None:
    task = begun(range(2))
    for row, info in enumerate(task.infos):
        place = info["proprio/effector_pos"][:2] - (0.425, 0.0)
        np.testing.assert_allclose(hand_of(task.observation[row]), place, atol=1e-6)
        np.testing.assert_array_equal(task.observation[row, :6], info["proprio/joint_pos"].astype(np.float32))
    assert task.observation.shape == (2, 6 + 6 + 7 + 4 * 16)


def test_the_expert_solves_each_puzzle_by_its_fewest_presses() -> None:
    task, expert = begun(range(6)), make_expert("ogbench_puzzle")
    fewest, presses = (task.labels > 0).sum(axis=1), np.zeros(6)
    before = task.goal
    while not task.done.all():
        task.step(expert.act(task))
        presses += (task.goal != before).any(axis=1)
        before = task.goal
    assert task.success.all()
    np.testing.assert_array_equal(presses, fewest)


def test_the_target_plans_by_what_the_search_finds_in_the_goal() -> None:
    target = load_policy(PolicyFiles.of_task("ogbench_puzzle").folder / "plans" / "target", "onnxruntime")
    task = begun(range(8))
    observations = History(target.signature, 8).push(seen_by_target(task))
    draws = np.full((8, target.draws), 0.5)
    plans = target.propose(observations, draws).actions
    towards = board().places[task.labels.argmax(axis=1)] - hand_of(task.observation)
    far = np.linalg.norm(towards, axis=1) > 0.05
    assert far.sum() >= 3
    assert ((plans[:, :6, :2].sum(axis=1) * towards).sum(axis=1)[far] > 0).all()
    elsewhere = replace(observations, conditions={GOAL: 1.0 - observations.conditions[GOAL]})
    assert np.abs(target.propose(elsewhere, draws).actions - plans).max() > 0.1


def test_a_flow_reads_what_the_search_found_or_the_wrong_lights() -> None:
    recorded = collect_parallel("ogbench_puzzle", 1, 0, 0.1, workers=1).trajectories
    found, wrong = (as_read(recorded, f"{kind}_flow") for kind in ("searched", "unsearched"))
    assert found.goals.shape == wrong.goals.shape == (1, 0)
    np.testing.assert_array_equal(found.image_features, recorded.labels)
    task = begun(range(1))
    np.testing.assert_array_equal(wrong.image_features[0], task.goal[0])
    assert as_read(recorded, "flow") is recorded
