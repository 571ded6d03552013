"""Demonstrations: an expert's episodes, recorded for behaviour cloning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_ros.randomness import EpisodeStreams
from adahi_ros.tasks.base import Expert, Task
from adahi_ros.tasks.portable import UNIFORMS_PER_DRAW, bell_noise
from adahi_ros.trajectories import Trajectories


@dataclass(frozen=True)
class Demonstrations:
    """What `collect` recorded.

    Attributes:
        trajectories: the successful episodes, in the order of their numbers.
        attempted: how many episodes were run.
        failed: how many of them did not meet the criterion and were left out.
    """

    trajectories: Trajectories
    attempted: int
    failed: int


def collect(
    task: Task,
    expert: Expert,
    episodes: int,
    seed: int,
    action_noise: float,
    progress: Callable[[int, int], None] | None = None,
) -> Demonstrations:
    """Run an expert with noise on what it does and record what it wanted to do.

    The noise makes the recordings show how to come back from states that the expert alone never
    meets (DART; Laskey et al., CoRL 2017). All episodes run side by side; those that fail are left out.

    Args:
        task: is reset.
        expert: is reset.
        episodes: how many to run, numbers 0 to `episodes` - 1.
        seed: of the episodes and of the noise.
        action_noise: standard deviation, as a share of half the range of each action.
        progress: called after every control step with the steps taken and the most there can be.

    Raises:
        ValueError: `episodes` or `action_noise` out of range, or not one episode succeeded.
    """
    if episodes < 1:
        raise ValueError(f"episodes: {episodes}, expected at least 1")
    if not 0.0 <= action_noise <= 1.0:
        raise ValueError(f"action_noise: {action_noise}, expected 0 to 1")
    spec = task.spec
    numbers = range(episodes)
    task.reset(seed, numbers)
    expert.reset(seed, numbers)
    streams = EpisodeStreams(seed, f"{spec.name}/action_noise", numbers, UNIFORMS_PER_DRAW * spec.action_dim)
    scale = action_noise * (spec.action_high - spec.action_low) / 2.0
    observations, actions, lengths = [], [], np.zeros(episodes, dtype=np.int64)
    for step in range(spec.max_steps):
        lengths += ~task.done
        action = expert.act(task)
        observations.append(task.observation)
        actions.append(action.astype(np.float32))
        task.step(action + scale * bell_noise(streams.next()))
        if progress is not None:
            progress(step + 1, spec.max_steps)
        if task.done.all():
            break
    kept = np.flatnonzero(task.success)
    if len(kept) == 0:
        raise ValueError(f"episodes: none of {episodes} succeeded on '{spec.name}', nothing to record")
    by_episode = np.stack(observations, axis=1), np.stack(actions, axis=1)
    trajectories = Trajectories(
        task=spec.name,
        observations=np.concatenate([by_episode[0][e, : lengths[e]] for e in kept]),
        actions=np.concatenate([by_episode[1][e, : lengths[e]] for e in kept]),
        goals=task.goal[kept].astype(np.float32),
        ends=np.cumsum(lengths[kept]),
    )
    return Demonstrations(trajectories, attempted=episodes, failed=episodes - len(kept))
