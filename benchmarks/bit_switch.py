# SPDX-License-Identifier: Apache-2.0
"""Compares the switch of bit widths with a random switch of the same rate.

    .venv/bin/python benchmarks/bit_switch.py [TASK] [--episodes N] [--methods M,M,...] [--json FILE]

Draft and target are those of config/switched/TASK. The first table has the distances of actions with eight
and with 32 bits in episodes of the target, for coarse and for fine steps. A useful switch has smaller
distances in coarse steps. The second table has the success with that switch, and with a random one of the
same share.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from bit_widths import observed, windows
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.core.signature import Observations
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Outcome, outcome_figures
from adahi_ros.lab.evaluation.loaded_policies import Bench, Policies
from adahi_ros.lab.evaluation.metrics import mcnemar
from adahi_ros.lab.methods.methods import METHODS, parse_methods
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.switched import SwitchedPolicy

WATCHED = 10  # episodes in which the target acts, as of bit_widths.py
COMPARED = ("draft", "target")


class AtRandom(SwitchedPolicy):
    """Chooses coarse at random, for a share of the proposals."""

    def throw(self, share: float, seed: int) -> AtRandom:
        """Set the share and start the draws."""
        self._share, self._random = share, np.random.default_rng(seed)
        return self

    def coarse(self, observations: Observations) -> np.ndarray:
        """See `SwitchedPolicy`."""
        return self._random.random(len(self.signature.window(observations))) < self._share


def networks(task: str, name: str) -> tuple[Policy, Policy]:
    """Return the networks of a policy of config/switched/, of 32 bits and of eight."""
    checkpoint = asset("checkpoints") / _settings(task, name)["checkpoint"]
    return load_policy(checkpoint, "onnxruntime"), load_policy(checkpoint, "int8")


def switched(task: str, name: str, pair: tuple[Policy, Policy], kind: type[SwitchedPolicy]) -> SwitchedPolicy:
    """Return the policy of config/switched/, or one with another switch."""
    settings = _settings(task, name)
    weights = asset(f"checkpoints/{settings['checkpoint']}.safetensors")
    return kind(
        *pair, read_tensors(weights)["observation_scale"], settings["coarse_above"], settings["fine_below"]
    )


def _settings(task: str, name: str) -> dict[str, Any]:
    return read_yaml(asset(f"config/switched/{task}/{name}.yaml"))


def apart(pair: tuple[Policy, Policy], read: list[Observations], seed: int) -> np.ndarray:
    """Return the distances of actions with the same codes at some observations (N,), in action scales."""
    distances = []
    for row, each in enumerate(read):
        draws = np.random.default_rng([seed, row]).random((1, pair[0].draws))
        one, other = (network.propose(each, draws) for network in pair)
        difference = one.actions - other.distribution.actions_of(one.distribution.codes)
        distances.append(np.abs(difference / pair[0].action_scale).max())
    return np.array(distances)


def main(
    task: Annotated[str, typer.Argument(help="One of config/switched.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="For the success.")] = 100,
    methods: Annotated[str, typer.Option(help="Separated by commas; of single actions.")] = "target,adahi",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 11,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Compare the switch of a task with one that is thrown at random."""
    pairs = {name: networks(task, name) for name in COMPARED}
    seen = observed(task, pairs["target"][0], pairs["draft"][0], seed, WATCHED)
    table = narrow_table(
        f"{task}: eight bits and 32, apart where the switch says",
        ("policy",),
        ("coarse, share", "mean", "median", "fine: mean", "median"),
    )
    figures: dict[str, dict[str, Any]] = {"apart": {}, "success": {}}
    by_motion, at_random = {}, {}
    for name, pair in pairs.items():
        read = windows(pair[0], seen)
        by_motion[name] = switched(task, name, pair, SwitchedPolicy)
        coarse = np.concatenate([by_motion[name].coarse(each) for each in read])
        share = float(coarse.mean())
        at_random[name] = switched(task, name, pair, AtRandom).throw(share, seed)
        distances = apart(pair, read, seed)
        parts = distances[coarse], distances[~coarse]
        distance = [float(of(part)) for part in parts for of in (np.mean, np.median)]
        figures["apart"][name] = {"share": share, "coarse": distance[:2], "fine": distance[2:]}
        table.add_row(name, *map(number, (share, *distance)))
    Console().print(table)
    table = narrow_table(
        f"{task}, {episodes} episodes, seed {seed}", ("method", "switch"), ("success", "95 %", "TR", "p")
    )
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    for method in parse_methods(methods):
        success = {}
        for name, policies in (("by motion", by_motion), ("at random", at_random)):
            world = make(task)
            bench = Bench(task, Policies(**policies), calibration)
            log = METHODS[method].run(bench, world, seed, evaluation_episodes(episodes))
            found = outcome_figures(Outcome(log, world.success, world.completed, world.fulfilled))
            success[name] = world.success
            p = mcnemar(success["by motion"], success[name]).p if len(success) > 1 else None
            figures["success"][f"{method}, {name}"] = {**found, "p": p}
            low, high = found["success_ci95"]
            rates = number(found["success_rate"]), f"{low:.2f}-{high:.2f}", number(found["transmission_rate"])
            table.add_row(METHODS[method].label, name, *rates, number(p))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"task": task, **figures}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
