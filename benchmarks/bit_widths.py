# SPDX-License-Identifier: Apache-2.0
"""Costs and savings of eight instead of 32 bits: bytes, time, and distances of proposals.

    .venv/bin/python benchmarks/bit_widths.py [TASK] [--episodes N] [--json FILE]

At the observations of episodes in which the target acts. Times are medians of one robot's proposal, taken in
turns, one thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from step_cost import medians_us

from adahi_ros.core.assets import asset
from adahi_ros.core.signature import GOAL, OBSERVATION, Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.lab.evaluation.rollout import for_target, rollout
from adahi_ros.lab.history import History
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import is_policy, load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.onnx_cache import FULL, INT8, cache_folder
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

COMPARED = ("draft", "target", "plans/target")


@dataclass
class _Watched:
    """A world that records the robots' observations."""

    world: object
    seen: list[dict[str, np.ndarray]]

    def __getattr__(self, name: str) -> object:
        return getattr(self.world, name)

    def step(self, action: np.ndarray) -> None:
        self.seen.append({OBSERVATION: self.world.observation, GOAL: self.world.goal})
        self.seen[-1].update(for_target(self.world), active=~self.world.done)
        self.world.step(action)


def observed(task: str, target: Policy, draft: Policy, seed: int, episodes: int) -> list[dict]:
    """Return the observations, step by step, while the target acts."""
    world = _Watched(make(task), [])
    controller = Controller(draft, ControllerConfig(ThresholdedGate("always")))
    rollout(world, controller, TargetVerifier(target, "replace"), seed, range(episodes))
    return world.seen


def windows(policy: Policy, seen: list[dict]) -> list[Observations]:
    """Return a policy's inputs at each step of each episode."""
    history = History(policy.signature, len(seen[0]["active"]))
    read = []
    for step in seen:
        observed = {name: values for name, values in step.items() if name != "active"}
        together = history.push(observed)
        read += [together.rows(np.array([row])) for row in np.flatnonzero(step["active"])]
    return read


def in_turns(policy: Policy, read: list[Observations]) -> Callable[[], object]:
    """Return a proposal by one observation after the other."""
    turn, draws = cycle(read), np.full((1, policy.draws), 0.5)
    return lambda: policy.propose(next(turn), draws)


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="In which the target acts.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 7,
    most: Annotated[int, typer.Option(min=1, help="Observations at which the two are compared.")] = 300,
    rounds: Annotated[int, typer.Option(help="Repetitions of every proposal.")] = 2000,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Compare the policies of a task, of 32 bits and of eight."""
    folder = asset(f"checkpoints/{task}")
    names = [name for name in COMPARED if is_policy(folder / name)]
    pairs = {
        name: [load_policy(folder / name, backend) for backend in ("onnxruntime", "int8")] for name in names
    }
    seen = observed(task, pairs["target"][0], pairs["draft"][0], seed, episodes)
    figures: dict[str, dict[str, float]] = {}
    table = narrow_table(
        f"{task}: eight bits against 32",
        ("policy",),
        ("kB", "int8", "µs", "int8", "apart, median", "p99", "same codes"),
        caption="apart: actions, in action scales",
    )
    for name, (full, light) in pairs.items():
        weights = (folder / name).with_name(f"{Path(name).name}.safetensors")
        read = windows(full, seen)
        some = np.random.default_rng(seed).permutation(len(read))[:most]
        apart, same = [], []
        for row in some:
            draws = np.random.default_rng([seed, row]).random((1, full.draws))
            one, other = (policy.propose(read[row], draws) for policy in (full, light))
            if one.distribution is not None:
                codes = one.distribution.codes
                same.append(bool((codes == other.distribution.codes).all()))
                difference = one.actions - other.distribution.actions_of(codes)
            else:
                difference = one.actions - other.actions
            apart.append(float(np.abs(difference / full.action_scale).max()))
        taken = medians_us(
            {
                str(bits): in_turns(policy, [read[row] for row in some])
                for bits, policy in ((32, full), (8, light))
            },
            rounds,
        )
        sizes = (weights.with_suffix(FULL), cache_folder() / f"{full.digest}{INT8}")
        kilobytes = [path.stat().st_size / 1e3 for path in sizes]
        figures[name] = {
            "full_kb": kilobytes[0],
            "int8_kb": kilobytes[1],
            "full_us": taken["32"],
            "int8_us": taken["8"],
            "apart_median": float(np.median(apart)),
            "apart_p99": float(np.percentile(apart, 99)),
            "same_codes": float(np.mean(same)) if same else float("nan"),
        }
        table.add_row(
            name,
            *(f"{value:.0f}" for value in (*kilobytes, taken["32"], taken["8"])),
            *map(number, (figures[name]["apart_median"], figures[name]["apart_p99"])),
            number(figures[name]["same_codes"]) if same else "",
        )
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"task": task, "policies": figures}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
