# SPDX-License-Identifier: Apache-2.0
"""What a cache of visual features saves, and what it does to success, on a world that a camera looks at.

    .venv/bin/python benchmarks/visual_cache.py [TASK] [--episodes N] [--tolerance T] [--json FILE]

The same episodes are run with and without it, the target acting at every step, and both encoders are timed in
turns at the frames of the first ones; one thread. Every episode begins with an empty cache.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_ros.lab.evaluation.metrics import wilson_interval
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import make
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.visual_cache import TOLERANCE, CachedEncoder

REPEATED = 5  # times that each film is encoded to be timed
CASES = {"none": None, "strict": 0.0, "tolerant": TOLERANCE}


def films(task: str, seed: int, episodes: int) -> list[np.ndarray]:
    """Return the frames of episodes in which the target acts, each (T, H, W, 3)."""
    world = make(task)
    taken: list[list[np.ndarray]] = []
    step = world.step

    def watched(action: np.ndarray) -> None:
        taken[-1].append(world.images[0])
        step(action)

    world.step = watched
    bench = bench_of(task)
    for episode in range(episodes):
        taken.append([])
        METHODS["target"].run(bench, world, seed, [episode])
    return [np.stack(frames) for frames in taken]


def bench_of(task: str) -> Bench:
    """Return what is shipped for a task."""
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    return Bench(task, files.load(), load_calibration(asset(f"config/{task}.yaml")))


def timed(encoder: Encoder | CachedEncoder, film: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Return what each frame took, µs, and its features."""
    took, features = [], []
    for frame in film:
        start = time.perf_counter_ns()
        features.append(encoder.encode(frame[None])[0])
        took.append(1e-3 * (time.perf_counter_ns() - start))
    return took, np.stack(features)


def main(
    task: Annotated[str, typer.Argument(help="One with a camera.")] = "ball_camera",
    episodes: Annotated[int, typer.Option(min=1, help="For success.")] = 100,
    timed_episodes: Annotated[int, typer.Option(min=1, help="Episodes with timed frames.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 11,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Compare an encoder with the same that keeps what it saw."""
    world = make(task)
    path = asset(f"checkpoints/encoders/{world.encoder_name}.json")
    plain = world.encoder
    cached = {
        name: CachedEncoder(path, tolerance) for name, tolerance in CASES.items() if tolerance is not None
    }
    took: dict[str, list[float]] = {name: [] for name in CASES}
    apart: dict[str, list[float]] = {name: [] for name in CASES}
    taken = films(task, seed, timed_episodes)
    for film in taken:
        for _ in range(REPEATED):
            for name in CASES:
                if name in cached:
                    cached[name].forget()
                spent, features = timed(cached.get(name, plain), film)
                took[name] += spent[1:]
                if name == "none":
                    wanted = features
                apart[name].append(float(np.abs(features - wanted).mean()))
    resting = {name: [] for name in CASES}
    for name in CASES:
        if name in cached:
            cached[name].forget()
        still = np.repeat(taken[0][:1], 200, axis=0)
        resting[name] = timed(cached.get(name, plain), still)[0]
    figures = {}
    bench = bench_of(task)
    table = narrow_table(
        f"{task}: features kept",
        ("cache",),
        ("success", "95 %", "µs", "at rest", "looks", "pixels", "apart"),
        caption="looks: share of frames that a network was run for; apart: features, mean difference",
    )
    for name in CASES:
        succeeded, frames, looks, pixels = 0, 0, 0, 0.0
        for episode in range(episodes):
            world.encoder = cached.get(name, plain)
            if name in cached:
                cached[name].forget()
            METHODS["target"].run(bench, world, seed, [episode])
            succeeded += int(world.success[0])
            if name in cached:
                frames += cached[name].frames
                looks += cached[name].looks
                pixels += cached[name].seen * cached[name].frames
        low, high = wilson_interval(succeeded, episodes)
        figures[name] = {
            "success": succeeded / episodes,
            "interval": [low, high],
            "median_us": float(np.median(took[name])),
            "mean_us": float(np.mean(took[name])),
            "at_rest_us": float(np.median(resting[name])),
            "looks": looks / frames if frames else 1.0,
            "pixels": pixels / frames if frames else 1.0,
            "apart": float(np.mean(apart[name])),
        }
        each = figures[name]
        table.add_row(
            name,
            number(each["success"]),
            f"{low:.2f}-{high:.2f}",
            f"{each['median_us']:.0f}",
            f"{each['at_rest_us']:.0f}",
            *(number(each[what]) for what in ("looks", "pixels", "apart")),
        )
    Console().print(table)
    if json_file is not None:
        json_file.write_text(
            json.dumps({"task": task, "episodes": episodes, "cache": figures}, indent=2) + "\n"
        )


if __name__ == "__main__":
    typer.run(main)
