from __future__ import annotations

import asyncio
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.peers.closed_loop import CUT_STEPS, Drive
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature, Signature

pytest.importorskip("vla_eval", reason="vla-eval is a peer's: lab/peers/environments.py vla_eval_judge")

from vla_eval.benchmarks.libero import benchmark as upstream

from adahi_lab.peers.judged_world import JudgedWorld
from adahi_lab.peers.vla_eval_judge import LiveLibero, plan_of_episodes

SIGNATURE = Signature(2, 8, 7, (Feature(OBSERVATION, 5),), (Feature(GOAL, 32),))
MOVE = np.array([0.1, 0.0, -0.2, 0.0, 0.0, 0.3, 1.0], dtype=np.float32)
SENTENCE = "open the drawer"


class Judge:
    """Says what vla-eval's says, and keeps what it is sent."""

    def __init__(self, world: JudgedWorld) -> None:
        self.world, self.seen = world, 0
        self.sent: list[np.ndarray] = []

    async def send_action(self, action: dict[str, Any]) -> None:
        self.sent.append(action["actions"])

    async def begin(self) -> None:
        await self.world.on_episode_start({}, self)

    async def show(self) -> None:
        self.seen += 1
        obs = {"joints": np.full(2, self.seen), "state": np.zeros(3), "task_description": SENTENCE}
        await self.world.on_observation(obs, self)

    async def end(self, success: bool) -> None:
        result = {"metrics": {"success": success}, "rt_metrics": {"stale_count": 4}, "elapsed_sec": 2.0}
        await self.world.on_episode_end(result, self)

    async def listen(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)  # actions come by the loop's own turns


class Link:
    def __init__(self) -> None:
        self.cuts: list[float] = []

    def carried(self) -> tuple[int, int]:
        return 10, 20

    def cut(self, for_s: float) -> None:
        self.cuts.append(for_s)


def world_of(episodes: int = 2, outage_s: float = 0.0) -> JudgedWorld:
    return JudgedWorld(Drive("libero_goal", "", 3, 7, episodes, outage_s), SIGNATURE, Link())


def test_an_episode_has_its_observations_actions_and_log() -> None:
    async def play() -> JudgedWorld:
        world = world_of()
        judge = Judge(world)
        assert world.left == 2
        await judge.begin()
        await judge.show()
        world.start()
        before, goal = world.observe(wait=True)
        np.testing.assert_array_equal(before, [[1, 1, 0, 0, 0]] * 2)
        assert np.linalg.norm(goal) == pytest.approx(1.0)
        world.command(MOVE)
        world.count_call()
        await judge.show()
        await judge.listen()
        np.testing.assert_array_equal(judge.sent, [MOVE])
        after, _ = world.observe(wait=True)
        np.testing.assert_array_equal(after[:, 0], [1, 2])
        await judge.end(success=True)
        assert world.left == 1
        return world

    (log,) = asyncio.run(play()).logs
    assert (log.episode, log.success, log.moved, log.still, log.calls) == (7, True, [True, False], 4, 1)
    assert (log.bytes_up, log.bytes_down, log.lasted_s) == (0, 0, 2.0)
    assert log.joints == [[1, 1], [2, 2]]


def test_a_hand_that_is_held_still_keeps_its_grip() -> None:
    async def play() -> list[np.ndarray]:
        judge = Judge(world_of())
        await judge.begin()
        await judge.show()
        for action in (np.zeros(7), MOVE, np.zeros(7)):
            judge.world.command(action)
        await judge.listen()
        return judge.sent

    assert [sent[-1] for sent in asyncio.run(play())] == [-1.0, 1.0, 1.0]


def test_what_comes_between_episodes_moves_nothing() -> None:
    async def play() -> list[np.ndarray]:
        judge = Judge(world_of())
        await judge.begin()
        judge.world.command(MOVE)
        await judge.show()
        await judge.end(success=False)
        judge.world.command(MOVE)
        await judge.listen()
        return judge.sent

    assert asyncio.run(play()) == []


def test_the_link_is_cut_once_in_an_episode() -> None:
    async def play(steps: int) -> list[float]:
        world = world_of(outage_s=1.0)
        judge = Judge(world)
        await judge.begin()
        for _ in range(steps):
            await judge.show()
        return list(world._link.cuts)  # type: ignore[attr-defined]

    assert asyncio.run(play(CUT_STEPS[0])) == []
    assert asyncio.run(play(CUT_STEPS[1] + 1)) == [1.0]


def test_a_client_learns_that_the_judge_has_ended() -> None:
    world = world_of()
    world.stop("judge: ended with code 1")
    with pytest.raises(RuntimeError, match="judge: ended with code 1"):
        world.start()


def test_the_hold_action_moves_nothing_and_keeps_the_grip() -> None:
    judged = LiveLibero("libero_goal")
    np.testing.assert_array_equal(judged.get_hold_action(None)["actions"], [0, 0, 0, 0, 0, 0, -1])
    np.testing.assert_array_equal(judged.get_hold_action({"actions": MOVE})["actions"], [0, 0, 0, 0, 0, 0, 1])
    with pytest.raises(NotImplementedError, match="get_hold_action"):
        LiveLibero("libero_goal", absolute_action=True).get_hold_action({"actions": MOVE})


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no program patch here")
def test_the_patch_for_upstream_gives_the_same_hold_action(tmp_path: Path) -> None:
    copy = tmp_path / "benchmark.py"
    shutil.copy(str(upstream.__file__), copy)
    patch = asset("config/peers/vla_eval_libero.patch")
    subprocess.run(["patch", "-s", str(copy), str(patch)], check=True)
    spec = importlib.util.spec_from_file_location("patched", copy)
    assert spec is not None
    assert spec.loader is not None
    patched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(patched)
    theirs, ours = patched.LIBEROBenchmark("libero_goal"), LiveLibero("libero_goal")
    for last in (None, {"actions": MOVE}, {"action": -MOVE}):
        held = theirs.get_hold_action(last)["actions"]
        np.testing.assert_array_equal(held, ours.get_hold_action(last)["actions"])


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("libero_scene")
def test_the_judge_shows_what_our_world_shows() -> None:
    from adahi_lab.tasks.libero import convert
    from adahi_lab.tasks.libero.goal import LiberoGoal

    library, suite = convert.open_library(4)
    library.set_init_state(suite.get_task_init_states(4)[0])
    for _ in range(20):  # things fall onto the table
        library.step([0.0] * 6 + [-1.0])
    judged, task = LiveLibero("libero_goal"), LiberoGoal()
    judged._env = library
    seen = judged.make_obs({}, {"name": SENTENCE})
    task.world.step(convert.placed(library), np.zeros(7))
    np.testing.assert_allclose(
        seen["state"], task.world.observed_state(), atol=2e-3
    )  # a control period apart
    np.testing.assert_array_equal(seen["joints"], library.sim.data.qpos[:9])


def test_the_judges_episodes_are_ten_tasks_alike() -> None:
    assert plan_of_episodes(3) == {"max_tasks": 3, "episodes_per_task": 1}
    assert plan_of_episodes(20) == {"max_tasks": 10, "episodes_per_task": 2}
    with pytest.raises(ValueError, match="episodes: 15, must be at most 10, or a multiple"):
        plan_of_episodes(15)
