"""Noise on what robots execute and see: the same in every batch, of the stated size, part of a row's key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.comparison import entries
from adahi_lab.evaluation.disturbances import DisturbedWorld, WorldAround
from adahi_lab.evaluation.evaluate import Comparison, Run, play
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import seen_by_target
from adahi_ros.core.signature import OBSERVATION

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


def test_robots_see_places_with_noise_and_the_target_as_they_are() -> None:
    world, plain = DisturbedWorld(make("ball"), sensor_noise_m=0.02), make("ball")
    errors = []
    for each in (world, plain):
        each.reset(SEED, range(40))
    for _ in range(STEPS):
        seen = world.observation
        errors.append(seen - plain.observation)
        np.testing.assert_array_equal(world.observation, seen)  # one measurement a step
        np.testing.assert_array_equal(seen_by_target(world)[OBSERVATION], plain.observation)
        for each in (world, plain):
            each.step(np.zeros((40, 2)))
    joints = len(world.spec.joint_names)
    places = np.stack(errors)[..., joints : joints + 2]
    assert places.std() == pytest.approx(0.02, rel=0.05)
    assert abs(places.mean()) < 0.001
    assert not np.stack(errors)[..., joints + 2 :].any()
    assert not np.stack(errors)[..., :joints].any()


def test_a_target_with_its_own_sensor_plans_as_without_noise(comparison: Comparison) -> None:
    noisy, plan = replace(comparison, sensor_noise_m=0.05), METHODS["plan_8"]
    clean, shaken = (play(Run(plan, each, range(4))).log.action[:8] for each in (comparison, noisy))
    np.testing.assert_array_equal(shaken, clean)  # a first plan is of what the target sees
    plain, other = (play(Run(METHODS["draft"], each, range(4))).log.action for each in (comparison, noisy))
    assert not np.array_equal(plain[:8], other[:8])


@pytest.mark.parametrize(
    ("task", "noises", "message"),
    [
        ("ball", {"action_noise": 1.5}, "action_noise: 1.5, must be from 0 to 1"),
        ("ball", {"action_noise": float("nan")}, "action_noise: nan, must be from 0 to 1"),
        ("ball_seen", {"action_noise": 0.1}, "action_noise: 0.1, must be 0 for ball_seen, which has images"),
        ("ball", {"sensor_noise_m": -0.1}, "sensor_noise_m: -0.1, must be from 0 to 1"),
        ("inverted_pendulum", {"sensor_noise_m": 0.1}, "must be 0 for .*: no place in metres"),
    ],
)
def test_what_cannot_be_disturbed_is_refused(task: str, noises: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DisturbedWorld(make(task), **noises)


@pytest.mark.parametrize("noise", ["action_noise", "sensor_noise_m"])
def test_rows_with_noise_have_another_key(comparison: Comparison, noise: str) -> None:
    changed: dict[str, Any] = {noise: 0.2}
    noisy = replace(comparison, **changed)
    (plain,), (shaken,) = (entries(each, ["draft"], range(2))[0] for each in (comparison, noisy))
    assert noise not in plain.key(comparison.bench())
    assert shaken.key(noisy.bench()) == {**plain.key(comparison.bench()), noise: 0.2}
    assert isinstance(noisy.world(), DisturbedWorld)
