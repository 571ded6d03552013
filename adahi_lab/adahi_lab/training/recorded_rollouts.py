# SPDX-License-Identifier: Apache-2.0
"""Records a method's episodes in process, failures among them, as a robot's bags would have them."""

from __future__ import annotations

from collections.abc import Callable

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.evaluation.evaluate import Comparison, Run, batches
from adahi_lab.methods.method import Method
from adahi_lab.parallel import run_jobs
from adahi_lab.tasks import make
from adahi_lab.training.policy_corrections import recorded_episodes

FIRST_EPISODE = 800_000  # of the recordings; lower numbers are for the lessons of correctors and gates


def record_rollouts(
    comparison: Comparison,
    method: Method,
    episodes: int,
    workers: int,
    on_done: Callable[[int], None] = lambda episodes: None,
) -> tuple[Trajectories, int]:
    """Run a method on episodes that no evaluation has; return all observations, executed actions and goals.

    Args:
        comparison: task, policies, seed, and noise on what the robot executes, which is not recorded.
        method: that acts.
        episodes: how many to run.
        workers: processes; the result does not depend on their number.
        on_done: called with how many episodes have just ended.

    Returns:
        All episodes, and how many of them succeeded.

    Raises:
        ValueError: the method needs what is not there, the noise is out of range, or the task's images are
            for the target only.
    """
    if make(comparison.task).spec.images_for_target:
        raise ValueError(
            f"method: {comparison.task} has images for the target, must be left out; record with 'adahi demo'"
        )
    method.threshold(comparison.bench())  # raises errors before minutes of work
    parts = batches(lesson_episodes(episodes, FIRST_EPISODE))
    jobs = [(_record, (Run(method, comparison, part),)) for part in parts]
    found = run_jobs(jobs, workers, lambda index: on_done(len(parts[index])))
    return Trajectories.joined([data for data, _ in found]), sum(successes for _, successes in found)


def _record(run: Run) -> tuple[Trajectories, int]:
    comparison = run.comparison
    how = comparison.bench(), run.method, comparison.seed, run.episodes
    data, outcome = recorded_episodes(*how, comparison.world())
    return data, int(outcome.success.sum())
