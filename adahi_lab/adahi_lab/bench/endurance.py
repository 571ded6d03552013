# SPDX-License-Identifier: Apache-2.0
"""Faults that a long run reveals: growing memory and late commands."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

WARM_UP, WINDOW = 0.2, 0.15  # shares of the run: before memory is looked at, and at its start and end
LARGEST_GROWTH = 0.01
LOOK_S = 0.5


@dataclass(frozen=True)
class Memory:
    """Resident memory of one process: medians of the first samples after the warm-up, and of the last."""

    first_bytes: int
    last_bytes: int

    @property
    def growth(self) -> float:
        return self.last_bytes / self.first_bytes - 1.0


def memory_of(samples: Sequence[int]) -> Memory:
    """Return a process's memory at both ends of a run, from samples in bytes over all of it, at least one."""
    count = len(samples)
    first = samples[int(WARM_UP * count) : int((WARM_UP + WINDOW) * count) + 1]
    return Memory(int(np.median(first)), int(np.median(samples[-max(1, int(WINDOW * count)) :])))


def late_commands(latencies_ms: np.ndarray, limit_ms: float) -> list[str]:
    """Return a fault if any of the latencies (T,) exceeds the limit."""
    late = int((latencies_ms > limit_ms).sum())
    return [f"{late} commands later than {limit_ms:.0f} ms"] if late else []


def grown(memory: Mapping[str, Memory]) -> list[str]:
    """Return a fault for every process, by name, with a memory growth of `LARGEST_GROWTH` or more."""
    return [
        f"{name}: resident memory grew by {each.growth:.2%} ({each.first_bytes} to {each.last_bytes} bytes)"
        for name, each in memory.items()
        if each.growth >= LARGEST_GROWTH
    ]


class MemoryWatch:
    """Samples a process's memory in a separate thread while the `with` block runs.

    Args:
        pid: of the process.
    """

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._bytes: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            lines = self._status.read_text().splitlines() if self._status.exists() else []
            self._bytes += [1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")]

    def figures(self) -> dict[str, float] | None:
        """Return memory at both ends of the run, and its growth; None if the run was too short."""
        if not self._bytes:
            return None
        memory = memory_of(self._bytes)
        return {**asdict(memory), "growth": memory.growth}
