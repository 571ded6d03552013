# SPDX-License-Identifier: Apache-2.0
"""A link in control steps, without a clock: which round trips are lost, and how long the others take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.randomness import EpisodeStreams

LONGEST = 10_000  # control steps


@dataclass(frozen=True)
class StepLink:
    """The link between robot and target.

    Attributes:
        delay: control steps from a request to its reply, at least.
        jitter: additional ones, drawn uniformly from 0 to this.
        loss: probability that a round trip is lost.
        outage: mean length of an outage, in control steps; 0 for none. A round trip is lost if
            it begins or ends within one.
        between: mean length from the end of an outage to the next. Both are geometric: the link is a Markov
            chain of two states (Gilbert, 1960), and an episode begins with a link that is up.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    delay: int = 0
    jitter: int = 0
    loss: float = 0.0
    outage: float = 0.0
    between: float = 40.0

    def __post_init__(self) -> None:
        for name in ("delay", "jitter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST:
                raise ValueError(f"{name}: {value!r}, must be a whole number from 0 to {LONGEST}")
        if not 0.0 <= self.loss < 1.0:
            raise ValueError(f"loss: {self.loss}, must be at least 0 and below 1")
        if self.outage != 0.0 and not 1.0 <= self.outage < math.inf:
            raise ValueError(f"outage: {self.outage}, must be 0, or at least 1 and finite")
        if not 1.0 <= self.between < math.inf:
            raise ValueError(f"between: {self.between}, must be at least 1 and finite")

    @property
    def usual(self) -> int:
        """Most control steps until a reply that is not lost arrives."""
        return self.delay + self.jitter

    @property
    def timeout(self) -> int:
        """Control steps after which a robot abandons a request."""
        return self.usual + 1


@dataclass(frozen=True)
class Across:
    """A link, and how a robot with nothing to execute is held.

    Attributes:
        link: between robot and target.
        field: what an action is to a controller, see `TaskSpec`.
        patience: control steps until another request for a lasting reply, at least.
    """

    link: StepLink
    field: str
    patience: int = 0

    def hold(self, executed: np.ndarray) -> np.ndarray:
        """Return the actions that hold robots after actions (B, A), as the node's envelope does."""
        return executed if self.field == "positions" else np.zeros_like(executed)


class LinkCourse:
    """States of a link in E episodes, side by side.

    Every draw depends on seed, episode and the step of the request.

    Args:
        link: its properties.
        seed: of the draws.
        episodes: their numbers.
    """

    def __init__(self, link: StepLink, seed: int, episodes: Sequence[int]) -> None:
        self.link = link
        self._draws = EpisodeStreams(seed, "link", episodes, 3)
        self._rows: list[np.ndarray] = []  # of each step: for jitter and loss
        self._down: list[np.ndarray] = []  # (E,) bool, of each step

    def round_trip(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the fate of requests of a control step.

        Returns:
            (E,) control steps until the reply arrives or, if it is lost, the request is abandoned;
            and (E,) bool, which are lost.
        """
        self._reach(step)
        jitter, loss = self._rows[step]
        taken = self.link.delay + np.floor(jitter * (self.link.jitter + 1)).astype(np.int64)
        lost: np.ndarray = (loss < self.link.loss) | self._down[step]
        if self.link.outage:
            self._reach(step + self.link.usual)
            lost |= np.stack(self._down)[step + taken, np.arange(len(taken))]
        return np.where(lost, self.link.timeout, taken), lost

    def _reach(self, step: int) -> None:
        while len(self._rows) <= step:
            jitter, loss, turn = self._draws.next().T
            self._rows.append(np.stack([jitter, loss]))
            self._down.append(self._next(turn))

    def _next(self, turn: np.ndarray) -> np.ndarray:
        """Return which links are down (E,) after the last step, by draws (E,)."""
        if not self.link.outage or not self._down:
            return np.zeros(len(turn), dtype=bool)
        down = self._down[-1]
        following: np.ndarray = np.where(down, turn >= 1.0 / self.link.outage, turn < 1.0 / self.link.between)
        return following
