"""The last observations of each robot, as a policy wants them."""

from __future__ import annotations

import numpy as np


class ObservationWindow:
    """The H newest observations of B robots. Before H have come, the first one is repeated."""

    def __init__(self, batch: int, length: int, observation_dim: int) -> None:
        self._values = np.zeros((batch, length, observation_dim), dtype=np.float32)
        self._empty = True

    def reset(self) -> None:
        """Forget everything."""
        self._empty = True

    def with_newest(self, observations: np.ndarray) -> np.ndarray:
        """Return what the window (B, H, O) float32, oldest first, would be with observations (B, O) in it.

        Raises:
            ValueError: wrong shape, or not finite.
        """
        batch, _, dim = self._values.shape
        if observations.shape != (batch, dim):
            raise ValueError(f"observation: shape {observations.shape}, expected {(batch, dim)}")
        with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite, and is refused
            observations = observations.astype(np.float32)
        if not np.isfinite(observations).all():
            raise ValueError("observation: holds values that are not finite")
        if self._empty:
            return np.repeat(observations[:, None], self._values.shape[1], axis=1)
        return np.concatenate([self._values[:, 1:], observations[:, None]], axis=1)

    def keep(self, windows: np.ndarray) -> None:
        """Make windows (B, H, O) from `with_newest` the present ones."""
        self._values = windows.copy()
        self._empty = False

    def push(self, observations: np.ndarray) -> np.ndarray:
        """Add observations (B, O); return the window. Arguments and errors as `with_newest`."""
        windows = self.with_newest(observations)
        self.keep(windows)
        return windows
