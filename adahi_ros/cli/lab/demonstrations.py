# SPDX-License-Identifier: Apache-2.0
"""`adahi demos`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.lab.task_options import TaskName, Workers, recorded_now
from adahi_ros.cli.options import JsonFile, Seed, finite, tried
from adahi_ros.cli.terminal import say, write_json


def demos(
    task: TaskName,
    out: Annotated[Path, typer.Option(help="File to write, safetensors.")],
    workers: Workers,
    episodes: Annotated[int | None, typer.Option(min=1, help="Episodes to run. Default: 400.")] = None,
    action_noise: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, callback=finite, help="Noise executed, not recorded: share of half the range."
        ),
    ] = 0.1,
    minari: Annotated[
        str | None,
        typer.Option(help="Instead: human episodes of this Minari data set, 'D4RL/kitchen/complete-v2'."),
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Record the scripted expert, or convert human demonstrations."""
    from adahi_ros.lab.tasks.minari_demonstrations import load_minari

    tried("--out", out)
    if minari is not None:
        if episodes is not None:
            raise ValueError(f"episodes: {episodes}, must be left out where minari ({minari}) is given")
        recorded = load_minari(minari, task)
    else:
        recorded = recorded_now(task, 400 if episodes is None else episodes, seed, action_noise, workers)
    recorded.trajectories.save(out)
    kept, steps = len(recorded.trajectories), len(recorded.trajectories.observations)
    say(f"{out}: {kept} of {recorded.attempted} episodes were kept, {steps} steps")
    write_json(
        json_file, {"task": task, "seed": seed, "attempted": recorded.attempted, "kept": kept, "steps": steps}
    )
