from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from adahi_lab.evaluation.swaps import Swap, SwappedWorld
from adahi_lab.tasks import make, make_evaluated, make_expert
from adahi_ros.core.files import read_json
from adahi_ros.core.written_files import save_json

pytest.importorskip("libero", reason="LIBERO is optional: pip install -r requirements/libero.txt")

from adahi_lab.tasks.libero import convert
from adahi_lab.tasks.libero.conditions import Condition
from adahi_lab.tasks.libero.goal import LiberoGoal
from adahi_lab.tasks.libero.scene_files import MODEL, NOTES, load_scene

pytestmark = pytest.mark.usefixtures("libero_scene")
EVERY = range(10)  # an episode of each task
HAND = "gripper0_grip_site"


def started(number: int, state: int) -> tuple[Any, LiberoGoal]:
    """The library's environment and our task in the same state of the benchmark's."""
    np.random.seed(0)  # the library draws its furniture by it
    library, suite = convert.open_library(number)
    library.set_init_state(suite.get_task_init_states(number)[state])
    library.robots[0].controller.new_update = True  # else its first step is of the pose before
    task = LiberoGoal()
    task.reset(0, [number])
    task._kept = [convert.placed(library)]
    task.world.load(task._kept[0])
    mujoco.mj_forward(task.world.model, task.world.data)
    task._store_observation(0)
    return library, task


def hand_apart_m(library: Any, task: LiberoGoal) -> float:
    hand = library.sim.data.site_xpos[library.sim.model.site_name2id(HAND)]
    return float(np.abs(hand - task.state[0, :3]).max())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", EVERY)
def test_from_every_state_of_an_episode_it_steps_as_the_library_does(number: int) -> None:
    library, task = started(number, state=0)
    expert, done = make_expert("libero_goal"), False
    while not done:
        action = expert.act(task)
        task._kept = [convert.placed(library)]  # contacts are chaotic: rounding grows from step to step
        done = bool(library.step(action[0])[2])
        task.step(action)
        assert hand_apart_m(library, task) < 1e-5
        assert bool(task.success[0]) == done, f"after {task.steps[0]} steps"
    assert task.steps[0] < task.spec.max_steps


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("number", "state"), [(0, 3), (7, 0)])  # where rounding does not grow
def test_the_same_actions_succeed_at_the_librarys_step(number: int, state: int) -> None:
    library, task = started(number, state)
    expert, done = make_expert("libero_goal"), False
    while not done:
        action = expert.act(task)
        done = bool(library.step(action[0])[2])
        task.step(action)
        assert hand_apart_m(library, task) < 1e-5
        assert bool(task.success[0]) == done, f"after {task.steps[0]} steps"
    assert task.steps[0] < task.spec.max_steps


def test_what_is_fixed_about_it() -> None:
    spec = make("libero_goal").spec
    assert (len(spec.joint_names), spec.goal_dim, spec.action_dim, spec.max_steps) == (9, 32, 7, 300)
    assert spec.control_rate_hz == pytest.approx(20.0)
    assert {"wooden_cabinet_1_top_level_m", "flat_stove_1_button_rad"} <= set(spec.state_names)
    assert len({errand.sentence for errand in load_scene().errands}) == len(EVERY)


def test_the_scene_has_nothing_that_is_only_seen(libero_scene: Path) -> None:
    model = load_scene().model
    assert np.all((model.geom_contype != 0) | (model.geom_conaffinity != 0))
    assert model.ntex == model.nmat == model.ncam == 0
    assert (libero_scene / MODEL).stat().st_size < 4 * 2**20


def test_an_episode_is_the_same_to_the_bit_alone_and_in_a_batch(drive: Callable[..., np.ndarray]) -> None:
    task, expert = make("libero_goal"), make_expert("libero_goal")
    batch = drive(task, expert, 3, [4, 11, 7], 30)
    np.testing.assert_array_equal(batch[:, 1], drive(task, expert, 3, [11], 30)[:, 0])
    assert not np.array_equal(batch[:, 1], drive(task, expert, 4, [11], 30)[:, 0])


def test_nothing_on_the_table_shows_the_task() -> None:
    task = make("libero_goal")
    places = ["nearness" not in name for name in task.spec.state_names]  # that follows from places, by a tanh
    draws = []
    for number in EVERY:
        task.reset(0, [number])
        draws.append(np.append(task.joint_positions[0], task.state[0, places]))
    spread = np.std(draws, axis=0)
    task.reset(0, range(0, 100, 10))
    alike = np.hstack([task.joint_positions, task.state[:, places]])
    assert np.all(spread < 5.0 * np.std(alike, axis=0) + 1e-6)


def test_an_evaluation_has_the_benchmarks_states_and_a_demonstration_none() -> None:
    evaluated, taught = make_evaluated("libero_goal"), make("libero_goal")
    episodes = [3, 13, 503, 1003]
    starts = evaluated._starts(0, episodes)  # type: ignore[attr-defined]
    known = load_scene().starts
    np.testing.assert_array_equal(starts, known[[3, 3, 3, 3], [0, 1, 0, 0]])
    drawn = taught._starts(0, range(1000))  # type: ignore[attr-defined]
    everywhere = known.reshape(-1, known.shape[-1])
    assert {row.tobytes() for row in drawn}.isdisjoint(row.tobytes() for row in everywhere)
    for column in range(9, 37):  # things start where the benchmark's do
        assert drawn[:, column].min() == pytest.approx(everywhere[:, column].min(), abs=2e-3)
        assert drawn[:, column].max() == pytest.approx(everywhere[:, column].max(), abs=2e-3)
    evaluated.reset(0, [3, 503])
    assert not np.array_equal(evaluated.state[0, -6:], evaluated.state[1, -6:])  # where the furniture stands


def test_an_instruction_can_change() -> None:
    world = SwappedWorld("libero_goal", Swap(2))
    world.reset(1, list(EVERY))
    before = world.goal
    for _ in range(3):
        world.step(np.zeros((len(EVERY), 7)))
    assert not (world.goal == before).all(axis=1).any()


def test_a_scene_of_another_mujoco_is_refused(libero_scene: Path, tmp_path: Path) -> None:
    save_json(tmp_path / NOTES, {**read_json(libero_scene / NOTES), "mujoco": "3.0.0"})
    with pytest.raises(ValueError, match=r"mujoco is '3\.0\.0', must be .*adahi lab libero convert"):
        load_scene(tmp_path)


def test_a_condition_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind: 'under', must be one of on, "):
        Condition("under", "plate_1_main")


def test_the_expert_refuses_another_task() -> None:
    with pytest.raises(ValueError, match="task: 'ball', must be libero_goal"):
        make_expert("libero_goal").act(make("ball"))
