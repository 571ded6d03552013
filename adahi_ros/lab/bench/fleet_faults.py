# SPDX-License-Identifier: Apache-2.0
"""What robots notice where a part of a fleet's verifier is killed: a replica, all of Ray, or the front."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from adahi_ros.lab.figures import Figures
from adahi_ros.nodes.launching.fleet import SERVING, RunningFleet

PARTS = ("replica", "head", "front")
BACK = "Ray is back"  # which the verifier says once its policies are there again


class Fault:
    """Kills a part of a fleet's verifier, and notes when it is back. All times are `time.monotonic`'s.

    Args:
        fleet: whose.
        part: of `PARTS`.
        at_s: when.
    """

    def __init__(self, fleet: RunningFleet, part: str, at_s: float) -> None:
        self._fleet = fleet
        self._part = part
        self._at_s = at_s
        self._replicas: list[int] = []
        self._killed_s = self._back_s = np.inf

    def look(self) -> None:
        """Kill it where it is time; note whether it is back."""
        now_s = time.monotonic()
        if now_s >= self._at_s and self._killed_s == np.inf:
            self._kill()
            self._killed_s = time.monotonic()
        elif self._killed_s < self._back_s == np.inf and self._is_back():
            self._back_s = now_s

    def _kill(self) -> None:
        head = self._fleet.head
        assert head is not None
        if self._part == "replica":
            self._replicas = head.replicas
            os.kill(self._replicas[0], signal.SIGKILL)
        elif self._part == "head":
            head.end()
        else:
            self._fleet.verifier.kill()

    def _is_back(self) -> bool:
        head, verifier = self._fleet.head, self._fleet.verifier
        assert head is not None
        if self._part == "replica":
            others = set(head.replicas)
            return self._replicas[0] not in others and len(others) >= len(self._replicas)
        if self._part == "head":
            return BACK in verifier.output
        return verifier.exit_code is None and SERVING in verifier.output

    def figures(self, records: Sequence[Figures]) -> dict[str, Any]:
        """Return what robots noticed.

        Args:
            records: of the robots, `FleetRecord`s as mappings.

        Returns:
            `part`; `back_s`: so long after that it was there again, a replica as a process; `gap_s`: the
            longest time after it without a reply to any robot; `resumed_s`: from when it was back to the next
            reply. None where that did not happen.
        """
        replied = np.sort(np.concatenate([np.array(record["replied_s"]) for record in records]))
        before, after = replied[replied < self._killed_s], replied[replied >= self._killed_s]
        since_back = after[after >= self._back_s]
        silences = np.diff([*before[-1:], *after])
        return {
            "part": self._part,
            "back_s": _finite(self._back_s - self._killed_s),
            "gap_s": float(silences.max()) if silences.size else None,
            "resumed_s": float(since_back[0] - self._back_s) if since_back.size else None,
        }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
