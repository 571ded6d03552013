# SPDX-License-Identifier: Apache-2.0
"""Training examples from recorded episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories

SMALLEST_SCALE = 1e-4  # scaling must not amplify the rounding of a constant entry


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation per entry, each (D,) float32, the latter positive."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def measure(cls, values: np.ndarray) -> Moments:
        """Measure values (T, D)."""
        scale = values.std(axis=0)
        scale = np.where(scale < SMALLEST_SCALE, 1.0, scale)
        return cls(values.mean(axis=0).astype(np.float32), scale.astype(np.float32))


def window_indices(trajectories: Trajectories, length: int) -> np.ndarray:
    """Return, for each step, the rows of its observation window: (T, H), oldest first.

    Before an episode has H steps its first observation is repeated, as `ObservationWindow` does.
    """
    indices = np.empty((len(trajectories.observations), length), dtype=np.int64)
    back = np.arange(length) - (length - 1)
    for start, end in trajectories.spans():
        steps = np.arange(start, end)[:, None]
        indices[start:end] = np.maximum(steps + back, start)
    return indices


def action_chunks(trajectories: Trajectories, length: int) -> np.ndarray:
    """Return the actions of each step and the W - 1 after it: (T, W, A); the last one is repeated."""
    chunks = np.empty((len(trajectories.actions), length, trajectories.actions.shape[1]), dtype=np.float32)
    ahead = np.arange(length)
    for start, end in trajectories.spans():
        steps = np.arange(start, end)[:, None]
        chunks[start:end] = trajectories.actions[np.minimum(steps + ahead, end - 1)]
    return chunks


def step_goals(trajectories: Trajectories) -> np.ndarray:
    """Return each step's goal: (T, G)."""
    lengths = np.diff(trajectories.ends, prepend=0)
    goals: np.ndarray = np.repeat(trajectories.goals, lengths, axis=0)
    return goals
