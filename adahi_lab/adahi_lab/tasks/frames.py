# SPDX-License-Identifier: Apache-2.0
"""Frames to train an encoder on, with labels from the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.camera import Film, View, make_view
from adahi_lab.tasks.demonstrations import Demonstrator, in_batches
from adahi_lab.tasks.episodes import episodes
from adahi_lab.tasks.task_interface import Expert, Task

EVERY = 2  # steps; frames in between show nothing new


def record_frames(
    task: str,
    episodes: int,
    seed: int,
    action_noise: float,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, episodes: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Render an expert's episodes, also failed ones, with noise on its actions.

    Args:
        task: registry name of a task with a camera.
        episodes: how many, numbers 0 to `episodes` - 1.
        seed: of the episodes and of the noise.
        action_noise: standard deviation, as a share of half the range of each action.
        workers: processes; the frames are the same for any number.
        progress: called after every batch with the episodes done and how many there are.

    Returns:
        Images (N, H, W, 3) uint8 and labels (N, L) float32, named by the view.

    Raises:
        ValueError: the task has no camera, or an argument is out of range.
    """
    make_view(task)  # raises for a wrong name before any process starts
    parts = in_batches(_record, (task, seed, action_noise), episodes, workers, progress)
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


@lru_cache(maxsize=1)
def _world(name: str) -> tuple[Task, Expert, View]:
    """Make them once per process: loading a robot's model takes longer than a batch of steps."""
    return make(name), make_expert(name), make_view(name)


def _record(
    name: str, seed: int, action_noise: float, numbers: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    task, expert, view = _world(name)
    film, demonstrator = Film(task, view), Demonstrator(expert, task.spec, action_noise, "frames")
    images, labels = [], []
    for step, active in enumerate(episodes(task, seed, numbers, demonstrator, film)):
        if step % EVERY == 0:
            images.append(film.images[active])
            labels.append(view.labels(task)[active])
        task.step(demonstrator.act(task)[1])
        film.advance(active)
    return np.concatenate(images), np.concatenate(labels).astype(np.float32)
