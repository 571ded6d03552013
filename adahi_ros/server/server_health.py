# SPDX-License-Identifier: Apache-2.0
"""What a verifier says of itself."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from adahi_ros.core.health_level import Health, Level

PERCENTILES = (50, 95)
RECENT = 1000  # replies that are OK, of which it is remembered how long they took


@dataclass
class Counts:
    """What a verifier has done so far.

    Attributes:
        replies: by the name of their status.
        refused: those that somebody should look into.
        compute_ms: spent on requests that were verified or refused, in all.
        recent_ms: of each of the last batches.
        unheard: those that could not reach who had asked.
        batches: in which these were served.
        served: how many these were.
    """

    replies: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    compute_ms: float = 0.0
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    unheard: int = 0
    batches: int = 0
    served: int = 0


class HealthWatch:
    """Tells from one report to the next how a verifier does. All counts begin at 0."""

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
        """Return how it does.

        Args:
            counts: so far.
            shared: names that robots share at present, and how often a session of each has come back.
            serving: robots can ask it.
            waiting_most: so many requests waited at once for their turn, at most, since the report before.
            machine: what is told of the machine, by name.
        """
        news, self._refused = counts.refused - self._refused, counts.refused
        unheard, self._unheard = counts.unheard - self._unheard, counts.unheard
        troubles = [] if serving else ["inactive, serves nobody"]
        if news:
            troubles.append(f"{news} requests refused")
        if unheard:
            troubles.append(f"{unheard} replies reached nobody: a client of another reliability")
        if shared:
            name = max(shared, key=lambda name: shared[name])
            troubles.append(f"two robots are named {name!r}: sessions have come back {shared[name]} times")
        values = {
            "requests": counts.replies.total(),
            "compute_ms_mean": f"{counts.compute_ms / max(1, counts.served):.3f}",
            "batch_size_mean": f"{counts.served / max(1, counts.batches):.2f}",
            **_percentiles(counts.recent_ms),
            "waiting_most": waiting_most,
            **{f"replies.{status}": count for status, count in counts.replies.items()},
            "shared_names": len(shared),
            "unheard": counts.unheard,
            **machine,
        }
        worried = news or unheard or shared  # not where it is inactive: somebody has made it so on purpose
        level = Level.WARN if worried else Level.OK
        return Health(level, "; ".join(troubles) or "serving", values)


def _percentiles(compute_ms: Sequence[float]) -> dict[str, str]:
    """Return what half of the last replies took at most, and 95 in 100."""
    found = np.percentile(compute_ms, PERCENTILES) if compute_ms else [np.nan] * len(PERCENTILES)
    return {f"compute_ms_p{which}": f"{value:.3f}" for which, value in zip(PERCENTILES, found, strict=True)}
