# SPDX-License-Identifier: Apache-2.0
"""Recorded episodes instead of a task, to run methods on them step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories


class RecordedWorld:
    """A `World` that shows the recorded observations and ignores actions.

    Args:
        trajectories: E recorded episodes; all are shown side by side.
    """

    def __init__(self, trajectories: Trajectories) -> None:
        self._trajectories = trajectories
        spans = np.array(list(trajectories.spans()))
        self._starts, self._lengths = spans[:, 0], spans[:, 1] - spans[:, 0]
        self._step = 0

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Go back to the beginning.

        Raises:
            ValueError: not as many episodes as there are recorded.
        """
        if len(episodes) != len(self._starts):
            raise ValueError(f"episodes: {len(episodes)}, the recording has {len(self._starts)}")
        self._step = 0

    def _rows(self) -> np.ndarray:
        rows: np.ndarray = self._starts + np.minimum(self._step, self._lengths - 1)
        return rows

    @property
    def observation(self) -> np.ndarray:
        """(E, O) float32; the last one is repeated past an episode's end."""
        return self._trajectories.observations[self._rows()]

    @property
    def image_features(self) -> np.ndarray:
        """(E, F) float32, of the images that only the target saw."""
        return self._trajectories.image_features[self._rows()]

    @property
    def action(self) -> np.ndarray:
        """(E, A) float32, the recorded action at that observation."""
        return self._trajectories.actions[self._rows()]

    @property
    def goal(self) -> np.ndarray:
        """(E, G) float32."""
        return self._trajectories.goals

    @property
    def done(self) -> np.ndarray:
        """(E,) bool."""
        done: np.ndarray = self._step >= self._lengths
        return done

    def step(self, action: np.ndarray) -> None:
        """Go on to the next recorded step."""
        self._step += 1
