# SPDX-License-Identifier: Apache-2.0
"""A verifier's counts and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from adahi_ros.core.health_level import Health, Level
from adahi_ros.server.service import Counts

PERCENTILES = (50, 95)


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
