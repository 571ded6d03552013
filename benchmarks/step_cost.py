# SPDX-License-Identifier: Apache-2.0
"""What one control step costs on the robot, part by part, side by side in one run.

    .venv/bin/python benchmarks/step_cost.py [--json FILE]

Batch 1, one thread, the shipped ball balancing policies. Prints medians; asserts nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from adahi_ros.core.assets import asset
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.gates.gate_config import DeviationTracker, ThresholdedGate
from adahi_ros.gates.interface import GateContext
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Sampling

BLOCK = 50  # a robot runs one backend, so each is timed warm; short blocks share out the noise


def medians_us(parts: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Time the parts in turns of a block each; the first turn warms up."""
    taken: dict[str, list[int]] = {name: [] for name in parts}
    for turn in range(1 + rounds // BLOCK):
        for name, part in parts.items():
            for _ in range(BLOCK):
                start = time.perf_counter_ns()
                part()
                elapsed = time.perf_counter_ns() - start
                if turn > 0:
                    taken[name].append(elapsed)
    return {name: float(np.median(values)) / 1e3 for name, values in taken.items()}


def main(
    rounds: Annotated[int, typer.Option(help="Repetitions of every part.")] = 3000,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Time the parts of a control step."""
    torch.set_num_threads(1)
    folder = asset("checkpoints/ball")
    calibration = load_calibration(asset("config/ball.yaml"))
    eager, onnx = (load_policy(folder / "draft", backend) for backend in ("torch", "onnxruntime"))
    target_eager, target_onnx = (load_policy(folder / "target", b) for b in ("torch", "onnxruntime"))
    signature = eager.signature
    rng = np.random.default_rng(0)
    window = rng.normal(size=(1, signature.history, signature.observation_dim)).astype(np.float32)
    goal = rng.normal(size=(1, signature.goal_dim)).astype(np.float32)
    observations = signature.observations(window, goal)
    observed = {OBSERVATION: window[:, -1], GOAL: goal}
    draws = rng.random((1, eager.draws))
    sampling = Sampling(sendable=True)
    draft = onnx.propose(observations, draws, sampling)
    action = draft.actions[:, 0]
    tracker = DeviationTracker(eager.action_scale, calibration.smoothing, calibration.normalization)
    tracker.update(action)
    gate = ThresholdedGate("deviation", calibration.thresholds["deviation"])

    def gate_and_bookkeeping() -> bool:
        deviation = tracker.deviation(action)
        known = GateContext(0, observed, observations, draft, deviation, np.zeros(1), draws[:, 0])
        transmit = gate.gate.score(known) > gate.threshold
        tracker.update(action)
        return bool(transmit[0])

    taken = medians_us(
        {
            "draft step, torch eager": lambda: eager.propose(observations, draws, sampling),
            "draft step, ONNX Runtime": lambda: onnx.propose(observations, draws, sampling),
            "gate and bookkeeping": gate_and_bookkeeping,
            "target proposal, torch eager": lambda: target_eager.propose(observations, draws),
            "target proposal, ONNX Runtime": lambda: target_onnx.propose(observations, draws),
        },
        rounds,
    )
    reference = taken["draft step, torch eager"]
    table = Table(title=f"batch 1, one thread, median of {rounds}", title_justify="left")
    for heading in ("part", "µs", "share of an eager draft step"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for name, value in taken.items():
        table.add_row(name, f"{value:.1f}", f"{value / reference:.3f}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"median_us": taken}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
