from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_ros.tasks import EXPERTS, TASKS, make, make_expert
from adahi_ros.tasks.ball import BallBalancing, BallExpert, BallParameters
from adahi_ros.tasks.base import Task
from adahi_ros.tasks.demonstrations import collect
from adahi_ros.trajectories import Trajectories


class Idle:
    """An expert that is none."""

    def reset(self, seed: int, episodes: object) -> None:
        pass

    def act(self, task: Task) -> np.ndarray:
        return np.zeros((len(task.done), task.spec.action_dim))


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_has_an_expert_whose_noisy_episodes_succeed(name: str) -> None:
    result = collect(make(name), make_expert(name), 200, seed=21, action_noise=0.1)
    assert result.attempted == 200
    assert len(result.trajectories) == 200 - result.failed
    assert result.failed <= 4
    assert result.trajectories.task == name


WORLD = BallParameters()


def test_a_recording_survives_the_file(tmp_path: Path) -> None:
    recorded = collect(BallBalancing(), BallExpert(), 20, seed=4, action_noise=0.1).trajectories
    recorded.save(tmp_path / "ball.safetensors")
    loaded = Trajectories.load(tmp_path / "ball.safetensors")
    assert loaded.task == "ball"
    for name in ("observations", "actions", "goals", "ends"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(recorded, name))


def test_each_episode_ends_with_its_hold_on_the_goal() -> None:
    recorded = collect(BallBalancing(), BallExpert(), 30, seed=4, action_noise=0.1).trajectories
    for (start, end), goal in zip(recorded.spans(), recorded.goals, strict=True):
        position = recorded.observations[start:end, 2:4]
        # Observations come before actions: the last one shows all but one of the steps held.
        near = np.linalg.norm(position[1 - WORLD.hold_steps :] - goal, axis=1)
        assert np.all(near <= WORLD.goal_tolerance_m + 1e-6)
        assert end - start <= WORLD.max_steps


def test_without_noise_the_recorded_actions_replay_the_episode() -> None:
    recorded = collect(BallBalancing(), BallExpert(), 3, seed=8, action_noise=0.0).trajectories
    assert len(recorded) == 3
    for number, (start, end) in enumerate(recorded.spans()):
        task = BallBalancing()
        task.reset(8, [number])
        for step in range(start, end):
            np.testing.assert_allclose(task.observation[0], recorded.observations[step], atol=1e-4)
            task.step(recorded.actions[None, step].astype(np.float64))
        assert task.success[0]


def test_noise_is_executed_but_not_recorded() -> None:
    clean = collect(BallBalancing(), BallExpert(), 5, seed=2, action_noise=0.0).trajectories
    noisy = collect(BallBalancing(), BallExpert(), 5, seed=2, action_noise=0.3).trajectories
    np.testing.assert_array_equal(clean.actions[0], noisy.actions[0])
    assert not np.array_equal(clean.observations[1], noisy.observations[1])
    again = collect(BallBalancing(), BallExpert(), 5, seed=2, action_noise=0.3).trajectories
    np.testing.assert_array_equal(noisy.observations, again.observations)


def test_progress_counts_up() -> None:
    told: list[tuple[int, int]] = []
    collect(BallBalancing(), BallExpert(), 2, 0, 0.0, progress=lambda step, most: told.append((step, most)))
    assert [step for step, _ in told] == list(range(1, len(told) + 1))
    assert {most for _, most in told} == {WORLD.max_steps}


@pytest.mark.parametrize(
    ("episodes", "noise", "message"),
    [(0, 0.1, "episodes: 0"), (2, -0.1, "action_noise: -0.1"), (2, float("nan"), "action_noise: nan")],
)
def test_wrong_arguments_are_named(episodes: int, noise: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collect(BallBalancing(), BallExpert(), episodes, 0, noise)


def test_failures_are_left_out_and_counted() -> None:
    hard = BallParameters(max_steps=75)  # too short for some of the episodes
    result = collect(BallBalancing(hard), BallExpert(), 40, seed=0, action_noise=0.0)
    assert 0 < result.failed < 40
    assert len(result.trajectories) == 40 - result.failed
    with pytest.raises(ValueError, match="none of 3 succeeded on 'ball'"):
        collect(BallBalancing(), Idle(), 3, seed=0, action_noise=0.0)


def test_the_registries_agree_and_name_what_is_allowed() -> None:
    assert TASKS.keys() == EXPERTS.keys()
    assert all(make(name).spec.name == name for name in TASKS)
    with pytest.raises(ValueError, match="task: 'bowl', expected one of ball"):
        make("bowl")
    with pytest.raises(ValueError, match="expert: 'bowl', expected one of ball"):
        make_expert("bowl")
