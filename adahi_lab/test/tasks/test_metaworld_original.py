"""The library's MT10 and MT50 as they come: what is as there, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.metaworld import MetaWorld
from adahi_lab.tasks.metaworld_scenes import MT10, MT50, ORIGINALS, Suite
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


@pytest.mark.parametrize(("suite", "group"), [(MT10, "MT10_V3"), (MT50, "MT50_V3")])
def test_a_suite_has_the_librarys_tasks_and_a_sentence_for_each(suite: Suite, group: str) -> None:
    from metaworld import env_dict

    assert sorted(scene.name for scene in suite.scenes) == sorted(getattr(env_dict, group))
    sentences = [errand.sentence for scene in suite.scenes for errand in scene.errands]
    assert len({frozenset(sentence.split()) for sentence in sentences}) == len(suite.scenes)


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


def test_an_episode_is_the_same_to_the_bit_alone_and_in_a_batch(drive: Callable[..., np.ndarray]) -> None:
    task, expert = MetaWorld(only(*KINDS)), make_expert("metaworld_50")
    episodes = list(range(10, 26))  # some share an environment
    batch = drive(task, expert, 3, episodes, 40)
    assert len(set(task.sentences)) == len(KINDS)
    for index in (0, 5, 15):
        np.testing.assert_array_equal(batch[:, index], drive(task, expert, 3, [episodes[index]], 40)[:, 0])
    assert not np.array_equal(batch[:, 0], drive(task, expert, 4, [episodes[0]], 40)[:, 0])


def test_the_mark_is_sent_to_the_target_and_cannot_be_seen() -> None:
    task = MetaWorld(only("reach-v3"))
    task.reset(0, range(300))
    seen = task.state[:, task.state.std(axis=0) > 1e-9]
    marks = task.goal[:, -3:]
    assert marks.std(axis=0).min() > 0.02
    assert np.abs(np.corrcoef(seen.T, marks.T)[: seen.shape[1], seen.shape[1] :]).max() < 0.25
    np.testing.assert_allclose(
        task.library_observations[:, -3:], marks + task.library_observations[0, -3:] - marks[0]
    )


def test_what_is_seen_first_is_what_was_placed() -> None:
    task = MetaWorld(only("window-close-v3"), disturbance=0.0)  # the library tells of it a step later
    task.reset(0, range(4))
    before = task.state
    task.step(np.zeros((4, 4)))
    np.testing.assert_allclose(task.state, before, atol=0.01)
