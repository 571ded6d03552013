from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from adahi_lab.tasks import make_expert

pytest.importorskip("libero", reason="LIBERO is optional: pip install -r requirements/libero.txt")

from adahi_lab.tasks.libero import convert
from adahi_lab.tasks.libero.expert import BOWL, LiberoGoalExpert
from adahi_lab.tasks.libero.goal import LiberoGoal
from adahi_lab.tasks.libero.scene_files import load_scene, scene_folder
from adahi_lab.tasks.libero.skills import Scene, Wish, carried
from adahi_lab.tasks.libero.suites import LiberoStates


class LiberoSpatialExpert(LiberoGoalExpert):
    """Puts the bowl that is wanted, always the first by name, onto the plate."""

    def rule(self, errand: str, scene: Scene) -> Wish:
        lift = np.clip(scene.place("akita_black_bowl_1")[2] - 0.9, 0.05, 0.25)
        return carried(scene, "akita_black_bowl_1", BOWL, scene.place("plate_1"), float(lift))


EXPERTS = {"libero_spatial": LiberoSpatialExpert, "libero_goal_swap": lambda: make_expert("libero_goal")}


@pytest.fixture(params=EXPERTS)
def suite(request: pytest.FixtureRequest, libero_scene: Path) -> str:
    """A suite that is converted."""
    folder = scene_folder(request.param)
    if not folder.is_dir():
        convert.convert(folder, suite_name=request.param)
    return str(request.param)


@pytest.mark.timeout(300)
def test_a_suite_steps_as_the_library_does(suite: str) -> None:
    np.random.seed(0)  # the library draws its furniture by it
    library, states = convert.open_library(9, suite)
    library.set_init_state(states.get_task_init_states(9)[0])
    library.robots[0].controller.new_update = True  # else its first step is of the pose before
    task, expert, done = LiberoStates(suite), EXPERTS[suite](), False
    task.reset(0, [9])
    task._kept = [convert.placed(library, suite)]
    task.world.load(task._kept[0])
    mujoco.mj_forward(task.world.model, task.world.data)
    task._store_observation(0)
    while not done:
        action = expert.act(task)
        task._kept = [convert.placed(library, suite)]  # contacts are chaotic: rounding grows
        done = bool(library.step(action[0])[2])
        task.step(action)
        hand = library.sim.data.site_xpos[library.sim.model.site_name2id("gripper0_grip_site")]
        assert np.abs(hand - task.state[0, :3]).max() < 1e-5
        assert bool(task.success[0]) == done, f"after {task.steps[0]} steps"


@pytest.mark.timeout(300)
def test_an_episode_starts_in_the_suites_state_with_its_furniture(suite: str) -> None:
    task = LiberoStates(suite)
    np.testing.assert_array_equal(task._starts(0, [3, 13]), load_scene(suite=suite).starts[3, :2])
    task.reset(0, range(20))
    names = task.spec.state_names
    columns = [names.index(f"{one}_{axis}_m") for one in task.world.scene.fixtures for axis in "xy"]
    stand = task.state[:, columns].reshape(20, -1, 2)
    for row, errand in enumerate(task.errands):
        for at, region in zip(stand[row], errand.fixtures, strict=True):
            assert np.all((region.low - 1e-9 <= at) & (at <= region.high + 1e-9))


@pytest.mark.timeout(300)
def test_swapped_furniture_stands_elsewhere(libero_scene: Path) -> None:
    folder = scene_folder("libero_goal_swap")
    if not folder.is_dir():
        convert.convert(folder, suite_name="libero_goal_swap")
    goal, swap = LiberoGoal().world.scene, load_scene(suite="libero_goal_swap")
    moved = [
        not np.allclose(former.low, now.low)
        for one, other in zip(goal.errands, swap.errands, strict=True)
        for former, now in zip(one.fixtures, other.fixtures, strict=True)
    ]
    assert any(moved)
    assert [one.goal for one in goal.errands] == [one.goal for one in swap.errands]


def test_another_suite_is_refused() -> None:
    with pytest.raises(ValueError, match="suite: 'libero_90', must be one of libero_goal, "):
        LiberoStates("libero_90")
