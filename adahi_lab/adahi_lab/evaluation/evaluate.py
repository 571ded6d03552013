# SPDX-License-Identifier: Apache-2.0
"""Runs methods on the episodes of a task, in process and on all cores; returns figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.calibration.recorded_world import RecordedWorld
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.disturbances import DisturbedWorld, WorldAround
from adahi_lab.evaluation.episodes import HELD_OUT_SEED_OFFSET
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles, calibration_in, uncalibrated
from adahi_lab.evaluation.metrics import (
    information_age,
    mcnemar,
    squared_error,
    wilson_interval,
)
from adahi_lab.evaluation.rollout import Logged
from adahi_lab.evaluation.step_link import Across, StepLink
from adahi_lab.evaluation.swaps import DriftingWorld, Swap, SwappedWorld
from adahi_lab.figures import Figures
from adahi_lab.methods.method import Method
from adahi_lab.methods.methods import METHODS
from adahi_lab.parallel import Job, ended_jobs, run_jobs
from adahi_lab.tasks import goal_is_for_target, make, make_evaluated
from adahi_lab.tasks.demonstrations import collect_parallel
from adahi_lab.tasks.task_interface import Task
from adahi_ros.core.assets import asset, shipped
from adahi_ros.robot.prefetch import PATIENCE_S

BATCH = 100  # episodes side by side; fixed, because a network's rounding may depend on the batch size
HELD_OUT_EPISODES = 50
TARGET = "target"  # default reference of the comparison
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Outcome(Logged):
    """Results of E episodes with one method.

    Attributes:
        log: step by step.
        success: (E,) bool.
        completed: (E, P) bool, sub-tasks that were completed at some time.
        fulfilled: (E, P) bool, sub-tasks that were fulfilled at the end.
    """

    success: np.ndarray
    completed: np.ndarray
    fulfilled: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """Task, policies and calibration of a comparison; picklable, to send it to workers.

    Attributes:
        task: registry name.
        files: the policies.
        calibration: of their gates.
        seed: of every draw.
        link: between robot and target; None for none.
        swap: changes the goals within the episodes; None for none.
        action_noise: on what robots execute, see `DisturbedWorld`.
        drift: speed of the goals, m/s, see `DriftingWorld`.
        sensor_noise_m: on the places that robots observe, see `DisturbedWorld`.
    """

    task: str
    files: PolicyFiles
    calibration: Calibration
    seed: int
    link: StepLink | None = None
    swap: Swap | None = None
    action_noise: float = 0.0
    drift: float = 0.0
    sensor_noise_m: float = 0.0

    @classmethod
    def shipped(cls, task: str, seed: int, backend: str = "onnxruntime") -> Comparison:
        """Return a comparison on the shipped policies of a task, and on its calibration where one is shipped.

        Raises:
            ValueError: there are no policies, or the calibration does not match.
        """
        name = make(task).spec.name
        files = PolicyFiles(asset(f"checkpoints/{name}"), backend)
        file = f"config/{name}.yaml"
        found = calibration_in(asset(file) if shipped(file) else None, name, files.load())
        return cls(task, files, found, seed)

    @classmethod
    def of_folder(cls, task: str, folder: Path, seed: int, backend: str = "onnxruntime") -> Comparison:
        """Return a comparison on the policies in a folder, without thresholds.

        Raises:
            ValueError: a policy cannot be loaded.
        """
        files = PolicyFiles(folder, backend)
        return cls(task, files, uncalibrated(make(task).spec.name, files.load()), seed)

    def of_method(self, method: Method) -> Comparison:
        """Return the comparison with the policies of a method; raises as `PolicyFiles.of_method`."""
        name = make(self.task).spec.name if method.checkpoints else self.task
        return replace(self, files=self.files.of_method(name, method.checkpoints, method.backend))

    def bench(self) -> Bench:
        """Load task, policies and calibration.

        Raises:
            ValueError: something cannot be loaded, or the robot reads an input that is for the target only.
        """
        policies = self.files.load()
        if goal_is_for_target(self.task):
            policies.check_goal_is_for_target()
        spec = make(self.task).spec
        patience = math.ceil(PATIENCE_S * spec.control_rate_hz)
        across = None if self.link is None else Across(self.link, spec.command_field, patience)
        return Bench(self.task, policies, self.calibration, across)

    def world(self) -> Task | WorldAround:
        """Return a new world.

        Raises:
            ValueError: there is no such task, its goals cannot change so, or the noise is out of range.
        """
        world = make_evaluated(self.task) if self.swap is None else SwappedWorld(self.task, self.swap)
        drifting = DriftingWorld(world, self.drift) if self.drift else world
        noises = self.action_noise, self.sensor_noise_m
        return DisturbedWorld(drifting, *noises) if any(noises) else drifting


@dataclass(frozen=True)
class Run:
    """One method on some episodes; pickles.

    Attributes:
        method: to run.
        comparison: task and policies.
        episodes: their numbers.
    """

    method: Method
    comparison: Comparison
    episodes: Sequence[int]


def batches(episodes: Sequence[int]) -> list[Sequence[int]]:
    """Split episodes as jobs are split."""
    return [episodes[start : start + BATCH] for start in range(0, len(episodes), BATCH)]


def play(run: Run) -> Outcome:
    """Run episodes of the task with one method, side by side."""
    world, comparison = run.comparison.world(), run.comparison
    log = run.method.run(comparison.bench(), world, comparison.seed, run.episodes)
    return Outcome(log, world.success, world.completed, world.fulfilled)


def played(
    runs: Sequence[Run], workers: int, on_part: Callable[[int, int], None] = lambda index, episodes: None
) -> Generator[tuple[int, Outcome], None, None]:
    """Play runs; yield the index and the outcome of each as it ends.

    Args:
        runs: to play.
        workers: processes; the outcomes do not depend on their number.
        on_part: receives the index of a run and how many of its episodes have just ended.
    """
    parts = [(index, part) for index, run in enumerate(runs) for part in batches(run.episodes)]
    jobs: list[Job[Outcome]] = [(play, (replace(runs[index], episodes=part),)) for index, part in parts]
    waited_for = Counter(index for index, _ in parts)
    found: dict[int, dict[int, Outcome]] = {index: {} for index in waited_for}
    with closing(ended_jobs(jobs, workers)) as ended:
        for job, outcome in ended:
            index, part = parts[job]
            on_part(index, len(part))
            found[index][job] = outcome
            if len(found[index]) == waited_for[index]:
                yield index, Outcome.side_by_side([whole for _, whole in sorted(found.pop(index).items())])


def play_runs(
    runs: Mapping[str, Run], workers: int, on_done: Progress = lambda name, episodes: None
) -> dict[str, Outcome]:
    """Play runs by name; arguments as `played`, with the name of a run in place of its index."""
    names = list(runs)
    outcomes = dict(played(list(runs.values()), workers, lambda index, done: on_done(names[index], done)))
    return {name: outcomes[index] for index, name in enumerate(names)}


def expert_error(run: Run, expert: Trajectories) -> float:
    """Return the mean squared error of a run's method, in action scales, on an expert's observations.

    Args:
        run: its method, task and policies.
        expert: recorded observations and actions, instead of the run's episodes.
    """
    bench = run.comparison.bench()
    log = run.method.run(bench, RecordedWorld(expert), run.comparison.seed, range(len(expert)))
    return squared_error(expert, log.action, log.active, bench.policies.draft.action_scale)


def held_out(task: str, seed: int, workers: int = 1) -> Trajectories:
    """Return expert episodes to compare actions with."""
    recorded = collect_parallel(
        task, HELD_OUT_EPISODES, HELD_OUT_SEED_OFFSET + seed, action_noise=0.0, workers=workers
    )
    return recorded.trajectories


def play_all(
    comparison: Comparison,
    names: Sequence[str],
    episodes: Sequence[int],
    workers: int,
    on_done: Progress = lambda name, episodes: None,
) -> dict[str, Outcome]:
    """Run every method on the same episodes.

    Args:
        comparison: task and policies.
        names: keys of `METHODS`.
        episodes: their numbers.
        workers: processes.
        on_done: receives a method and how many of its episodes have just ended.
    """
    return play_runs({name: _run(name, comparison, episodes) for name in names}, workers, on_done)


def _run(name: str, comparison: Comparison, episodes: Sequence[int]) -> Run:
    """Return the run of a method with its own policies."""
    method = METHODS[name]
    return Run(method, comparison.of_method(method), episodes)


def outcome_figures(outcome: Outcome) -> Figures:
    """Return the figures of a method's episodes."""
    log, episodes = outcome.log, len(outcome.success)
    successes, calls = int(outcome.success.sum()), int(log.transmitted[log.active].sum())
    return {
        "success_rate": successes / episodes,
        "success_ci95": list(wilson_interval(successes, episodes)),
        "success_at_end": float(outcome.fulfilled.all(axis=1).mean()),
        "subtasks": outcome.completed.shape[1],
        "subtasks_completed": float(outcome.completed.sum(axis=1).mean()),
        **log.rates(),
        "steps_per_episode": float(log.active.sum() / episodes),
        "steps_to_success": float(log.active[:, outcome.success].sum() / successes) if successes else None,
        "held_share": float(log.held[log.active].mean()),
        "calls_per_episode": calls / episodes,
        "refused": int(log.refused[log.active].sum()),
        "information_age": information_age(log.age, log.active),
    }


