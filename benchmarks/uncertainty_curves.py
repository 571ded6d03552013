# SPDX-License-Identifier: Apache-2.0
"""Success against calls of the two forms of uncertainty, beside ADAHI's gate and chance.

    .venv/bin/python benchmarks/uncertainty_curves.py TASK [--episodes N] [--rates R,R,...] [--json FILE]

Every gate at the same wanted rates on the same episodes; of each point the measured rate, and of each curve
the area under it. A sampled uncertainty has a few values only, so not every rate can be had of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.sweep import areas, sweep
from adahi_ros.lab.methods.methods import gates_of_methods
from adahi_ros.lab.reporting.tables import narrow_table, number

COMPARED = "sampled_uncertainty:speculative,uncertainty,adahi,random"


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="At each point.")] = 100,
    rates: Annotated[str, typer.Option(help="Wanted, falling, the first one 1.")] = "1,0.8,0.6,0.4,0.2,0.1",
    methods: Annotated[str, typer.Option(help="Separated by commas.")] = COMPARED,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Print success at every rate, and the area under each curve."""
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    comparison = Comparison(task, PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime"), calibration, seed)
    wanted = [float(each) for each in rates.split(",")]
    swept = gates_of_methods(methods.split(","))
    points = sweep(comparison, evaluation_episodes(episodes), workers, wanted, ("draft",), swept=swept)
    table = narrow_table(
        f"{task}, {episodes} episodes, seed {seed}", ("method",), ("success", "95 %", "TR", "calls")
    )
    for point in sorted(points, key=lambda each: (each.method, -each.figures["transmission_rate"])):
        figures = point.figures
        low, high = figures["success_ci95"]
        table.add_row(
            point.method,
            number(figures["success_rate"]),
            f"{low:.2f}-{high:.2f}",
            number(figures["transmission_rate"]),
            f"{figures['calls_per_episode']:.1f}",
        )
    Console().print(table)
    under = areas(points)
    for name, area in under.items():
        print(f"area under {name}: {area.area:.3f}, rates {area.rates[0]:.2f} to {area.rates[1]:.2f}")
    if json_file is not None:
        found = {"points": [asdict(point) for point in points]}
        json_file.write_text(
            json.dumps({**found, "areas": {k: asdict(v) for k, v in under.items()}}, indent=1)
        )


if __name__ == "__main__":
    typer.run(main)
