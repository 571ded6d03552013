# SPDX-License-Identifier: Apache-2.0
"""The benefit of a camera: the same episodes with its features, and with uninformative ones.

    .venv/bin/python benchmarks/camera_ablation.py kitchen_camera --episodes 100 --json FILE

The features of every frame are replaced by their mean over the episodes with the camera, or by those of
another episode's frame at the same step. Everything else is unchanged, including joint positions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.metrics import wilson_interval
from adahi_ros.lab.methods.methods import METHODS, parse_methods
from adahi_ros.lab.tasks import make
from adahi_ros.lab.tasks.camera import WatchedTask
from adahi_ros.vision.encoder import Encoder

STILL = 0.02  # a feature with a smaller standard deviation counts as constant: keypoints are from -1 to 1


class Ablated:
    """An encoder with a transformation of the features (B, F) of a step's frames; records all features."""

    def __init__(self, encoder: Encoder, after: Callable[[np.ndarray], np.ndarray]) -> None:
        self.features, self.image_size = encoder.features, encoder.image_size
        self.made: list[np.ndarray] = []
        self._encoder, self._after = encoder, after

    def encode(self, images: np.ndarray) -> np.ndarray:
        """See `Encoder`."""
        self.made.append(self._encoder.encode(images))
        return self._after(self.made[-1])


def ablated(task: str, methods: list[str], episodes: int, seed: int) -> dict[str, Any]:
    """Return the success of methods with and without a camera's features, and the features' variation.

    Raises:
        ValueError: the task has no camera.
    """
    files = PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime")
    bench = Comparison(task, files, load_calibration(asset(f"config/{task}.yaml")), seed).bench()
    world = make(task)
    if not isinstance(world, WatchedTask):
        raise ValueError(f"task: {task!r}, must be one that a camera looks at")
    eye, figures = world.encoder, {}
    for name in methods:
        ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "seen": lambda features: features,
            "mean": lambda features: np.broadcast_to(mean, features.shape),  # noqa: B023
            "another's": lambda features: np.roll(features, 1, axis=0),
        }
        for way, after in ways.items():
            world.encoder = looking = Ablated(eye, after)  # type: ignore[assignment]
            METHODS[name].run(bench, world, seed, evaluation_episodes(episodes))
            made = np.concatenate(looking.made)
            if way == "seen":
                mean, deviation = made.mean(axis=0), made.std(axis=0)
            successes = int(world.success.sum())
            figures[f"{name}, {way}"] = {
                "success": successes / episodes,
                "ci95": wilson_interval(successes, episodes),
                "sub_tasks": float(world.completed.mean(axis=0).sum()),
            }
            print(f"{name}, {way}: {figures[f'{name}, {way}']}", flush=True)
    varying = {"features": len(deviation), "moving": int((deviation > STILL).sum())}
    return {"task": task, "episodes": episodes, "seed": seed, **varying, "methods": figures}


def main() -> None:
    """Print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--methods", default="target")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = ablated(arguments.task, parse_methods(arguments.methods), arguments.episodes, arguments.seed)
    print(f"{figures['moving']} of {figures['features']} features move by more than {STILL}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
