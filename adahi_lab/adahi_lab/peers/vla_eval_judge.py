# SPDX-License-Identifier: Apache-2.0
"""vla-eval as an outside judge: it steps LIBERO by the clock, and counts successes.

    python -m adahi_lab.peers.vla_eval_judge URL --episodes N --out FILE.json

runs episodes of libero_goal in vla-eval's live mode: every 50 ms the world executes the newest action that
has come from the model server at URL, or its hold action. The model server is `judged_world.py`. Runner,
protocol, world, starts and criterion are vla-eval's and LIBERO's. Only the observation is ours: the state
that our policies read, and no images, because a CPU draws 5 a second.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import mujoco
import numpy as np
import typer
from vla_eval import api
from vla_eval.benchmarks.libero.benchmark import LIBEROBenchmark

from adahi_lab.tasks.libero.convert import placed
from adahi_lab.tasks.libero.world import ROBOT, load_world
from adahi_ros.core.assets import asset

TASKS = 10
OPEN = -1.0


class LiveLibero(LIBEROBenchmark):
    """vla-eval's LIBERO with what its live mode needs, and with states instead of images."""

    def _init_libero(self) -> None:
        from libero.libero import envs

        envs.OffScreenRenderEnv = partial(
            envs.env_wrapper.ControlEnv, use_camera_obs=False, has_offscreen_renderer=False
        )
        super()._init_libero()

    def get_hold_action(self, last_action: dict[str, Any] | None) -> dict[str, Any]:
        """Return no motion, and the gripper's last command; also in config/peers/vla_eval_libero.patch."""
        if self.absolute_action:
            return super().get_hold_action(last_action)  # raises: where to stay depends on the arm
        hold = np.zeros(7, dtype=np.float32)
        hold[-1] = OPEN
        if last_action is not None:
            hold[-1] = np.asarray(last_action.get("actions", last_action.get("action")))[-1]
        return {"actions": hold}

    def make_obs(self, raw_obs: Any, task: dict[str, Any]) -> dict[str, Any]:
        """Return the observation of `LiberoGoal`: joints (9,), their velocities, state (S,), instruction."""
        world = load_world()
        world.load(placed(self._env))
        mujoco.mj_kinematics(world.model, world.data)
        return {
            "joints": world.data.qpos[:ROBOT].copy(),
            "velocities": world.data.qvel[:ROBOT].copy(),
            "state": world.observed_state(),
            "task_description": task["name"],
        }

    def get_observation_spec(self) -> dict[str, Any]:
        """Declare nothing; vla-eval has no names for such states."""
        return {}


def plan_of_episodes(episodes: int) -> dict[str, int]:
    """Return vla-eval's number of tasks, and of episodes of each.

    Raises:
        ValueError: more than ten episodes that are no multiple of ten.
    """
    if episodes > TASKS and episodes % TASKS:
        raise ValueError(f"episodes: {episodes}, must be at most {TASKS}, or a multiple of it")
    return {"max_tasks": min(episodes, TASKS), "episodes_per_task": max(1, episodes // TASKS)}


def judge(url: str, episodes: int, seed: int) -> dict[str, Any]:
    """Run episodes; return vla-eval's result.

    Raises:
        RuntimeError: one of them ended by an error.
    """
    np.random.seed(seed)
    overrides = {**plan_of_episodes(episodes), "params": {"seed": seed}}
    (result,) = api.run(
        asset("config/peers/vla_eval_libero.yaml"),
        server_url=url,
        no_save=True,
        benchmark_overrides=overrides,
    )
    ended = [one for task in result["tasks"] for one in task["episodes"]]
    errors = [one["failure_detail"] for one in ended if "failure_detail" in one]
    if errors:
        raise RuntimeError(f"{len(errors)} of {episodes} episodes ended by errors: {errors[0]}")
    return dict(result)


def main(
    url: Annotated[str, typer.Argument(help="Of the model server, ws://ADDRESS:PORT.")],
    episodes: Annotated[int, typer.Option(min=1, help="At most 10, or a multiple of it.")] = TASKS,
    seed: Annotated[int, typer.Option(min=0, help="Of the furniture.")] = 0,
    out: Annotated[Path | None, typer.Option(help="File for vla-eval's result.")] = None,
) -> None:
    """Judge the policy at a URL."""
    try:
        result = judge(url, episodes, seed)
    except (ValueError, RuntimeError) as error:
        raise SystemExit(f"error: {error}") from None
    if out is not None:
        out.write_text(json.dumps(result, indent=1, default=str) + "\n")


if __name__ == "__main__":
    typer.run(main)
