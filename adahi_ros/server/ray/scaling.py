# SPDX-License-Identifier: Apache-2.0
"""Finds how many replicas meet a service-level objective within a budget of memory.

After S3ML (Ma et al., arXiv 2010.06212), which scales enclaves by a latency objective and by the memory that
enclaves share. Ray Serve asks `ObjectiveScaling`, once a period, with what replicas measured. No Ray here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

RATE_HZ, PASS_S = "rate_hz", "pass_s"
WINDOW_S = 5.0  # of a measured rate
TAIL = 3.0  # of an exponential wait: its 95th percentile is three means
HEADROOM = 1.2  # fewer replicas must bear this much more load


def latency_s(rate_hz: float, pass_s: float, batch: int, replicas: int) -> float:
    """Return the estimated 95th percentile of a request's time at replicas that serve batches.

    While passes of single requests keep up, requests queue for these (Sakasegawa's approximation of the
    M/D/c queue). With more load they share passes, and wait for the replica that is free next, until full
    batches do not keep up, either.

    Args:
        rate_hz: requests per second, of all replicas.
        pass_s: time of a pass.
        batch: requests that share one at most.
        replicas: how many.

    Returns:
        Infinite where the queue would grow for ever.
    """
    single, full = (_wait_s(rate_hz * pass_s / shared, pass_s, replicas) for shared in (1, batch))
    next_free = pass_s * (1.0 - 0.05 ** (1.0 / replicas))  # 95th percentile, if all are busy and out of step
    return pass_s + max(min(next_free, TAIL * single), TAIL * full)


def _wait_s(offered: float, pass_s: float, replicas: int) -> float:
    """Return the mean wait for one of some replicas, with so many passes offered per pass time."""
    used = offered / replicas
    if used >= 1.0:
        return math.inf
    return 0.5 * pass_s / replicas * used ** (math.sqrt(2.0 * (replicas + 1)) - 1.0) / (1.0 - used)


def replicas_for(rate_hz: float, pass_s: float, batch: int, objective_s: float, most: int) -> int:
    """Return the least number of replicas that meets the objective; `most` where none does."""
    for replicas in range(1, most + 1):
        if latency_s(rate_hz, pass_s, batch, replicas) <= objective_s:
            return replicas
    return most


class ObjectiveScaling:
    """A policy of Ray Serve's autoscaling; its arguments are plain numbers.

    Args:
        objective_ms: for the 95th percentile of a request's time at the replicas.
        batch: largest batch.
        least: number of replicas.
        most: number of replicas; within the budget of memory.
    """

    def __init__(self, objective_ms: float, batch: int, least: int, most: int) -> None:
        self._objective_s, self._batch = objective_ms / 1e3, batch
        self._least, self._most = least, most

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """Return the wanted number of replicas, and no state.

        Args:
            context: Ray Serve's `AutoscalingContext`.
        """
        measured: Mapping[str, Mapping[Any, float]] = context.aggregated_metrics or {}
        passes = [each for each in measured.get(PASS_S, {}).values() if each > 0.0]
        now = int(context.target_num_replicas)
        if not passes:  # nothing was served yet
            return self._bounded(now), {}
        load = sum(measured.get(RATE_HZ, {}).values()), max(passes)
        wanted = replicas_for(*load, self._batch, self._objective_s, self._most)
        if wanted < now:
            wanted = replicas_for(HEADROOM * load[0], load[1], self._batch, self._objective_s, self._most)
            wanted = min(wanted, now)
        return self._bounded(wanted), {}

    def _bounded(self, replicas: int) -> int:
        return min(max(replicas, self._least), self._most)


class Load:
    """A replica's measurements: requests per second, and the time of a pass.

    Args:
        clock: monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._served: deque[tuple[float, int]] = deque()
        self._pass_s = 0.0

    def served(self, robots: int, took_s: float) -> None:
        """Note a pass for so many robots."""
        self._served.append((self._clock(), robots))
        self._pass_s = took_s if not self._pass_s else 0.8 * self._pass_s + 0.2 * took_s

    def figures(self) -> dict[str, float]:
        """Return the figures by name, as Ray Serve collects them."""
        since_s = self._clock() - WINDOW_S
        while self._served and self._served[0][0] < since_s:
            self._served.popleft()
        return {RATE_HZ: sum(robots for _, robots in self._served) / WINDOW_S, PASS_S: self._pass_s}
