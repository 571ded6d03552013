# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: an expert's episodes, recorded for behaviour cloning."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.parallel import cores, run_jobs
from adahi_lab.tasks import goal_is_for_target, make, make_expert
from adahi_lab.tasks.episodes import episodes
from adahi_lab.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_lab.tasks.rests import Rests
from adahi_lab.tasks.task_interface import Expert, Task, TaskSpec
from adahi_ros.core.randomness import EpisodeStreams

NOISE = 0.1  # default, executed but not recorded: a share of half the range
BATCH_EPISODES = 10  # fixed, because a simulator's rounding may depend on the batch size
T = TypeVar("T")


class Demonstrator:
    """A task's expert, and the noise on its executed actions.

    The expert's own actions are recorded. The noise leads to states that the expert alone never reaches, and
    shows how to recover (DART; Laskey et al., CoRL 2017).

    Args:
        expert: acts.
        spec: of its task.
        action_noise: standard deviation, as a share of half the range of each action.
        stream: of the noise's draws.
        rests: share of the steps in which the robot is held instead.
    """

    def __init__(
        self,
        expert: Expert,
        spec: TaskSpec,
        action_noise: float,
        stream: str = "action_noise",
        rests: float = 0.0,
    ) -> None:
        self._expert = expert
        self._stream = f"{spec.name}/{stream}"
        self._width = UNIFORMS_PER_DRAW * spec.action_dim
        self._scale = action_noise * (spec.action_high - spec.action_low) / 2.0
        self._rests = Rests(rests, spec.command_field)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers."""
        self._expert.reset(seed, episodes)
        self._noise = EpisodeStreams(seed, self._stream, episodes, self._width)
        self._rests.reset(seed, episodes, len(self._scale))

    def act(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """Return the expert's and the executed actions, (E, A) each; once per step."""
        wanted = self._expert.act(task)
        return wanted, self._rests.applied(wanted + self._scale * bell_noise(self._noise.next()))


@dataclass(frozen=True)
class Demonstrations:
    """Episodes to learn from.

    Attributes:
        trajectories: the episodes that were kept, in the order of their numbers.
        attempted: number of all episodes.
        failed: number of failed episodes, which were left out.
    """

    trajectories: Trajectories
    attempted: int
    failed: int


def collect_parallel(
    task: str,
    episodes: int,
    seed: int,
    action_noise: float,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    rests: float = 0.0,
    first: int = 0,
) -> Demonstrations:
    """Run an expert with noise on its actions, and record its intended actions; see `Demonstrator`.

    Failed episodes are left out. The result is the same for any number of workers. The processes are
    spawned, so a script that calls this needs the usual `if __name__ == "__main__":`.

    Args:
        task: what `make` and `make_expert` take.
        episodes: how many to run.
        seed: of the episodes and of the noise.
        action_noise: standard deviation, as a share of half the range of each action.
        workers: processes; 1 runs in this one. Default: one per core that this one may use.
        progress: called after every batch with the episodes run and how many there are.
        rests: share of the steps in which the robot is held, see `Rests`.
        first: number of the first episode.

    Raises:
        ValueError: an argument out of range, no such task, or not one episode succeeded.
    """
    if episodes < 1:
        raise ValueError(f"episodes: {episodes}, expected at least 1")
    if not 0.0 <= action_noise <= 1.0:
        raise ValueError(f"action_noise: {action_noise}, expected 0 to 1")
    name = make(task).spec.name  # raises for a wrong name before any process starts
    try:
        arguments = task, seed, action_noise, rests
        recorded = in_batches(_record, arguments, episodes, workers, progress, first)
    finally:
        _world.cache_clear()
    kept = [batch for batch in recorded if batch is not None]
    if not kept:
        raise ValueError(f"episodes: none of {episodes} succeeded on '{name}', nothing to record")
    trajectories = Trajectories.joined(kept)
    return Demonstrations(trajectories, attempted=episodes, failed=episodes - len(trajectories))


def in_batches(
    record: Callable[..., T],
    arguments: tuple[object, ...],
    episodes: int,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
    first: int = 0,
) -> list[T]:
    """Record batches of episodes in processes; return the result of each.

    Args:
        record: takes the arguments and the numbers of the episodes of a batch.
        arguments: of `record`.
        episodes: how many in all.
        workers: see `collect_parallel`.
        progress: likewise.
        first: likewise.
    """
    numbers = range(first, first + episodes)
    batches = [numbers[start : start + BATCH_EPISODES] for start in range(0, episodes, BATCH_EPISODES)]
    done = 0

    def on_done(index: int) -> None:
        nonlocal done
        done += len(batches[index])
        if progress is not None:
            progress(done, episodes)

    jobs = [(record, (*arguments, batch)) for batch in batches]
    return run_jobs(jobs, cores() if workers is None else workers, on_done)


def _record(
    name: str, seed: int, action_noise: float, rests: float, numbers: Sequence[int]
) -> Trajectories | None:
    """Return the successful episodes of these numbers; None without any."""
    task, expert = _world(name)
    spec = task.spec
    demonstrator = Demonstrator(expert, spec, action_noise, rests=rests)
    nothing = np.zeros((len(numbers), 0), dtype=np.float32)
    pixels = getattr(task, "pixels_for_target", False)
    rows: list[tuple[np.ndarray, ...]] = []
    for active in episodes(task, seed, numbers, demonstrator):
        wanted, executed = demonstrator.act(task)
        seen = task.image_features if spec.images_for_target else nothing  # type: ignore[attr-defined]
        labels = getattr(task, "labels", nothing).astype(np.float32)
        seen = seen.astype(np.uint8) if pixels else seen
        rows.append((active, task.observation, wanted.astype(np.float32), seen, labels))
        task.step(executed)
    kept = task.success
    if not kept.any():
        return None
    active, observed, acted, shown, labels = (
        np.stack(column, axis=1)[kept] for column in zip(*rows, strict=True)
    )
    ends, goals = np.cumsum(active.sum(axis=1)), task.goal[kept].astype(np.float32)
    return Trajectories(
        spec.name, observed[active], acted[active], goals, ends, shown[active], labels[active]
    )


def seen_by_robots(data: Trajectories, task: str) -> Trajectories:
    """Return demonstrations of a task as its robot sees them, without inputs of the target only."""
    data = data.without_images()
    return data.without_goals() if goal_is_for_target(task) else data


@functools.lru_cache(maxsize=1)
def _world(task: str) -> tuple[Task, Expert]:
    """Make them once per process: loading a robot's model takes longer than a batch of steps."""
    return make(task), make_expert(task)
