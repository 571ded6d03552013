"""Noise on what robots execute: the same in every batch, of the stated size, and part of a row's key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.comparison import entries
from adahi_lab.evaluation.disturbances import DisturbedWorld, WorldAround
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.tasks import make

SEED, STEPS = 3, 60


class Still(WorldAround):
    """Records the actions that it gets to execute."""

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        super().reset(seed, episodes)
        self.executed: list[np.ndarray] = []

    def step(self, action: np.ndarray) -> None:
        self.executed.append(action)


def noise(action_noise: float, episodes: Sequence[int], seed: int = SEED) -> np.ndarray:
    """Return what is added to actions, as shares of half their range, (T, E, A)."""
    inner = Still(make("swarm"))
    world = DisturbedWorld(inner, action_noise)
    spec = world.spec
    wanted = np.tile(0.3 * spec.action_high, (len(episodes), 1))
    world.reset(seed, episodes)
    for _ in range(STEPS):
        world.step(wanted)
    return (np.stack(inner.executed) - wanted) / ((spec.action_high - spec.action_low) / 2.0)


def test_noise_has_the_stated_size_and_no_mean() -> None:
    added = noise(0.2, range(40))
    assert added.std() == pytest.approx(0.2, rel=0.05)
    assert abs(added.mean()) < 0.01


def test_an_undisturbed_world_is_the_task_itself() -> None:
    world, plain = DisturbedWorld(make("ball"), 0.0), make("ball")
    for each in (world, plain):
        each.reset(SEED, [5, 7])
        each.step(np.full((2, world.spec.action_dim), 0.1))
    np.testing.assert_array_equal(world.observation, plain.observation)
    np.testing.assert_array_equal(world.goal, plain.goal)
    np.testing.assert_array_equal(world.done, plain.done)


@pytest.mark.parametrize(
    ("task", "action_noise", "message"),
    [
        ("ball", 1.5, "action_noise: 1.5, must be from 0 to 1"),
        ("ball", float("nan"), "action_noise: nan, must be from 0 to 1"),
        ("ball_seen", 0.1, "action_noise: 0.1, must be 0 for ball_seen, which has images"),
    ],
)
def test_what_cannot_be_disturbed_is_refused(task: str, action_noise: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DisturbedWorld(make(task), action_noise)


def test_rows_with_noise_have_another_key(comparison: Comparison) -> None:
    noisy = replace(comparison, action_noise=0.2)
    (plain,), (shaken,) = (entries(each, ["draft"], range(2))[0] for each in (comparison, noisy))
    assert "action_noise" not in plain.key(comparison.bench())
    assert shaken.key(noisy.bench()) == {**plain.key(comparison.bench()), "action_noise": 0.2}
    assert isinstance(noisy.world(), DisturbedWorld)
