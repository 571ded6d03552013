# SPDX-License-Identifier: Apache-2.0
"""A verifier's counts and diagnostics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from adahi_ros.core.health_level import Health, Level
from adahi_ros.core.texts import NAME_LENGTH, shortened

PERCENTILES = (50, 95)
RECENT = 1000  # batches in the percentiles of compute times
NAMED_MOST = 64
"""Robots with a count of their own: senders choose their names, and may invent any number."""
OTHERS = "(others)"
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
TIMES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Buckets:
    """Counts values by the first of some upper bounds that they do not exceed.

    Attributes:
        bounds: in order; the last count is of what exceeds all of them.
        counts: one more than bounds.
        total: sum of all values.

    Args:
        bounds: see the class.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass
class Counts:
    """Counts of a verifier.

    Attributes:
        robots: requests, by the printable name of their robot; after `NAMED_MOST` names, by `OTHERS`.
        replies: by the name of their status.
        refused: refused requests that need attention.
        batch_s: time of each batch, s.
        batch_sizes: requests of each batch.
        recent_ms: time of each of the last batches.
        unheard: replies that could not reach their client.
    """

    robots: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    batch_s: Buckets = field(default_factory=lambda: Buckets(TIMES_S))
    batch_sizes: Buckets = field(default_factory=lambda: Buckets(SIZES))
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    unheard: int = 0

    def add(self, robot_id: str, status: str) -> None:
        """Count a request and its reply."""
        name = shortened(robot_id, NAME_LENGTH)
        self.robots[name if name in self.robots or len(self.robots) < NAMED_MOST else OTHERS] += 1
        self.replies[status] += 1


class HealthWatch:
    """Compares a verifier's counts from one report to the next. All counts begin at 0."""

    def __init__(self) -> None:
        self._refused = self._unheard = 0

    def report(
        self,
        counts: Counts,
        shared: Mapping[str, int],
        serving: bool = True,
        waiting_most: int = 0,
        machine: Mapping[str, object] = MappingProxyType({}),
    ) -> Health:
        """Return the verifier's health.

        Args:
            counts: so far.
            shared: names that robots share now, and how often a session of each has come back.
            serving: the node is active.
            waiting_most: longest queue since the last report.
            machine: figures of the machine, by name.
        """
        news, self._refused = counts.refused - self._refused, counts.refused
        unheard, self._unheard = counts.unheard - self._unheard, counts.unheard
        troubles = [] if serving else ["inactive, serves no robots"]
        if news:
            troubles.append(f"{news} requests refused")
        if unheard:
            troubles.append(f"{unheard} replies reached no client: a client has another reliability")
        if shared:
            name = max(shared, key=lambda name: shared[name])
            troubles.append(f"two robots are named {name!r}: sessions have come back {shared[name]} times")
        sizes = counts.batch_sizes
        values = {
            "requests": counts.replies.total(),
            "compute_ms_mean": f"{1e3 * counts.batch_s.total / max(1, sizes.total):.3f}",
            "batch_size_mean": f"{sizes.total / max(1, sum(sizes.counts)):.2f}",
            **_percentiles(counts.recent_ms),
            "waiting_most": waiting_most,
            **{f"replies.{status}": count for status, count in counts.replies.items()},
            "shared_names": len(shared),
            "unheard": counts.unheard,
            **machine,
        }
        worried = news or unheard or shared  # inactive is no warning: it is on purpose
        level = Level.WARN if worried else Level.OK
        return Health(level, "; ".join(troubles) or "serving", values)


def _percentiles(compute_ms: Sequence[float]) -> dict[str, str]:
    """Return the percentiles of the last batches' times."""
    found = np.percentile(compute_ms, PERCENTILES) if compute_ms else [np.nan] * len(PERCENTILES)
    return {f"compute_ms_p{which}": f"{value:.3f}" for which, value in zip(PERCENTILES, found, strict=True)}
