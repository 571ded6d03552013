"""The library's MT10 and MT50 as they come: what is as there, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_lab.tasks import make
from adahi_lab.tasks.metaworld import MetaWorld
from adahi_lab.tasks.metaworld_scenes import MT50, ORIGINALS, Suite
from adahi_lab.tasks.metaworld_world import load_library

pytest.importorskip(
    "metaworld", reason="Meta-World is optional: pip install --no-deps -r requirements/metaworld.txt"
)

# One whose goal is read off the simulator, one of two things, one whose joint is set, and one of none of it.
KINDS = ("basketball-v3", "stick-push-v3", "door-open-v3", "reach-v3")


def only(*names: str) -> Suite:
    return replace(MT50, scenes=tuple(ORIGINALS[name] for name in names))


def librarys(name: str, vector: np.ndarray) -> tuple[Any, np.ndarray]:
    """The library's environment as it begins where a vector says, and its observation."""
    environment = load_library()[0][name]()
    environment._set_task_called, environment._partially_observable = True, False
    del environment.sawyer_observation_space
    environment._last_rand_vec = vector
    return environment, environment.reset()[0]


@pytest.mark.parametrize("name", ["metaworld_10", "metaworld_50"])
def test_they_have_the_action_and_the_goal_of_the_shared_scenes(name: str) -> None:
    spec, shared = make(name).spec, make("metaworld").spec
    assert (spec.observation_dim, spec.max_steps) == (18, 500)
    for same in ("goal_dim", "action_names", "command_names", "control_rate_hz", "goal_for_target"):
        assert getattr(spec, same) == getattr(shared, same)
    np.testing.assert_array_equal(spec.action_high, shared.action_high)


@pytest.mark.parametrize("name", KINDS)
def test_undisturbed_it_begins_moves_and_succeeds_as_the_librarys_does(name: str) -> None:
    task, draw = MetaWorld(only(name), disturbance=0.0), np.random.default_rng(0)
    task.reset(1, [2, 3])
    environment, observed = librarys(name, task._kept[0].notes["_last_rand_vec"])
    policy = load_library()[1][name]()
    np.testing.assert_allclose(task.state[0], observed[:18], atol=1e-9)
    succeeds = False
    for _ in range(100):
        action = np.clip(2.0 * policy.get_action(observed) + 0.1 * draw.normal(size=4), -1.0, 1.0)
        observed, _, _, _, info = environment.step(action)
        task.step(np.tile(action * task.spec.action_high, (2, 1)))
        succeeds |= info["success"] >= 1.0
        if succeeds:
            break
        np.testing.assert_allclose(task.library_observations[0], observed, atol=1e-9)
    assert bool(task.success[0]) == succeeds
    assert succeeds or name != "reach-v3"
