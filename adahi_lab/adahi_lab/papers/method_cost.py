# SPDX-License-Identifier: Apache-2.0
"""Costs of a control step on the robot for each method, and of a verification at the verifier.

    OPENBLAS_NUM_THREADS=1 .venv/bin/python -m adahi_lab.papers.method_cost TASK
        [--methods M,M,...] [--checkpoints FOLDER]

Real episodes one by one, the methods in turns, by the shipped policies and calibration of a task; a gate
without a threshold there has 0.5. Processor time of one thread, so that other programs disturb little.
Prints medians; asserts nothing.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import torch
import typer
from rich.console import Console

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.cli.task_options import folder_of
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.methods.methods import METHODS, gates_of_methods, parse_methods
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.core.texts import abridged
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

COMPARED = "draft,adahi,uncertainty,sampled_uncertainty:speculative,always:distance,plan_8,corrector_8"
UNCALIBRATED = 0.5


@contextmanager
def timed(owner: type, name: str, took: Callable[[float], None]) -> Iterator[None]:
    """Tell how many ms of this thread each call of a method takes."""
    method = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        started = time.thread_time_ns()
        try:
            return method(*given, **named)
        finally:
            took((time.thread_time_ns() - started) / 1e6)

    with patch.object(owner, name, call):
        yield


class Costs:
    """Of one method: what each control step took on the robot, and each verification, in ms."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.verifications: list[float] = []

    def began(self, ms: float) -> None:
        """A control step begins with what is proposed."""
        self.steps.append(ms)

    def went_on(self, ms: float) -> None:
        """What came after that in the same step."""
        if self.steps:
            self.steps[-1] += ms

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take in what controllers and verifiers do."""
        with ExitStack() as stack:
            stack.enter_context(timed(Controller, "begin", self.began))
            for after in ("finish", "receive", "executed"):
                stack.enter_context(timed(Controller, after, self.went_on))
            stack.enter_context(timed(TargetVerifier, "verdict", self.verifications.append))
            yield


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")] = "ball",
    methods: Annotated[str, typer.Option(help="As of 'adahi evaluate', separated by commas.")] = COMPARED,
    checkpoints: Annotated[Path | None, typer.Option(help="Folder of the policies.")] = None,
    episodes: Annotated[int, typer.Option(min=2, help="Of each method; the first one warms up.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
) -> None:
    """Time methods in episodes of a task."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # numpy reads it as it is imported
        raise typer.BadParameter(
            "OPENBLAS_NUM_THREADS: must be 1, for threads that wait for others cost, too"
        )
    torch.set_num_threads(1)
    names = parse_methods(methods, own=True)
    files = PolicyFiles(folder_of(task, checkpoints), "onnxruntime")
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    thresholds = dict.fromkeys(gates_of_methods(names).values(), UNCALIBRATED) | calibration.thresholds
    calibration = replace(calibration, thresholds=thresholds)
    bench, world = Bench(task, files.load(), calibration), make(task)
    costs: dict[str, Costs] = defaultdict(Costs)
    for turn, episode in enumerate(evaluation_episodes(episodes)):
        for name in names:
            found = costs[name] if turn else Costs()
            with found.watched():
                METHODS[name].run(bench, world, seed, [episode])
    table = narrow_table(
        f"{task}: ms of processor time, batch 1",
        ("method",),
        ("a step, median", "p99", "a verification", "steps"),
    )
    for name, found in costs.items():
        table.add_row(
            abridged(name, 40),
            *map(number, np.percentile(found.steps, [50, 99])),
            number(float(np.median(found.verifications))) if found.verifications else "",
            str(len(found.steps)),
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
