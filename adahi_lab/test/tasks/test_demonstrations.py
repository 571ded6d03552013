from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import demonstrations, make, make_expert, names
from adahi_lab.tasks.demonstrations import BATCH_EPISODES, Demonstrations, collect_parallel
from adahi_lab.tasks.task_interface import Task


class Idle:
    """An expert that is none."""

    def reset(self, seed: int, episodes: object) -> None:
        pass

    def act(self, task: Task) -> np.ndarray:
        return np.zeros((len(task.done), task.spec.action_dim))


def recorded_of(episodes: int, seed: int, action_noise: float) -> Demonstrations:
    return collect_parallel("ball", episodes, seed, action_noise, workers=1)


# (episodes, how many may fail): simulators of physics take long
TRIALS = {
    "ball": (200, 4),
    "ball_instructed": (200, 4),
    "kitchen": (8, 1),
    "kitchen_instructed": (8, 1),
    "libero_goal": (10, 2),
    "metaworld": (20, 5),
    "metaworld_10": (10, 4),
    "metaworld_50": (10, 4),
    "swarm": (50, 1),
    "swarm_instructed": (50, 1),
}


# The kitchen's camera draws for long, and its expert is the kitchen's.
@pytest.mark.parametrize("name", [name for name in names() if name != "kitchen_camera"])
def test_every_task_has_an_expert_whose_noisy_episodes_succeed(name: str) -> None:
    episodes, may_fail = TRIALS.get(name, (20, 0))
    result = collect_parallel(name, episodes, seed=21, action_noise=0.1, workers=1)
    assert result.attempted == episodes
    assert len(result.trajectories) == episodes - result.failed
    assert result.failed <= may_fail
    assert result.trajectories.task == name


@pytest.mark.parametrize("name", names())
def test_a_task_shows_what_its_spec_says(name: str, seeing: Callable[[str], Task]) -> None:
    task, expert = seeing(name), make_expert(name)
    spec = task.spec
    task.reset(0, [4, 1])
    expert.reset(0, [4, 1])
    shapes = {
        "observation": spec.observation_dim,
        "joint_positions": len(spec.joint_names),
        "joint_velocities": len(spec.joint_names),
        "state": len(spec.state_names),
        "goal": spec.goal_dim,
        "completed": len(spec.subtask_names),
        "fulfilled": len(spec.subtask_names),
    }
    assert spec.name == name
    assert {key: getattr(task, key).shape for key in shapes} == {key: (2, n) for key, n in shapes.items()}
    expected = np.concatenate([task.joint_positions, task.state], axis=1).astype(np.float32)
    np.testing.assert_array_equal(task.observation, expected)
    action = expert.act(task)
    assert action.shape == (2, spec.action_dim)
    assert np.all((action >= spec.action_low) & (action <= spec.action_high))


def test_any_number_of_processes_records_the_same() -> None:
    episodes = 2 * BATCH_EPISODES + 5  # the last batch is a smaller one
    alone = collect_parallel("ball", episodes, seed=3, action_noise=0.3, workers=1)
    assert alone.failed > 0  # so that some are left out
    for workers in (2, 3):
        reported: list[tuple[int, int]] = []
        note = partial(lambda reported, *done: reported.append(done), reported)
        shared = collect_parallel("ball", episodes, 3, 0.3, workers, note)
        assert (shared.attempted, shared.failed) == (alone.attempted, alone.failed)
        for name in ("observations", "actions", "goals", "ends"):
            expected, found = getattr(alone.trajectories, name), getattr(shared.trajectories, name)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
        assert [done for done, _ in reported] == sorted({done for done, _ in reported})
        assert len(reported) == 3
        assert reported[-1] == (episodes, episodes)


def test_wrong_arguments_are_named_before_any_process_starts() -> None:
    with pytest.raises(ValueError, match="workers: 0"):
        collect_parallel("ball", 3, 0, 0.0, workers=0)
    with pytest.raises(ValueError, match="episodes: 0"):
        collect_parallel("ball", 0, 0, 0.0)
    for noise in (-0.1, float("nan")):
        with pytest.raises(ValueError, match=f"action_noise: {noise}"):
            collect_parallel("ball", 2, 0, noise)
    with pytest.raises(ValueError, match="task: 'bowl'"):
        collect_parallel("bowl", 3, 0, 0.0)


def test_a_recording_survives_the_file(tmp_path: Path) -> None:
    recorded = recorded_of(20, seed=4, action_noise=0.1).trajectories
    recorded.save(tmp_path / "ball.safetensors")
    loaded = Trajectories.load(tmp_path / "ball.safetensors")
    assert loaded.task == "ball"
    for name in ("observations", "actions", "goals", "ends"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(recorded, name))


def test_noise_is_executed_but_not_recorded() -> None:
    clean = recorded_of(5, seed=2, action_noise=0.0).trajectories
    noisy = recorded_of(5, seed=2, action_noise=0.3).trajectories
    np.testing.assert_array_equal(clean.actions[0], noisy.actions[0])
    assert not np.array_equal(clean.observations[1], noisy.observations[1])
    again = recorded_of(5, seed=2, action_noise=0.3).trajectories
    np.testing.assert_array_equal(noisy.observations, again.observations)


def test_no_episode_that_succeeds_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstrations, "make_expert", lambda name: Idle())
    with pytest.raises(ValueError, match="none of 3 succeeded on 'ball'"):
        recorded_of(3, seed=0, action_noise=0.0)


def test_a_task_or_expert_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="task: 'bowl', expected one of ball"):
        make("bowl")
    with pytest.raises(ValueError, match="task: 'bowl', expected one of ball"):
        make_expert("bowl")
