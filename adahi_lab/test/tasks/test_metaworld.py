from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.evaluation.swaps import Swap, SwappedWorld
from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.ball import BallBalancing
from adahi_lab.tasks.instructions import INSTRUCTION_DIM, embedded
from adahi_lab.tasks.metaworld import MetaWorld
from adahi_lab.tasks.metaworld_scenes import SCENES, SHARED, Delivery, Errand, Scene, Suite
from adahi_lab.tasks.metaworld_world import load_library, load_scene

pytest.importorskip(
    "metaworld", reason="Meta-World is optional: pip install --no-deps -r requirements/metaworld.txt"
)

ERRANDS = [(scene, errand) for scene in SCENES for errand in scene.errands]
OPPOSED = [(scene, errand) for scene, errand in ERRANDS if scene.joint is not None]


def only(*scenes: Scene) -> Suite:
    """The shared scenes, but no others than these."""
    return replace(SHARED, scenes=scenes)


def alone(scene: Scene, errand: Errand) -> Suite:
    """The scene where nothing else can be asked for."""
    return only(replace(scene, errands=(errand,)))


def test_what_is_fixed_about_it() -> None:
    spec = make("metaworld").spec
    assert (spec.observation_dim, spec.goal_dim, spec.action_dim) == (10 + len(SCENES), 35, 4)
    assert spec.control_rate_hz == pytest.approx(80.0)
    np.testing.assert_allclose(spec.action_high, [0.8, 0.8, 0.8, 1.0])
    assert len({errand.sentence for _, errand in ERRANDS}) == len(ERRANDS) >= 10
    assert all(len(scene.errands) >= 2 for scene in SCENES)


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


def test_an_episode_is_the_same_to_the_bit_alone_and_in_a_batch(drive: Callable[..., np.ndarray]) -> None:
    task, expert = make("metaworld"), make_expert("metaworld")
    episodes = list(range(10, 34))  # some share a scene, and so a model
    batch = drive(task, expert, 3, episodes, 60)
    for index in (0, 5, 23):
        np.testing.assert_array_equal(batch[:, index], drive(task, expert, 3, [episodes[index]], 60)[:, 0])
    assert not np.array_equal(batch[:, 0], drive(task, expert, 4, [episodes[0]], 60)[:, 0])


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


@pytest.mark.parametrize(
    ("scene", "errand"), OPPOSED, ids=lambda each: each.sentence if isinstance(each, Errand) else each.name
)
def test_doing_the_opposite_fails_and_half_way_is_neither(scene: Scene, errand: Errand) -> None:
    task = MetaWorld(only(scene), disturbance=0.0)
    task.reset(0, range(10))
    assert not (task.success | task.failed).any()
    for _ in range(task.spec.max_steps):  # all do this one, whatever was asked for
        drawn = task._drawn
        task._drawn = [(scene, errand)] * len(drawn)
        for row in range(len(drawn)):
            world, kept = task._worlds[row], task._kept[row]
            world.load(kept)
            task._read[row] = world.observe(errand, kept).read
        action = make_expert("metaworld").act(task)
        task._drawn = drawn
        task.step(action)
    meant = np.array([sentence == errand.sentence for sentence in task.sentences])
    assert meant.any()
    assert not meant.all()
    assert np.mean(task.success == meant) >= 0.7
    assert np.mean(task.failed == ~meant) >= 0.7


def test_the_hand_is_disturbed_and_the_gripper_is_not() -> None:
    hands = {}
    for disturbance in (0.0, 0.2, 0.4):
        task = MetaWorld(only(SCENES[0]), disturbance)
        task.reset(0, range(60))
        before = task.state
        for _ in range(10):
            task.step(np.tile([0.0, 0.0, 0.0, -1.0], (60, 1)))
        hands[disturbance] = task.state - before
    assert np.abs(hands[0.0][:, :3]).max() < 5e-3
    spread = hands[0.4][:, :3].std(axis=0)
    np.testing.assert_allclose(spread, 2.0 * hands[0.2][:, :3].std(axis=0), rtol=0.1)
    # Ten steps of their own, 4 mm each, of which the hand has not followed the last yet.
    assert np.all((0.5 * 0.004 * np.sqrt(10) < spread) & (spread < 0.004 * np.sqrt(10)))
    np.testing.assert_allclose(hands[0.4][:, 3], 0.0, atol=0.02)


def test_doing_nothing_achieves_nothing() -> None:
    task = MetaWorld(disturbance=0.0)
    task.reset(0, range(20))
    while not task.done.all():
        task.step(np.zeros((20, 4)))
    assert not task.success.any()


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
