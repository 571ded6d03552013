from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.swaps import Swap, SwappedWorld
from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.ball import BallBalancing
from adahi_lab.tasks.episodes import for_target
from adahi_lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_lab.tasks.metaworld import MetaWorld
from adahi_lab.tasks.metaworld_scenes import SCENES, SHARED, Delivery, Errand, Scene, Suite
from adahi_lab.tasks.metaworld_world import load_library, load_scene

pytest.importorskip(
    "metaworld", reason="Meta-World is optional: pip install --no-deps -r requirements/metaworld.txt"
)


def only(*scenes: Scene) -> Suite:
    """The shared scenes, but no others than these."""
    return replace(SHARED, scenes=scenes)


def alone(scene: Scene, errand: Errand) -> Suite:
    """The scene where nothing else can be asked for."""
    return only(replace(scene, errands=(errand,)))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_nothing_that_the_robot_sees_tells_what_is_wanted(scene: Scene) -> None:
    shown, goals, seen = [], [], []
    for errand in scene.errands:
        task = MetaWorld(alone(scene, errand))
        task.reset(3, range(4))
        still = np.tile([0.1, -0.1, 0.05, 0.5], (4, 1))
        task.step(still)
        shown.append(task.observation)
        goals.append(task.goal)
        seen.append(task.sentences)
    for other, goal in zip(shown[1:], goals[1:], strict=True):
        np.testing.assert_array_equal(other, shown[0])
        assert not np.array_equal(goal, goals[0])
    assert len(set(seen)) == len(scene.errands)


def test_the_same_episodes_give_the_goal_to_the_robot_too() -> None:
    own, given = make("metaworld"), make("metaworld_given")
    for task in (own, given):
        task.reset(3, range(2))
        task.step(np.tile([0.1, -0.1, 0.05, 0.5], (2, 1)))
    assert (own.spec.goal_for_target, given.spec.goal_for_target) == (True, False)
    np.testing.assert_array_equal(given.observation, own.observation)
    np.testing.assert_array_equal(given.goal, own.goal)


def test_the_target_gets_other_sentences_of_known_words_and_a_robot_known_ones() -> None:
    errands = [errand for scene in SCENES for errand in scene.errands]
    known = np.array([embedded(errand.sentence) for errand in errands])
    words = " ".join(errand.sentence for errand in errands).split()
    assert {word for errand in errands for word in errand.reworded.split()} <= set(words)
    task = make("metaworld_reworded")
    task.reset(3, range(40))
    sentences = np.array([task.goal, *for_target(task).values()])[..., None, :INSTRUCTION_DIM]
    assert (sentences == known).all(axis=3).any(axis=2).mean(axis=1).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_undisturbed_it_moves_as_the_librarys_does(scene: Scene) -> None:
    task = MetaWorld(only(scene), disturbance=0.0)
    task.reset(1, [2])
    library = load_library()[0][scene.model]()
    library._set_task_called, library._target_pos, library.obj_init_pos = True, np.zeros(3), np.zeros(3)
    library.evaluate_state = lambda *_: (0.0, {})
    world = load_scene(scene)
    library.model.body(scene.thing).pos = world.model.body(scene.thing).pos
    for part in ("qpos", "qvel", "mocap_pos", "mocap_quat", "qacc_warmstart"):
        getattr(library.data, part)[:] = getattr(world.data, part)
    for action in np.random.default_rng(0).uniform(-1.0, 1.0, (30, 4)):
        task.step((action * task.spec.action_high)[None])
        observed = library.step(action)[0]
        np.testing.assert_allclose(task.state[0, :4], observed[:4], atol=1e-9)


def test_the_expert_does_what_is_requested() -> None:
    expert, failures = make_expert("metaworld"), {}
    for scene in SCENES:
        task = MetaWorld(only(scene), disturbance=0.0)
        task.reset(0, range(8))
        while not task.done.all():
            action = expert.act(task)
            assert np.all(np.abs(action) <= task.spec.action_high)
            task.step(action)
        failures[scene.name] = int(np.sum(~task.success))
    assert sum(failures.values()) <= 3, failures


def test_its_expert_refuses_other_tasks() -> None:
    with pytest.raises(ValueError, match="task: 'ball', must be one of Meta-World's"):
        make_expert("metaworld").act(BallBalancing())


def test_a_changed_errand_is_another_one_of_the_same_scene() -> None:
    world = MetaWorld()
    world.reset(0, range(12))
    scenes, before = [scene.name for scene, _ in world._drawn], world.errands
    observed = world.state
    world.swap_goals(0, range(100, 112))
    assert [scene.name for scene, _ in world._drawn] == scenes
    assert all(old is not new for old, new in zip(before, world.errands, strict=True))
    np.testing.assert_array_equal(world.state, observed)
    for row, (sentence, errand) in enumerate(zip(world.sentences, world.errands, strict=True)):
        np.testing.assert_array_equal(world.goal[row, :INSTRUCTION_DIM], embedded(sentence))
        marked = isinstance(errand, Errand) and isinstance(errand.done, Delivery)
        assert world.goal[row, INSTRUCTION_DIM:].any() == marked


def test_what_was_done_before_a_change_fails_it_only_once_done_again() -> None:
    world = MetaWorld()
    world.reset(0, [0])
    world._failed[0], world._success[0] = False, True
    world.swap_goals(0, [100])
    assert not world.success[0]
    look = world._worlds[0].observe
    met: list[bool] = []
    world._worlds[0].observe = lambda *about: replace(look(*about), met=False, failed=met[-1])
    try:
        world._excused[0] = True
        for failed, expected in ((True, False), (False, False), (True, True)):
            met.append(failed)
            world.step(np.zeros((1, 4)))
            assert world.failed[0] == expected
    finally:
        del world._worlds[0].observe


def test_a_scene_with_one_errand_cannot_change() -> None:
    with pytest.raises(ValueError, match="must have another errand than"):
        SwappedWorld("metaworld_10", Swap(25))
