# SPDX-License-Identifier: Apache-2.0
"""Steps in which a robot is held: before its first reply, after a stop, when the link was gone.

An expert never rests. A network that learns from it alone may do something else after a rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_ros.core.randomness import EpisodeStreams

AT_START = 0.5  # share of the episodes that begin with a rest
LONGEST = 10  # steps; drawn evenly from 1
MEAN = (1 + LONGEST) / 2


class Rests:
    """Holds robots for some steps.

    Args:
        share: of the steps, from 0, for none, to below 1.
        field: of the task's commands, see `TaskSpec.command_field`.
    """

    def __init__(self, share: float, field: str) -> None:
        self._begins = share / (MEAN * (1.0 - share))
        self._stays = field == "positions"

    def reset(self, seed: int, episodes: Sequence[int], action_dim: int) -> None:
        """Start the E episodes with these numbers."""
        self._draws = EpisodeStreams(seed, "rests", episodes, 2)
        self._left = np.zeros(len(episodes), dtype=np.int64)
        self._executed = np.zeros((len(episodes), action_dim))
        self._first = True

    def applied(self, action: np.ndarray) -> np.ndarray:
        """Return what is executed instead of actions (E, A); once per step."""
        if not self._begins:
            return action
        begins, length = self._draws.next().T
        beginning = begins < (max(AT_START, self._begins) if self._first else self._begins)
        self._first = False
        drawn = 1 + (LONGEST * length).astype(np.int64)
        self._left = np.where(self._left > 0, self._left - 1, np.where(beginning, drawn, 0))
        held = self._executed if self._stays else np.zeros_like(action)
        self._executed = np.where(self._left[:, None] > 0, held, action)
        return self._executed
