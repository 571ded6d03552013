"""An episode has the same bits whenever it is run, alone and among others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_ros.lab.tasks import make, make_expert

TASKS = ("ball", "ball_instructed", "swarm", "swarm_instructed")  # whose episodes take milliseconds


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 33])
def test_an_episode_is_the_same_to_the_bit_alone_and_in_a_batch(
    count: int, name: str, drive: Callable[..., np.ndarray]
) -> None:
    episodes, steps = list(range(10, 10 + count)), make(name).spec.max_steps
    batch = drive(make(name), make_expert(name), 3, episodes, steps)
    for index in {0, count // 2, count - 1}:
        alone = drive(make(name), make_expert(name), 3, [episodes[index]], steps)
        np.testing.assert_array_equal(batch[:, index], alone[:, 0])


@pytest.mark.parametrize("name", TASKS)
def test_same_seed_same_rollout_and_another_seed_another(name: str, drive: Callable[..., np.ndarray]) -> None:
    task, expert = make(name), make_expert(name)
    first = drive(task, expert, 1, [0, 1], 40)
    np.testing.assert_array_equal(first, drive(task, expert, 1, [0, 1], 40))
    assert not np.array_equal(first, drive(task, expert, 2, [0, 1], 40))
    assert not np.array_equal(first[:, 0], first[:, 1])