def reference_among(names: Sequence[str], wanted: str | None = None) -> str:
    """Return the reference method: the wanted one, else the target, else the first.

    Raises:
        ValueError: the wanted one is not among them.
    """
    if wanted is not None and wanted not in names:
        raise ValueError(f"against: {wanted!r}, must be one of the methods compared: {', '.join(names)}")
    return wanted or (TARGET if TARGET in names else names[0])


def paired_with(success: np.ndarray, name: str, others: np.ndarray) -> Figures:
    """Compare a method with the named reference by success (E,) in the same episodes."""
    return {"method": name, **mcnemar(success, others)._asdict()}


def evaluate_methods(
    comparison: Comparison,
    names: Sequence[str],
    episodes: Sequence[int],
    workers: int = 1,
    on_done: Progress = lambda name, episodes: None,
    against: str | None = None,
) -> dict[str, Figures]:
    """Run every method; return the figures of each, as `adahi evaluate --json` writes them.

    Arguments and errors as `play_all` and, `against`, `reference_among`.
    """
    reference = reference_among(names, against)
    comparison.world()  # raises errors before hours of work
    # Each is made once, so that a changed file is an error.
    runs = {name: _run(name, comparison, episodes) for name in names}
    thresholds = {
        name: run.method.threshold(run.comparison.bench()) for name, run in runs.items()
    }  # raises errors before hours of work
    expert = held_out(comparison.task, comparison.seed, workers)
    outcomes = play_runs(runs, workers, on_done)
    errors = run_jobs([(expert_error, (run, expert)) for run in runs.values()], workers)
    figures: dict[str, Figures] = {}
    for name, error in zip(names, errors, strict=True):
        gate, threshold = thresholds[name]
        figures[name] = {
            "gate": gate,
            "threshold": threshold,
            **outcome_figures(outcomes[name]),
            "mse": error,
            "against": None
            if name == reference
            else paired_with(outcomes[name].success, reference, outcomes[reference].success),
        }
    return figures
